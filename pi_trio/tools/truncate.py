"""How much of a text a model is given: whole lines, from the head or from the tail."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from itertools import islice
from typing import Any, Literal

from attrs import evolve, fields, frozen

__all__ = [
    "MAX_BYTES",
    "MAX_LINES",
    "MAX_LINE_CHARACTERS",
    "Truncation",
    "cut_line",
    "format_size",
    "truncate_head",
    "truncate_tail",
]

MAX_LINES = 2000
MAX_BYTES = 51_200
MAX_LINE_CHARACTERS = 500

_FIRST_MARK = "\u0300"
_MAX_LETTER = 32


@frozen(kw_only=True)
class Truncation:
    """The part of a text that was kept, and how much there was. Sizes are bytes of UTF-8.

    A final line end starts no further line and counts for no limit. `last_line_partial`: not
    even the last line fitted, so `content` is its end. `first_line_exceeds_limit`: not even
    the first line fitted, so `content` is empty.
    """

    content: str
    truncated: bool = False
    truncated_by: Literal["lines", "bytes"] | None = None
    total_lines: int
    total_bytes: int
    output_lines: int
    output_bytes: int
    last_line_partial: bool = False
    first_line_exceeds_limit: bool = False
    max_lines: int = MAX_LINES
    max_bytes: int = MAX_BYTES

    def details(self) -> dict[str, Any]:
        """As it stands in a tool's details, with pi's names: without the content, which is in the result.

        A second copy there would double what a session costs in memory and on disk.
        """
        return {_CAMEL[name]: getattr(self, name) for name in _CAMEL}


def truncate_head(text: str, *, max_lines: int = MAX_LINES, max_bytes: int = MAX_BYTES) -> Truncation:
    """The first whole lines of `text` that fit."""
    lines = _lines(text)
    whole = _whole(text, lines, max_lines, max_bytes)
    if _fits(whole):
        return whole
    count, by = _fitting(lines, max_lines, max_bytes)
    part = _part(whole, "\n".join(lines[:count]), count, by)
    return evolve(part, first_line_exceeds_limit=count == 0)


def truncate_tail(text: str, *, max_lines: int = MAX_LINES, max_bytes: int = MAX_BYTES) -> Truncation:
    """The last whole lines of `text` that fit, or the end of its last line."""
    lines = _lines(text)
    whole = _whole(text, lines, max_lines, max_bytes)
    if _fits(whole):
        return whole
    count, by = _fitting(reversed(lines), max_lines, max_bytes)
    if count == 0:
        return evolve(_part(whole, _end_of(lines[-1], max_bytes), 1, by), last_line_partial=True)
    return _part(whole, "\n".join(lines[-count:]), count, by)


def cut_line(line: str, limit: int = MAX_LINE_CHARACTERS) -> str:
    """`line`, or its first `limit` characters and a mark; fewer where a letter has several."""
    return line if len(line) <= limit else f"{line[: _letter_start(line, limit)]}... [truncated]"


def format_size(size: int) -> str:
    """Bytes for a person: `512B`, `50.0KB`, `3.2MB`."""
    if size < 1024:
        return f"{size}B"
    if size < 1024 * 1024:
        return f"{size / 1024:.1f}KB"
    return f"{size / (1024 * 1024):.1f}MB"


def _lines(text: str) -> list[str]:
    """Split at line feeds alone: other line characters are part of a line."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _whole(text: str, lines: list[str], max_lines: int, max_bytes: int) -> Truncation:
    size = _size(text)
    return Truncation(
        content=text,
        total_lines=len(lines),
        total_bytes=size,
        output_lines=len(lines),
        output_bytes=size,
        max_lines=max_lines,
        max_bytes=max_bytes,
    )


def _fits(whole: Truncation) -> bool:
    size = whole.total_bytes - whole.content.endswith("\n")
    return whole.total_lines <= whole.max_lines and size <= whole.max_bytes


def _part(whole: Truncation, content: str, count: int, by: Literal["lines", "bytes"]) -> Truncation:
    return evolve(
        whole,
        content=content,
        truncated=True,
        truncated_by=by,
        output_lines=count,
        output_bytes=_size(content),
    )


def _fitting(lines: Iterable[str], max_lines: int, max_bytes: int) -> tuple[int, Literal["lines", "bytes"]]:
    """How many of the lines fit, and what stopped the next one."""
    room = max_bytes + 1  # the last line that is kept brings no line end
    for count, line in enumerate(islice(lines, max_lines)):
        room -= _size(line) + 1
        if room < 0:
            return count, "bytes"
    return max_lines, "lines"


def _end_of(line: str, max_bytes: int) -> str:
    """The last letters of `line` that fit."""
    data = line.encode("utf-8", "surrogatepass")
    start = max(0, len(data) - max_bytes)
    while start < len(data) and data[start] & 0xC0 == 0x80:
        start += 1
    end = data[start:].decode("utf-8", "surrogatepass")
    at = len(line) - len(end)
    ends = range(at, min(at + _MAX_LETTER, len(line)) + 1)
    return line[next((each for each in ends if _letter_start(line, each) == each), at) :]


def _letter_start(text: str, at: int) -> int:
    """Where the letter begins that `at` is in: one may be several characters, as é, 👩‍👧 and 🇳🇴 can be."""
    if not 0 < at < len(text) or text[at] < _FIRST_MARK:
        return at
    least = max(0, at - _MAX_LETTER)
    start = next((each for each in range(at, least, -1) if not _goes_on(text[each - 1], text[each])), least)
    if start == least > 0:
        return at  # no letter of a language is that long
    halves = 0
    while start > halves and _is_half_flag(text[start]) and _is_half_flag(text[start - halves - 1]):
        halves += 1
    return start - halves % 2


def _goes_on(before: str, character: str) -> bool:
    """Whether `character` belongs to the same letter as the one before it."""
    return (
        unicodedata.category(character) in ("Mn", "Me", "Mc")
        or "\U0001f3fb" <= character <= "\U0001f3ff"  # skin colours
        or "\u200d" in (before, character)  # the joiner
        or "\u1160" <= character <= "\u11ff"  # vowels and finals of Korean
        or "\U000e0020" <= character <= "\U000e007f"  # tags, as in regional flags
    )


def _is_half_flag(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.title() for part in rest)


_CAMEL = {each.name: _camel(each.name) for each in fields(Truncation) if each.name != "content"}
