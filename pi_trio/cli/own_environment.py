"""Keys taken out of what the system shows of this process.

A command does not get the keys of model providers, but could read them as those of its parent,
in `/proc/PID/environ`: that is the memory in which a process got its environment, whatever
became of its variables since. The program writes over the values there. Whoever may trace this
process can still read its memory, and so may look at the environment of the shell it was
started from, if that was itself started with the keys.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pi_trio.tools.secrets import is_secret_variable

__all__ = ["hide_keys"]

_PROCESS = Path("/proc/self")
_FIELDS_BEFORE = 47
"""The fields of `stat` from the state on that come before the address of the environment."""


def hide_keys() -> None:
    """Blank the values of secret variables in `/proc/self/environ`; `os.environ` stays as it is.

    Only Linux shows it. A kernel that forbids writing to `/proc/self/mem` leaves it as it was.
    """
    with suppress(OSError):
        found = list(_secret_values((_PROCESS / "environ").read_bytes()))
        if not found:
            return
        for name, _, _ in found:
            os.environ[name] = os.environ[name]  # a copy for who asks the C library
        start = int((_PROCESS / "stat").read_text().rpartition(")")[2].split()[_FIELDS_BEFORE])
        with (_PROCESS / "mem").open("r+b", buffering=0) as memory:
            for _, offset, length in found:
                memory.seek(start + offset)
                memory.write(b"\0" * length)


def _secret_values(block: bytes) -> Iterator[tuple[str, int, int]]:
    """Names, and where their values are in the block."""
    offset = 0
    for variable in block.split(b"\0"):
        name, sign, value = variable.partition(b"=")
        if value and is_secret_variable(os.fsdecode(name)) and os.fsdecode(name) in os.environ:
            yield os.fsdecode(name), offset + len(name) + len(sign), len(value)
        offset += len(variable) + 1
