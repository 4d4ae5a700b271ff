"""Where a text that is not in a file may have been meant, for the message that says so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from difflib import get_close_matches
from itertools import zip_longest

from pi_trio.tools.truncate import cut_line

__all__ = ["nearest_hint"]

_COMPARED_LINES = 5000
_COMPARED_CHARACTERS = 300
_SHOWN_CHARACTERS = 200


def nearest_hint(text: str, wanted: str) -> str | None:
    """A sentence about the lines of `text` that are most like `wanted`; None if none are."""
    lines, sought = text.split("\n"), wanted.strip("\n").split("\n")
    start = _by_equal_lines(lines, sought)
    if start is None:
        start = _by_similar_line(lines, sought)
    if start is None:
        return None
    for number, (there, asked) in enumerate(zip_longest(lines[start : start + len(sought)], sought)):
        if there != asked:
            has = "the file ends" if there is None else f"the file has {_shown(there)}"
            return f"Nearest is line {start + number + 1}: {has} where oldText has {_shown(asked or '')}."
    return f"Nearest is line {start + 1}: only blanks or line ends around the text differ."


def _shown(line: str) -> str:
    return repr(cut_line(line, _SHOWN_CHARACTERS))


def _by_equal_lines(lines: Sequence[str], sought: Sequence[str]) -> int | None:
    """Where most lines are the same but for indentation. Each same line votes for a start."""
    places: dict[str, list[int]] = {}
    for index, line in enumerate(sought):
        if line.strip():
            places.setdefault(line.strip(), []).append(index)
    votes = Counter(
        index - place
        for index, line in enumerate(lines)
        for place in places.get(line.strip(), ())
        if index >= place
    )
    return votes.most_common(1)[0][0] if votes else None


def _by_similar_line(lines: Sequence[str], sought: Sequence[str]) -> int | None:
    """Where a line is like the first one that is not blank; in the first part of a long file."""
    place = next((index for index, line in enumerate(sought) if line.strip()), None)
    if place is None or len(sought[place]) > _COMPARED_CHARACTERS:
        return None
    short = [line for line in lines[:_COMPARED_LINES] if len(line) <= _COMPARED_CHARACTERS]
    close = get_close_matches(sought[place], short, 1)
    return max(0, lines.index(close[0]) - place) if close else None
