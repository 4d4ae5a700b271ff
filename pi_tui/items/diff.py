"""A change, told by signs and by colour: below each other, or side by side where there is room."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from pi_tui.items.paint import Look, painted, wrapped

__all__ = ["SPLIT_FROM", "diff_strips"]

SPLIT_FROM = 100
"""From this width on what was and what is stand side by side."""

_BETWEEN = " │ "


def diff_strips(diff: str, look: Look) -> list[Strip]:
    """A diff of which each line begins with its sign."""
    lines = diff.split("\n")
    if look.width >= SPLIT_FROM:
        return [strip for left, right in _pairs(lines) for strip in _beside(left, right, look)]
    return [strip for line in lines for strip in wrapped(line, look.width, _style(line, look))]


def _pairs(lines: list[str]) -> Iterator[tuple[str, str]]:
    """What stands side by side: a line that went with one that came, and what stayed with itself."""
    gone: list[str] = []
    come: list[str] = []
    for line in [*lines, ""]:
        if line.startswith("-") and not come:
            gone.append(line)
        elif line.startswith("+"):
            come.append(line)
        else:
            yield from zip_longest(gone, come, fillvalue="")
            gone, come = ([line], []) if line.startswith("-") else ([], [])
            if not gone and line:
                yield line, line
    yield from ((line, "") for line in gone)


def _beside(left: str, right: str, look: Look) -> Iterator[Strip]:
    half = (look.width - len(_BETWEEN)) // 2
    columns = [wrapped(text, half, _style(text, look)) for text in (left, right)]
    blank, rule = painted([], half), Segment(_BETWEEN, look.theme["borderMuted"])
    for one, two in zip_longest(*columns, fillvalue=blank):
        yield painted([*one, rule, *two], look.width)


def _style(line: str, look: Look) -> Style:
    if line.startswith("+"):
        return look.theme["toolDiffAdded"]
    return look.theme["toolDiffRemoved" if line.startswith("-") else "toolDiffContext"]
