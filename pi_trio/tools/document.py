"""A text file as an edit sees it, and back to bytes without touching what was not edited.

An edit sees line feeds. Each line of the file keeps its own line end, and the byte order mark
stays. UTF-16 is told by its mark; what else is not UTF-8 is taken for Latin-1, which gives
every byte back as it was.
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_left
from collections.abc import Iterable

from attrs import frozen

from pi_trio.tools.failure import ToolError

__all__ = ["Document", "Replacement", "with_line_feeds"]

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@frozen(order=True)
class Replacement:
    """`text` takes the place of the characters from `start` up to `end`."""

    start: int
    end: int
    text: str


@frozen
class Document:
    """`text` has line feeds only; `raw` has the file's own line ends."""

    path: str
    raw: str
    text: str
    encoding: str
    mark: bytes
    """The byte order mark that the file begins with, if any."""
    double_ends: list[int]
    """Where in `text` the line feeds are that stand for CR LF."""

    @classmethod
    def parse(cls, data: bytes, path: str) -> Document:
        """Raises `ToolError` for binary files."""
        mark, encoding = next((each for each in _MARKS if data.startswith(each[0])), (b"", "utf-8"))
        body = data.removeprefix(mark)
        try:
            raw = body.decode(encoding)
        except UnicodeDecodeError:
            if encoding != "utf-8":
                raise ToolError(f"{path} begins as UTF-16 and is not: it cannot be edited here.") from None
            encoding = "latin-1"
            raw = body.decode(encoding)
        if "\0" in raw:
            raise ToolError(f"{path} is a binary file, or UTF-16 without its mark: it cannot be edited here.")
        ends = [match.start() - index for index, match in enumerate(re.finditer("\r\n", raw))]
        return cls(path, raw, with_line_feeds(raw), encoding, mark, ends)

    def replaced(self, replacements: Iterable[Replacement]) -> bytes:
        """The file with the replacements made, which are in order and do not overlap.

        New lines end as the line does that they begin in. Raises `ToolError` for text that
        the file's encoding cannot hold.
        """
        pieces, done = [], 0
        for each in replacements:
            pieces.append(self.raw[self._raw(done) : self._raw(each.start)])
            pieces.append(each.text.replace("\n", self._line_end(each.start)))
            done = each.end
        pieces.append(self.raw[self._raw(done) :])
        try:
            body = "".join(pieces).encode(self.encoding)
        except UnicodeEncodeError as error:
            raise self._cannot_hold(error.object[error.start]) from None
        return self.mark + body

    def _raw(self, offset: int) -> int:
        """Where the character of `text` is in `raw`."""
        return offset + bisect_left(self.double_ends, offset)

    def _line_end(self, offset: int) -> str:
        """That of the line at `offset`; of the one before if it has none."""
        at = self.text.find("\n", offset)
        if at < 0:
            at = self.text.rfind("\n", 0, offset)
        return self.raw[self._raw(at) : self._raw(at + 1)] if at >= 0 else "\n"

    def _cannot_hold(self, character: str) -> ToolError:
        if self.encoding != "latin-1":
            return ToolError("The new text contains half of a surrogate pair, which no file can hold.")
        return ToolError(f"{self.path} is not UTF-8 and is edited as Latin-1, which has no {character!r}.")


def with_line_feeds(text: str) -> str:
    """`text` with every line end a line feed."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
