"""What Textual's terminal driver lacks for a program that must read Alt keys rightly and always end.

With `ESC CR` (Alt+Enter, and what many terminals send for Shift+Enter) it sees a bare Enter,
which would send the prompt; with `ESC ESC [ A` (Alt+Up where Alt is a prefix) it sees Escape,
which would abort the run. Both are rewritten into the forms that it reads rightly.

It looks for a lone Escape every 100 ms, and gives up on any sequence as soon as on that one;
here an Escape is one after 25 ms, and a sequence that a slow line cut in two is waited for.

It looks at each letter of a paste; here a paste of a megabyte is one piece.
It types what a terminal says of the colour of its ground; here that becomes a message.

It looks for what has changed 60 times a second and, while something streams, misses every second
look, so that a key waited for as long as 33 ms; here it looks more often.

Its writer dies when the terminal is gone, and whoever writes next waits for ever. And a byte
that is no UTF-8, such as a paste in another encoding may have, would end the program.
"""

from __future__ import annotations

import codecs
import curses
import os
import re
import select
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from io import StringIO

from textual import constants, events, screen
from textual._time import get_time
from textual._xterm_parser import XTermParser
from textual.driver import Driver
from textual.drivers import linux_driver
from textual.drivers._writer_thread import WriterThread
from textual.message import Message

from pi_tui.extended_keys import plain_keys
from pi_tui.replies import is_certain, is_dark, split_replies

__all__ = [
    "EnduringWriter",
    "GroundTold",
    "KeyParser",
    "enduring_decoder",
    "install",
    "is_colourless",
    "normalise_keys",
    "set_mouse",
]

_ALT_LETTER = re.compile(r"\x1b\x1b(?:\[|O)([A-DFH])")
_ALT_TILDE = re.compile(r"\x1b\x1b\[(\d+)~")


def normalise_keys(data: str) -> str:
    """What one read from the terminal gave, with prefixed Alt keys in xterm's and Kitty's forms."""
    if "\x1b" not in data:
        return data
    data = _ALT_LETTER.sub("\x1b[1;3\\1", data)
    data = _ALT_TILDE.sub("\x1b[\\1;3~", data)
    return plain_keys(data.replace("\x1b\r", "\x1b[13;3u"))


ESCAPE_WAIT = constants.ESCAPE_DELAY if "ESCDELAY" in os.environ else 0.025
"""Seconds after which an ESC with nothing behind it is the Escape key."""

PASTE_BEGINS, PASTE_ENDS = "\x1b[200~", "\x1b[201~"

_PASTE_BEGUN = re.compile(r"\x1b\[20?0?\Z")
"""What is known to be the beginning of a paste, or of a function key, whose rest is on its way."""

LOOK_EVERY = 1 / 250
"""Seconds between two looks for what has changed; while nothing has there are none."""

SEQUENCE_WAIT = 0.5
"""Seconds after which the beginning of a sequence is taken for keys that were typed."""


def _input_comes(seconds: float) -> bool:
    """Whether there is something to read within some time."""
    return bool(select.select([sys.__stdin__ or 0], [], [], seconds)[0])


def _with_enter(typed: str) -> str:
    """A line that was typed while the terminal still made line feeds of Enter, with the Enter at its end.

    Several lines may be a paste, of which none is to be sent alone.
    """
    return typed[:-1] + "\r" if typed.find("\n") == len(typed) - 1 else typed


class GroundTold(Message):
    """The terminal has said what its ground is."""

    def __init__(self, dark: bool) -> None:
        super().__init__()
        self.dark = dark


