"""Ending on a signal: the first one stops the work, and the exit status names it."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable

import trio

from pi_trio.cli.stdio import flush
from pi_trio.loop.abandon import abandoned

__all__ = ["until_signal"]

_GRACE = 0.5
"""Seconds in which a further signal changes nothing: closing a terminal sends several at once."""


async def until_signal(work: Callable[[], Awaitable[int]]) -> int:
    """The status that `work` returns, or 128 and the number of the signal that cancelled it.

    A further signal, after a moment for cleaning up, ends the process where it stands. So does
    a tool that was left behind, when the work is over: `trio.run` would wait for it.
    """
    received: list[int] = []
    status = 0
    with trio.open_signal_receiver(signal.SIGTERM, *_not_ignored()) as signals:
        async with trio.open_nursery() as nursery:
            working = trio.CancelScope()
            nursery.start_soon(_watch, signals, working, received)
            with working:
                status = await work()
            nursery.cancel_scope.cancel()
    status = 128 + received[0] if received else status
    if abandoned():
        try:
            flush()
        finally:
            os._exit(status)
    return status


async def _watch(signals: AsyncIterator[int], working: trio.CancelScope, received: list[int]) -> None:
    async for number in signals:
        if received:
            os._exit(128 + number)
        received.append(number)
        working.cancel()
        await trio.sleep(_GRACE)


def _not_ignored() -> list[signal.Signals]:
    """`nohup` and shells that start background jobs have these ignored, and mean it."""
    return [each for each in (signal.SIGINT, signal.SIGHUP) if signal.getsignal(each) is not signal.SIG_IGN]
