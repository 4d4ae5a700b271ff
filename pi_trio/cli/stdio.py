"""The three standard streams of a program that answers on standard output.

Only the answer goes to standard output: while it is reserved, whatever else the process
prints goes to standard error. Reading and writing happen in threads that may be left
behind, so that no slow pipe keeps a signal from being answered.
"""

from __future__ import annotations

import os
import select
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import trio

from pi_trio.cli.words import tell, told_apart
from pi_trio.errors import StorageError

__all__ = [
    "FIRST_BYTE_SECONDS",
    "Output",
    "read_piped",
    "reserved_output",
]

FIRST_BYTE_SECONDS = 3.0
"""How long a pipe may stay silent when there is something to send without it."""


class Output:
    """Standard output. Writes are whole and in order, also when one was cancelled."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._one_at_a_time = trio.CapacityLimiter(1)
        self._ready = _pipe_poll(descriptor)
        self.is_terminal: bool = os.isatty(descriptor)

    async def write(self, data: bytes) -> None:
        """Write all of `data`. Raises `BrokenPipeError` if nobody reads any more, else `StorageError`.

        When it is cancelled after it has begun, the data is still written, if the reader takes it.
        """
        with told_apart():
            await self._write(data)

    async def _write(self, data: bytes) -> None:
        await trio.lowlevel.checkpoint_if_cancelled()
        rest = memoryview(data)
        if not self._one_at_a_time.borrowed_tokens:
            rest = rest[self._write_at_once(rest) :]
        if not rest:
            await trio.lowlevel.cancel_shielded_checkpoint()
            return
        await trio.to_thread.run_sync(
            partial(_write_all, self._descriptor, rest),
            abandon_on_cancel=True,
            limiter=self._one_at_a_time,
        )

    def _write_at_once(self, data: memoryview) -> int:
        """Write what a pipe takes without waiting, which is cheaper than a thread. Gives how much."""
        written = 0
        while self._ready is not None and written < len(data) and self._ready.poll(0):
            written += os.write(self._descriptor, data[written : written + select.PIPE_BUF])
        return written


@contextmanager
def reserved_output() -> Iterator[Output]:
    """Standard output for the answer alone. Raises `StorageError` if it is closed."""
    try:
        kept = os.dup(1)
    except OSError as error:
        raise StorageError("standard output is closed") from error
    try:
        os.dup2(2, 1)
        yield Output(kept)
    finally:
        os.dup2(kept, 1)
        os.close(kept)


async def read_piped(*, needed: bool) -> str:
    """All of standard input, or nothing if it is a terminal or closed.

    If it is not `needed`, a pipe that is open and silent is left alone after a while: many
    programs start others with such a pipe and never write to it.
    """
    if sys.stdin is None or sys.stdin.isatty():
        return ""
    if not needed and not await _speaks():
        tell(f"standard input was silent for {FIRST_BYTE_SECONDS:g} seconds and is left out")
        return ""
    data = await trio.to_thread.run_sync(_read_all, abandon_on_cancel=True)
    return data.decode("utf-8-sig", "replace")


async def _speaks() -> bool:
    """Whether standard input has a byte, or its end, before the time is over."""
    with trio.move_on_after(FIRST_BYTE_SECONDS) as waiting:
        try:
            await trio.lowlevel.wait_readable(0)
        except OSError:  # a file, or /dev/null: always ready, and no poller takes it
            return True
    return not waiting.cancelled_caught


def _read_all() -> bytes:
    """Past the buffer of `sys.stdin`: a thread left behind in it would stop the interpreter's end."""
    pieces = []
    while piece := os.read(0, 1 << 16):
        pieces.append(piece)
    return b"".join(pieces)


def _pipe_poll(descriptor: int) -> select.poll | None:
    """Tells whether a pipe takes `PIPE_BUF` bytes now; nothing else promises that."""
    if not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
        return None
    ready = select.poll()
    ready.register(descriptor, select.POLLOUT)
    return ready


def _write_all(descriptor: int, rest: memoryview) -> None:
    while rest:
        rest = rest[os.write(descriptor, rest) :]
