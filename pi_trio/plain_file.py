"""Reading a file that a person or a project put there, whatever it turns out to be."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

__all__ = ["read_plain_file"]


def read_plain_file(path: Path, limit: int = -1) -> bytes:
    """The content of a regular file, or its first `limit` bytes.

    Never waits: for a pipe or a device, which could go on for ever, it raises `OSError` as
    for a file that cannot be read.
    """
    with open(path, "rb", opener=_open_at_once) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        return file.read(limit)


def _open_at_once(path: str, flags: int) -> int:
    """A pipe is opened without a writer at its other end, and a terminal does not become ours."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)
