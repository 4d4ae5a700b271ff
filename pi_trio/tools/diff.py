"""What an edit changed, as a patch and as lines for a screen.

Made from the places that were replaced, so that its cost is that of the edit and not that
of the file.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import accumulate, pairwise

from attrs import define, frozen

from pi_trio.tools.document import Replacement
from pi_trio.tools.matching import common_start
from pi_trio.tools.truncate import cut_line, truncate_head

__all__ = ["Diff"]

CONTEXT = 4
MAX_COMPARED = 1000
"""Lines of one replaced place up to which unchanged lines inside it are looked for."""

_LINE = re.compile(r"[^\n]*\n|[^\n]+")


class _Lines:
    """The lines of a text, with their line feeds. Of each only the start is kept: there may be millions."""

    def __init__(self, text: str) -> None:
        parts = text.split("\n")
        self.starts = list(accumulate(map((1).__add__, map(len, parts)), initial=0))
        if parts[-1]:
            self.starts[-1] = len(text)
        else:
            self.starts.pop()  # nothing follows the last line feed
        self._text = text

    def __len__(self) -> int:
        return len(self.starts) - 1

    def between(self, first: int, end: int) -> list[str]:
        """The lines from `first` up to `end`."""
        return [self._text[one:two] for one, two in pairwise(self.starts[first : end + 1])]

    def at(self, offset: int) -> int:
        """The line that has the offset; the end of the text belongs to the last one."""
        return min(bisect_right(self.starts, offset) - 1, len(self) - 1)


@frozen
class _Change:
    """The old lines from `start` up to `end` became `lines`. `shift` is what earlier changes added."""

    start: int
    end: int
    lines: Sequence[str]
    shift: int = 0

    @property
    def new_start(self) -> int:
        return self.start + self.shift


@define
class Diff:
    """Of a text with line feeds, before its replacements, which are in order and apart."""

    _old: _Lines
    _changes: list[_Change]

    @classmethod
    def of(cls, text: str, replacements: Sequence[Replacement]) -> Diff:
        """What the replacements change in `text`."""
        old = _Lines(text)
        changes: list[_Change] = []
        shift = 0
        for place in _places(text, old, replacements):
            for each in _refined(old, place):
                changes.append(_Change(each.start, each.end, each.lines, shift))
                shift += len(each.lines) - (each.end - each.start)
        return cls(old, changes)

    @property
    def first_changed_line(self) -> int:
        """In the new text, counted from 1."""
        return self._changes[0].new_start + 1

    def patch(self, path: str) -> str:
        """In the unified form, with four lines around each change."""
        parts = [f"--- {path}\n+++ {path}\n"]
        for hunk in self._hunks():
            start, end = self._around(hunk)
            new_start = start + hunk[0].shift
            new_count = end - start + sum(len(each.lines) - (each.end - each.start) for each in hunk)
            parts.append(f"@@ -{_range(start, end - start)} +{_range(new_start, new_count)} @@\n")
            parts += (_patch_line(sign, line) for sign, _, line in self._rows(hunk))
        return "".join(parts)

    def display(self) -> str:
        """Sign, line number and text a row. Long rows and long diffs are cut."""
        width = len(str(len(self._old) + sum(len(each.lines) for each in self._changes)))
        gap = f" {'':>{width}} ..."
        rows: list[str] = []
        for hunk in self._hunks():
            rows += [gap] if rows else []
            rows += (
                f"{sign}{number:>{width}} {cut_line(line.removesuffix(chr(10)))}"
                for sign, number, line in self._rows(hunk)
            )
        shown = truncate_head("\n".join(rows))
        if not shown.truncated:
            return shown.content
        return f"{shown.content}\n{gap} {shown.total_lines - shown.output_lines} more lines"

    def _hunks(self) -> Iterator[list[_Change]]:
        """Changes whose surroundings touch belong together."""
        hunk: list[_Change] = []
        for change in self._changes:
            if hunk and change.start - hunk[-1].end > 2 * CONTEXT:
                yield hunk
                hunk = []
            hunk.append(change)
        if hunk:
            yield hunk

    def _around(self, hunk: list[_Change]) -> tuple[int, int]:
        return max(0, hunk[0].start - CONTEXT), min(len(self._old), hunk[-1].end + CONTEXT)

    def _rows(self, hunk: list[_Change]) -> Iterator[tuple[str, int, str]]:
        """Sign, line number (of the old text, for added lines of the new one) and line."""
        at, end = self._around(hunk)
        for change in hunk:
            yield from self._old_rows(" ", at, change.start)
            yield from self._old_rows("-", change.start, change.end)
            yield from (("+", change.new_start + 1 + index, line) for index, line in enumerate(change.lines))
            at = change.end
        yield from self._old_rows(" ", at, end)

    def _old_rows(self, sign: str, start: int, end: int) -> Iterator[tuple[str, int, str]]:
        return ((sign, start + 1 + index, line) for index, line in enumerate(self._old.between(start, end)))


def _places(text: str, old: _Lines, replacements: Sequence[Replacement]) -> Iterator[_Change]:
    """The lines that replacements touch; those that share a line are one place."""
    group: list[Replacement] = []
    for each in replacements:
        if group and old.at(each.start) > old.at(group[-1].end):
            yield _place(text, old, group)
            group = []
        group.append(each)
    yield _place(text, old, group)


def _place(text: str, old: _Lines, group: list[Replacement]) -> _Change:
    first, last = old.at(group[0].start), old.at(group[-1].end)
    pieces, done = [], old.starts[first]
    for each in group:
        pieces += [text[done : each.start], each.text]
        done = each.end
    pieces.append(text[done : old.starts[last + 1]])
    return _Change(first, last + 1, _LINE.findall("".join(pieces)))


def _refined(old: _Lines, place: _Change) -> Iterator[_Change]:
    """Only the lines that differ."""
    before, after = old.between(place.start, place.end), place.lines
    head = common_start(before, after)
    tail = common_start(before[head:][::-1], after[head:][::-1])
    start, end = place.start + head, place.end - tail
    before, after = before[head : len(before) - tail], after[head : len(after) - tail]
    if len(before) + len(after) > MAX_COMPARED:
        yield _Change(start, end, after)
        return
    for tag, one, two, new_one, new_two in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag != "equal":
            yield _Change(start + one, start + two, after[new_one:new_two])


def _range(start: int, count: int) -> str:
    return f"{start + 1 if count else start},{count}"


def _patch_line(sign: str, line: str) -> str:
    return f"{sign}{line}" if line.endswith("\n") else f"{sign}{line}\n\\ No newline at end of file\n"
