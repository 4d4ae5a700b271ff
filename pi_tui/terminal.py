"""What Textual's terminal driver lacks for a program that must read Alt keys rightly and always end.

With `ESC CR` (Alt+Enter, and what many terminals send for Shift+Enter) it sees a bare Enter,
which would send the prompt; with `ESC ESC [ A` (Alt+Up where Alt is a prefix) it sees Escape,
which would abort the run. Both are rewritten into the forms that it reads rightly.

Its writer dies when the terminal is gone, and whoever writes next waits for ever.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from textual._xterm_parser import XTermParser
from textual.drivers import linux_driver
from textual.drivers._writer_thread import WriterThread
from textual.message import Message

__all__ = ["EnduringWriter", "KeyParser", "install", "normalise_keys"]

_ALT_LETTER = re.compile(r"\x1b\x1b(?:\[|O)([A-DFH])")
_ALT_TILDE = re.compile(r"\x1b\x1b\[(\d+)~")


def normalise_keys(data: str) -> str:
    """What one read from the terminal gave, with prefixed Alt keys in xterm's and Kitty's forms."""
    if "\x1b" not in data:
        return data
    data = _ALT_LETTER.sub("\x1b[1;3\\1", data)
    data = _ALT_TILDE.sub("\x1b[\\1;3~", data)
    return data.replace("\x1b\r", "\x1b[13;3u")


class KeyParser(XTermParser):
    """Textual's parser behind `normalise_keys`."""

    def feed(self, data: str) -> Iterable[Message]:
        """Read what arrived; see `Parser.feed`."""
        return super().feed(normalise_keys(data))


class EnduringWriter(WriterThread):
    """Textual's writer, which takes in and drops what is written to a terminal that is gone."""

    def run(self) -> None:
        """Run the thread."""
        try:
            super().run()
        except OSError:
            while self._queue.get() is not None:
                pass


def install() -> None:
    """Have Textual's terminal driver use both. It offers no other way in."""
    linux_driver.XTermParser = KeyParser  # type: ignore[attr-defined]
    linux_driver.WriterThread = EnduringWriter  # type: ignore[attr-defined]
