"""Finding the places that edits mean. All are looked for in the original text.

First letter for letter. If that finds nothing, again without regard for trailing blanks,
Unicode forms, and the kinds of quotes, dashes and spaces, which models do not keep apart.
Either way only what was matched is replaced, and only where old and new text differ.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

from attrs import frozen

from pi_trio.tools.document import Replacement, with_line_feeds
from pi_trio.tools.failure import ToolError
from pi_trio.tools.nearest import nearest_hint

__all__ = ["Edit", "common_start", "find_replacements"]

_ALIKE = str.maketrans(
    dict.fromkeys("\u2018\u2019\u201a\u201b", "'")
    | dict.fromkeys("\u201c\u201d\u201e\u201f", '"')
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-")
)


@frozen
class Edit:
    """Put `new` where `old` is."""

    old: str
    new: str


def find_replacements(text: str, edits: Sequence[Edit], path: str) -> list[Replacement]:
    """What to replace, in order. Raises `ToolError` for edits that are not to be made.

    Those are: empty text, text that is not there or is there more than once, edits that
    overlap, and edits that change nothing.
    """
    tolerant: _Tolerant | None = None
    found: list[tuple[Replacement, int]] = []
    for index, edit in enumerate(edits):
        if not edit.old:
            raise ToolError(f"edits[{index}].oldText is empty.")
        old = with_line_feeds(edit.old)
        spans = list(_spans(text, old))
        if not spans:
            tolerant = tolerant or _Tolerant(text)
            spans = list(tolerant.spans(old))
        if not spans:
            raise _not_found(text, old, index, path)
        start, end = _only(spans, index, path)
        found.append((Replacement(start, end, with_line_feeds(edit.new)), index))
    found.sort()
    _check_apart(found, path)
    narrowed = [_narrowed(text, each) for each, _ in found]
    changes = [each for each in narrowed if each.text or each.end > each.start]
    if not changes:
        raise ToolError(f"The edits change nothing in {path}: old and new text are the same.")
    return changes


def _spans(text: str, wanted: str) -> Iterator[tuple[int, int]]:
    """Every place, overlapping ones too."""
    at = text.find(wanted)
    while at >= 0:
        yield at, at + len(wanted)
        at = text.find(wanted, at + 1)


def _not_found(text: str, old: str, index: int, path: str) -> ToolError:
    hint = nearest_hint(text, old)
    return ToolError(
        f"edits[{index}].oldText was not found in {path}. It must be what the file has, blanks and line ends "
        f"included. {hint or 'Read the file again.'}"
    )


def _only(spans: list[tuple[int, int]], index: int, path: str) -> tuple[int, int]:
    if len(spans) > 1:
        raise ToolError(
            f"edits[{index}].oldText is in {path} {len(spans)} times. "
            "Add lines around it until it stands for one place."
        )
    return spans[0]


def _check_apart(found: list[tuple[Replacement, int]], path: str) -> None:
    for (one, first), (other, second) in pairwise(found):
        if other.start < one.end:
            raise ToolError(f"edits[{first}] and edits[{second}] overlap in {path}. Make one edit of them.")


def _narrowed(text: str, whole: Replacement) -> Replacement:
    """Without what old and new text have in common at both ends."""
    old, new = text[whole.start : whole.end], whole.text
    head = common_start(old, new)
    tail = common_start(old[head:][::-1], new[head:][::-1])
    return Replacement(whole.start + head, whole.end - tail, new[head : len(new) - tail])


def common_start(one: Sequence[str], other: Sequence[str]) -> int:
    """How many items, from the first on, are the same in both."""
    differing = (index for index, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1])
    return next(differing, min(len(one), len(other)))


# ---------------------------------------------------------------- tolerant


class _Tolerant:
    """A text folded line by line, and the way back from an offset in it."""

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        folded = [_folded(line) for line in self._lines]
        self._text = "\n".join(folded)
        self._starts = _line_starts(self._lines)
        self._folded_starts = _line_starts(folded)

    def spans(self, wanted: str) -> Iterator[tuple[int, int]]:
        """Every place, as offsets of the original text. Blanks alone are nowhere."""
        folded = "\n".join(map(_folded, wanted.split("\n")))
        if folded.strip():
            for start, end in _spans(self._text, folded):
                yield self._original(start, up=False), self._original(end, up=True)

    def _original(self, offset: int, up: bool) -> int:
        index = bisect_right(self._folded_starts, offset) - 1
        return self._starts[index] + _unfolded(self._lines[index], offset - self._folded_starts[index], up)


def _line_starts(lines: list[str]) -> list[int]:
    return list(accumulate((len(line) + 1 for line in lines[:-1]), initial=0))


def _folded(line: str) -> str:
    if not line.isascii():
        line = "".join(map(_fold, _clusters(line)))
    return line.rstrip()


def _fold(cluster: str) -> str:
    return unicodedata.normalize("NFKC", cluster).translate(_ALIKE)


def _unfolded(line: str, offset: int, up: bool) -> int:
    """The place in `line` for one in its folded form; inside a cluster, its start or its end."""
    if line.isascii():
        return offset
    place = done = 0
    for cluster in _clusters(line):
        step = len(_fold(cluster))
        if done >= offset or (not up and done + step > offset):
            break
        done += step
        place += len(cluster)
    return place


def _clusters(line: str) -> Iterator[str]:
    """Letters with the marks, and Korean vowels and finals, that may be composed with them."""
    start = 0
    for at, character in enumerate(line):
        if at > start and not (unicodedata.combining(character) or "\u1160" <= character <= "\u11ff"):
            yield line[start:at]
            start = at
    if line:
        yield line[start:]
