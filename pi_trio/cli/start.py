"""How both programs begin, whatever they were started with. Nothing heavy is imported for it.

Arguments, names of files and what commands say are UTF-8, whatever the locale. Where Python takes
them for something else (`LC_ALL=POSIX` with `PYTHONUTF8=0`, or a Latin-1 locale), letters would be
lost, and files with letters in their names could not be opened. No running interpreter can change
its mind about that, so the program starts once more, in the same process.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Callable, Sequence

__all__ = ["command_line", "run_program"]


def command_line(argv: Sequence[str] | None) -> list[str]:
    """The arguments that were given to `main`, else those of the process."""
    if argv is not None:
        return list(argv)
    encoding = sys.getfilesystemencoding()
    misread = encoding != "utf-8" and (encoding == "ascii" or all(map(_is_utf8, sys.argv)))
    if misread and sys.executable:
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])  # noqa: S606
    return sys.argv[1:]


def _is_utf8(argument: str) -> bool:
    """In a locale with letters of its own, what somebody typed there is not."""
    try:
        os.fsencode(argument).decode()
    except UnicodeDecodeError:
        return False
    return True


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
