"""A JSON object while its text still arrives, for showing. Deciding is left to a strict parser.

Each letter is looked at once, however often the object is asked for in between: a parser that
starts over with the whole text would take quadratic time.
"""

from __future__ import annotations

import json
import re
from typing import Any, TypeAlias

from attrs import define

from pi_trio.surrogates import mend_text

__all__ = ["GrowingObject"]

_PLAIN = re.compile(r'[^"\\]+')
_HIGH, _LOW, _ANY = r"u[dD][89abAB][0-9a-fA-F]{2}", r"u[dD][c-fC-F][0-9a-fA-F]{2}", r"u[0-9a-fA-F]{4}"
_ESCAPE = re.compile(rf'\\(?:{_HIGH}\\{_LOW}|{_ANY}|["\\/bfnrt])')
_CUT_UNIT = r"u[0-9a-fA-F]{0,3}"
_CUT_ESCAPE = re.compile(rf"\\(?:{_CUT_UNIT}|{_HIGH}(?:\\(?:{_CUT_UNIT})?)?)?\Z")
_BETWEEN = re.compile(r"[\s,:]+")
_SCALAR = re.compile(r"[^\s,:\[\]{}\"]+")
_LONGEST_SCALAR = 100

_Container: TypeAlias = "dict[str, Any] | list[Any]"


@define
class _Open:
    """A container that is not closed yet. `key` is the name that waits for its value."""

    value: _Container
    key: str | None = None

    def add(self, value: Any) -> None:
        if isinstance(self.value, list):
            self.value.append(value)
        elif self.key is not None:
            self.value[self.key] = value
            self.key = None
        elif isinstance(value, str):
            self.key = value

    def with_last(self, last: _Container | str | None) -> _Container:
        """A copy that also holds `last`, the value that is still growing."""
        copy = _Open(self.value.copy(), self.key)
        if last is not None and (self.key is not None or isinstance(self.value, list)):
            copy.add(last)
        return copy.value


class GrowingObject:
    """Fed with pieces of JSON text, gives what they say so far.

    Text shows as it grows; names, numbers and words count once they are whole. What is not JSON
    is read as well as may be: an unknown escape stays as it is written, and where no sense can
    be made of it nothing more is taken in.
    """

    def __init__(self) -> None:
        self._open: list[_Open] = []
        self._text: list[str] | None = None
        self._rest = ""
        self._over = False
        self._whole: dict[str, Any] = {}

    def feed(self, piece: str) -> None:
        """Take in more of the text."""
        if self._over:
            return
        text, self._rest = self._rest + piece, ""
        place = 0
        while place < len(text) and not self._over:
            inside = self._text
            step = self._between(text, place) if inside is None else self._inside(inside, text, place)
            if step == place:  # the rest is the first part of something
                self._rest = text[place:]
                return
            place = step

    def value(self) -> dict[str, Any]:
        """The object so far. Later pieces do not change it."""
        last: _Container | str | None = None if self._text is None else _joined(self._text)
        for container in reversed(self._open):
            last = container.with_last(last)
        return last if isinstance(last, dict) else dict(self._whole)

    def _inside(self, pieces: list[str], text: str, place: int) -> int:
        """Read on in a text. Returns where to go on; the same place if more must come first."""
        if plain := _PLAIN.match(text, place):
            pieces.append(plain[0])
            return plain.end()
        if text[place] == '"':
            self._text = None
            self._open[-1].add(_joined(pieces))
            return place + 1
        if _CUT_ESCAPE.match(text, place):
            return place
        if escape := _ESCAPE.match(text, place):
            pieces.append(mend_text(json.loads(f'"{escape[0]}"')))
            return escape.end()
        pieces.append("\\")
        return place + 1

    def _between(self, text: str, place: int) -> int:
        """Read on between texts. Returns as `_inside` does."""
        if gap := _BETWEEN.match(text, place):
            return gap.end()
        letter = text[place]
        if letter in "{[" and (self._open or letter == "{"):
            self._open.append(_Open({} if letter == "{" else []))
        elif letter in "}]" and self._open:
            self._close()
        elif letter == '"' and self._open:
            self._text = []
        elif self._open and (found := _SCALAR.match(text, place)):
            return self._scalar(found)
        else:
            self._over = True
        return place + 1

    def _close(self) -> None:
        closed = self._open.pop().value
        if self._open:
            self._open[-1].add(closed)
        elif isinstance(closed, dict):
            self._whole, self._over = closed, True

    def _scalar(self, found: re.Match[str]) -> int:
        """A number or a word, which is whole when something else follows."""
        if found.end() == len(found.string) and len(found[0]) <= _LONGEST_SCALAR:
            return found.start()
        try:
            self._open[-1].add(json.loads(found[0]))
        except ValueError:
            self._over = True
        return found.end()


def _joined(pieces: list[str]) -> str:
    """The text of the pieces, which become one."""
    whole = "".join(pieces)
    pieces[:] = [whole]
    return whole
