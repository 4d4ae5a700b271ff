"""The wanted lines of a text file that comes in chunks."""

from __future__ import annotations

import codecs
import math

from pi_trio.tools.truncate import MAX_BYTES, MAX_LINES

__all__ = ["Window"]

_SNIFF = 8192
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class Window:
    """Lines from `first` on, `limit` of them: kept as far as they can be shown, and counted.

    `taken` is how many bytes of the file were fed. `binary`: there is a NUL in what is shown,
    or near the start. A file in UTF-16 is taken for what it is by its mark.
    """

    def __init__(self, first: int, limit: int | None) -> None:
        self.first = first
        self.past: float = math.inf if limit is None else first + int(limit)
        self.binary: bool = False
        self.encoding: str = "UTF-8"
        self.taken: int = 0
        self._utf16: codecs.IncrementalDecoder | None = None
        self.kept: bytearray = bytearray()
        self.size: int = 0
        self.first_line_size: int = 0
        self._first_line_ended = False
        self._line_ends = 0
        self._open_line = False

    def feed(self, chunk: bytes) -> None:
        """Take in the next bytes of the file."""
        if not self.taken and chunk.startswith(_UTF16_MARKS):
            self.encoding = "UTF-16"
            self._utf16 = codecs.getincrementaldecoder("utf-16")("replace")
        is_first, self.taken = not self.taken, self.taken + len(chunk)
        if self._utf16 is not None:
            chunk = self._utf16.decode(chunk).encode()
        self.binary = is_first and b"\0" in chunk[:_SNIFF]
        start = self._offset(chunk, self.first)
        part = chunk[start : self._offset(chunk, self.past)]
        self._count_first_line(part)
        self.size += len(part)
        self.kept += part[: MAX_BYTES + 64 - len(self.kept)]  # a little more than can be shown
        self._line_ends += chunk.count(b"\n")
        self._open_line = not chunk.endswith(b"\n")
        self.binary = self.binary or b"\0" in self.kept

    @property
    def full(self) -> bool:
        """Whether all that can be shown is there."""
        return len(self.kept) > MAX_BYTES or self._line_ends >= min(self.past, self.first + MAX_LINES) - 1

    @property
    def total_lines(self) -> int:
        """Lines of what was taken in."""
        return self._line_ends + self._open_line

    @property
    def lines(self) -> int:
        """Wanted lines that exist."""
        return int(min(self.total_lines + 1, self.past)) - self.first

    def decoded(self) -> str:
        """What was kept. What is not UTF-8 is taken for Latin-1, and `encoding` then says so."""
        whole = self.size == len(self.kept)
        try:
            text = codecs.getincrementaldecoder("utf-8")().decode(self.kept, whole)
        except UnicodeDecodeError:
            self.encoding = "Latin-1"
            return self.kept.decode("latin-1")
        return text.removeprefix("\ufeff") if self.first == 1 else text

    def _offset(self, chunk: bytes, line: float) -> int:
        """Where the line, counted from 1, begins in `chunk`, or the nearest end of it."""
        ends = line - 1 - self._line_ends
        if ends <= 0:
            return 0
        if ends > len(chunk) or len(pieces := chunk.split(b"\n", int(ends))) <= ends:
            return len(chunk)
        return len(chunk) - len(pieces[-1])

    def _count_first_line(self, part: bytes) -> None:
        if not self._first_line_ended:
            end = part.find(b"\n")
            self._first_line_ended = end >= 0
            self.first_line_size += end if end >= 0 else len(part)
