"""The signals that end the programs here: the first one is heeded, the others are not."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterable

__all__ = ["SIGNALS", "ignore_further"]

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def ignore_further(numbers: Iterable[signal.Signals]) -> None:
    """After a signal, when the work is over: one more would break into what is left to do.

    The loop would give the signals their defaults back when it closes.
    """
    loop = asyncio.get_running_loop()
    for number in numbers:
        loop.remove_signal_handler(number)
        signal.signal(number, signal.SIG_IGN)