class KeyParser(XTermParser):
    """Textual's parser behind `normalise_keys`. It is driven by a thread of its own, which may wait.

    What may be the beginning of a reply is held until it is one, or something else. `typed_before`
    says that the first text was there before the terminal gave keys one by one.
    """

    typed_before = False

    def __init__(self, debug: bool = False, input_comes: Callable[[float], bool] = _input_comes) -> None:
        self._input_comes = input_comes
        self._held = ""
        self._held_alone = False
        self._held_until = 0.0
        self._paste: StringIO | None = None
        self._begun = ""
        super().__init__(debug)

    def feed(self, data: str) -> Iterator[Message]:
        """Read what arrived; see `Parser.feed`. Nothing at all is the end of the input."""
        if not data:
            yield from super().feed(data)
            return
        if self.typed_before:
            self.typed_before, data = False, _with_enter(data)
        keys, replies, self._held = split_replies(self._held + data)
        self._held_alone = self._held == "\x1b" and not keys  # with more before it, it may be a cut
        self._held_until = get_time() + (constants.ESCAPE_DELAY if self._held == "\x1b" else SEQUENCE_WAIT)
        for reply in replies:
            dark = is_dark(reply)
            if dark is not None:
                yield GroundTold(dark)
        yield from self._read(keys)

    def tick(self) -> Iterable[Message]:
        """Give up on what did not go on. After an ESC this waits: the driver comes around too seldom."""
        alone, self._held_alone = self._held_alone, False
        late = bool(self._held) and not is_certain(self._held) and get_time() >= self._held_until
        if late or (alone and not self._input_comes(ESCAPE_WAIT)):
            held, self._held = self._held, ""
            yield from self._read(held)
            self._timeout_time = 0.0
        yield from super().tick()

    def _read(self, data: str) -> Iterator[Message]:
        """Take in what is no reply: pastes, and everything else."""
        if self._paste is not None:
            yield from self._more_pasted(data)
            return
        data, self._begun = self._begun + data, ""
        before, begin, rest = data.partition(PASTE_BEGINS)
        if not begin:
            cut = _PASTE_BEGUN.search(data)
            self._begun = cut[0] if cut else ""
            yield from self._keys(data.removesuffix(self._begun))
            return
        yield from self._keys(before)
        self._paste = StringIO()
        yield from self._more_pasted(rest)

    def _more_pasted(self, data: str) -> Iterator[Message]:
        """Take in more of a paste. Textual would look at each letter, a second or more for a million."""
        paste = self._paste or StringIO()
        paste.seek(max(paste.tell() - len(PASTE_ENDS) + 1, 0))  # its end may have come in pieces
        tail = paste.read() + data
        paste.write(data)
        if PASTE_ENDS not in tail:
            return
        text, _, rest = paste.getvalue().partition(PASTE_ENDS)
        self._paste = None
        yield events.Paste(text.replace("\x00", ""))
        yield from self._read(rest)

    def _keys(self, keys: str) -> Iterator[Message]:
        """Take in keys and reports."""
        keys = normalise_keys(keys)
        if not keys:
            return
        yield from super().feed(keys)
        if self._timeout_time is not None and not keys.endswith("\x1b"):
            self._timeout_time = get_time() + SEQUENCE_WAIT


class EnduringWriter(WriterThread):
    """Textual's writer, which takes in and drops what is written to a terminal that is gone."""

    def run(self) -> None:
        """Run the thread."""
        try:
            super().run()
        except OSError:
            while self._queue.get() is not None:
                pass


def enduring_decoder(encoding: str) -> Callable[[], codecs.IncrementalDecoder]:
    """`codecs.getincrementaldecoder`, of decoders that put U+FFFD for what they cannot read."""
    return partial(codecs.getincrementaldecoder(encoding), errors="replace")


def is_colourless() -> bool:
    """Whether the terminal is known to have no colours, such as a vt100, which would print their codes."""
    try:
        curses.setupterm(fd=sys.__stdout__.fileno() if sys.__stdout__ else 1)
        return curses.tigetnum("colors") < 1
    except curses.error:  # nobody knows this terminal
        return False


_MOUSE_MODES = ("1000", "1003", "1015", "1006")
"""What Textual's driver asks a terminal for: presses, moves, and how they are told."""


def set_mouse(driver: Driver, *, on: bool) -> None:
    """Take the mouse from the terminal, or give it back, also over a stop and a continuation."""
    driver._mouse = on  # by which the driver knows what to ask for when it comes back
    driver.write("".join(f"\x1b[?{mode}{'h' if on else 'l'}" for mode in _MOUSE_MODES))
    driver.flush()


def _reading_parser(debug: bool = False) -> KeyParser:
    """The parser of a driver that begins to read now."""
    parser = KeyParser(debug)
    parser.typed_before = _input_comes(0)
    return parser


def install() -> None:
    """Have Textual's terminal driver use all of these. It offers no other way in."""
    linux_driver.XTermParser = _reading_parser  # type: ignore[attr-defined, assignment]
    linux_driver.WriterThread = EnduringWriter  # type: ignore[attr-defined]
    linux_driver.getincrementaldecoder = enduring_decoder  # type: ignore[attr-defined, assignment]
    screen.UPDATE_PERIOD = LOOK_EVERY  # type: ignore[misc]
