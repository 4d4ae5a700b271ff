"""What stops commands when the program is killed, so that it cannot do that itself.

A small shell waits at the other end of a pipe that only this program holds. When the system
closes the pipe, whatever became of the program, the shell kills all that carries the token of
an environment, until nothing does. It is nobody's child, and has a session of its own.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping
from contextlib import suppress

import trio

from pi_trio.tools.failure import explain

__all__ = ["Watcher"]

_SCRIPT = """
exec 3<&0
(
    trap '' HUP INT TERM
    read -r _ && exit
    tries=500
    while found=$(grep -lsF -e "$1" /proc/[0-9]*/environ); [ -n "$found" ] && [ "$tries" -gt 0 ]; do
        for path in $found; do
            path=${path#/proc/}
            kill -9 "${path%/environ}"
        done
        tries=$((tries - 1))
        sleep 0.01
    done
) <&3 3<&- >/dev/null 2>&1 &
"""
"""A line says that all is well. Without one the pipe has been closed by the end of the program."""


class Watcher:
    """Waits for the end of this program, or of this object, unless it was told that all is well."""

    def __init__(self, token: str) -> None:
        self._token = token
        self._starting = trio.Lock()
        self._pipe = -1
        self._forget: weakref.finalize[..., Watcher] | None = None

    @property
    def started(self) -> bool:
        """Whether it waits."""
        return self._forget is not None

    async def start(self, environ: Mapping[str, str]) -> None:
        """Start it, unless it was. `environ` must not have the token. Raises `ToolError`."""
        async with self._starting:
            if self._forget is None:
                self._pipe = await _start(self._token, environ)
                self._forget = weakref.finalize(self, os.close, self._pipe)

    def dismiss(self) -> None:
        """Tell it that all is well. It can be started again."""
        if self._forget is not None and self._forget.alive:
            with suppress(BrokenPipeError):  # somebody has ended it
                os.write(self._pipe, b"\n")
            self._forget()
        self._forget = None


async def _start(token: str, environ: Mapping[str, str]) -> int:
    read_end, write_end = os.pipe()
    try:
        await trio.run_process(
            ["/bin/sh", "-c", _SCRIPT, "pi-trio-watcher", token],
            stdin=read_end,
            cwd="/",
            env=environ,
            start_new_session=True,
        )
    except BaseException as error:
        os.close(write_end)
        if isinstance(error, OSError):
            raise explain(
                error, "What stops commands when this program is killed cannot be started"
            ) from error
        raise
    finally:
        os.close(read_end)
    return write_end
