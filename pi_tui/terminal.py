"""Byte sequences that terminals send for Alt keys and that Textual reads as something else.

With `ESC CR` (Alt+Enter, and what many terminals send for Shift+Enter) it sees a bare Enter,
which would send the prompt; with `ESC ESC [ A` (Alt+Up where Alt is a prefix) it sees Escape,
which would abort the run. Both are rewritten into the forms that it reads rightly.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from textual._xterm_parser import XTermParser
from textual.drivers import linux_driver
from textual.message import Message

__all__ = ["KeyParser", "install", "normalise_keys"]

_ALT_ARROW = re.compile(r"\x1b\x1b(?:\[|O)([A-DFH])")
_ALT_TILDE = re.compile(r"\x1b\x1b\[(\d+)~")


def normalise_keys(data: str) -> str:
    """What one read from the terminal gave, with prefixed Alt keys in xterm's and Kitty's forms."""
    if "\x1b" not in data:
        return data
    data = _ALT_ARROW.sub("\x1b[1;3\\1", data)
    data = _ALT_TILDE.sub("\x1b[\\1;3~", data)
    return data.replace("\x1b\r", "\x1b[13;3u")


class KeyParser(XTermParser):
    """Textual's parser behind `normalise_keys`."""

    def feed(self, data: str) -> Iterable[Message]:
        """Read what arrived; see `Parser.feed`."""
        return super().feed(normalise_keys(data))


def install() -> None:
    """Have Textual's terminal driver use `KeyParser`."""
    linux_driver.XTermParser = KeyParser  # type: ignore[attr-defined]  # the driver offers no other way in
