"""Ending on a signal: the first one stops the work, and the exit status names it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import trio

from pi_trio.cli.words import flush
from pi_trio.loop.abandon import abandoned

__all__ = ["until_signal"]

_GRACE = 0.5
"""Seconds in which a further signal changes nothing: closing a terminal sends several at once."""


async def until_signal(work: Callable[[], Awaitable[int]]) -> int:
    """The status that `work` returns, or 128 and the number of the signal that cancelled it.

    A further signal, after a moment for cleaning up, ends the process where it stands, with the same
    status. So does a tool that was left behind, when the work is over: `trio.run` would wait for it.
    """
    status = 0
    working = trio.CancelScope()
    with _heeded(working) as received, working:
        status = await work()
    status = 128 + received[0] if received else status
    if abandoned():
        try:
            flush()
        finally:
            os._exit(status)
    return status


@contextmanager
def _heeded(working: trio.CancelScope) -> Iterator[list[int]]:
    """The first signal that came, as soon as there is one: it cancels `working`.

    When the work is over after one, all are ignored: they would break into the end of Python itself.
    """
    token = trio.lowlevel.current_trio_token()
    received: list[int] = []
    impatient = 0.0

    def heed(number: int, _frame: object) -> None:
        nonlocal impatient
        if not received:
            impatient = time.monotonic() + _GRACE  # first: another signal may break in here
            received.append(number)
            token.run_sync_soon(working.cancel)
        elif time.monotonic() >= impatient:
            token.run_sync_soon(os._exit, 128 + received[0])  # not in the middle of a line that is written

    before = {number: signal.signal(number, heed) for number in (signal.SIGTERM, *_not_ignored())}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_IGN if received else handler)


def _not_ignored() -> list[signal.Signals]:
    """`nohup` and shells that start background jobs have these ignored, and mean it."""
    return [each for each in (signal.SIGINT, signal.SIGHUP) if signal.getsignal(each) is not signal.SIG_IGN]
