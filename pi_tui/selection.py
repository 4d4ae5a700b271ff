"""What is selected of a text in items and lines: pure."""

from __future__ import annotations

from typing import TypeAlias

from attrs import frozen
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

__all__ = ["ALL", "Selection", "Spot", "marked", "word_at"]

Spot: TypeAlias = tuple[int, int, int]
"""An item, a line of it, and a cell of that. Items and their lines stay what they are while others come."""

ALL = 1_000_000
"""A cell behind the end of every line."""


@frozen
class Selection:
    """From `anchor` to `head`, where it is being drawn to, whichever comes first."""

    anchor: Spot
    head: Spot

    @property
    def ends(self) -> tuple[Spot, Spot]:
        """Its first spot, and the one behind its last."""
        return min(self.anchor, self.head), max(self.anchor, self.head)

    def cells(self, item: int, line: int) -> tuple[int, int] | None:
        """The cells that are selected of a line: the first, and the one behind the last."""
        first, last = self.ends
        if not first[:2] <= (item, line) <= last[:2]:
            return None
        begin = first[2] if first[:2] == (item, line) else 0
        end = last[2] if last[:2] == (item, line) else ALL
        return (begin, end) if begin < end else None


def marked(strip: Strip, begin: int, end: int, style: Style) -> Strip:
    """The strip, with a style over some of its cells."""
    width = strip.cell_length
    begin, end = min(begin, width), min(end, width)
    over = [Segment(text, (own or Style()) + style) for text, own, _ in strip.crop(begin, end)]
    return Strip([*strip.crop(0, begin), *over, *strip.crop(end, width)], width)


def word_at(text: str, cell: int) -> tuple[int, int]:
    """The cells of the word, or of the run of other signs, at a cell of a line."""
    at = begin = 0
    for at, sign in enumerate(text):
        begin = cell_len(text[:at])
        if begin + cell_len(sign) > cell:
            break
    else:
        return cell, cell
    kind = _kind(text[at])
    first = last = at
    while first > 0 and _kind(text[first - 1]) == kind:
        first -= 1
    while last < len(text) and _kind(text[last]) == kind:
        last += 1
    return cell_len(text[:first]), cell_len(text[:last])


def _kind(sign: str) -> str:
    """What holds together under a double click: words with the signs of paths and names."""
    if sign.isalnum() or sign in "_-./~@:":
        return "word"
    return "space" if sign.isspace() else "sign"
