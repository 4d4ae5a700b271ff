"""How both programs begin, whatever they were started with. Nothing heavy is imported for it."""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Callable

__all__ = ["run_program"]


def run_program(work: Callable[[], int]) -> int:
    """The exit status that `work` returns, or that of an interrupt before it minds signals itself."""
    _open_closed()
    _speak_utf8()
    try:
        return work()
    except KeyboardInterrupt:
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # one more would break into the end of Python itself
        except KeyboardInterrupt:  # it came already
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        return 130


def _open_closed() -> None:
    """Give standard input and standard error something to be, or the next file would become them.

    Standard output stays closed: an answer that goes nowhere is a mistake, which is told.
    """
    for descriptor in (0, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            nothing = os.open(os.devnull, os.O_RDWR)
            if nothing != descriptor:
                os.dup2(nothing, descriptor)
                os.close(nothing)


def _speak_utf8() -> None:
    """All that is printed is UTF-8, as answers are, whatever the locale; half a letter becomes `?`."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="replace")
