"""Chips: what stands in the prompt for something longer or other than text, and counts as one letter.

A chip is a mark such as `[paste #2 +214 lines]`. It stands for what it was made for only while
it is whole, and only in the run of the program in which it was made; numbers are never used
twice, so that an old draft cannot mean a new paste.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from attrs import define, field
from rich.cells import split_graphemes

__all__ = ["Chips", "unit_starts"]

_MARK = re.compile(r"\[(?:paste|image) #\d+ [^\]\n]*\]")


@define
class Chips:
    """All chips of this run, by their marks."""

    pastes: dict[str, str] = field(factory=dict)
    images: dict[str, Path] = field(factory=dict)
    _made: int = 0

    def fold(self, text: str) -> str:
        """The mark of a pasted text."""
        lines = text.count("\n") + 1
        mark = self._mark("paste", f"+{lines} lines" if lines > 1 else f"{len(text)} chars")
        self.pastes[mark] = text
        return mark

    def attach(self, path: Path) -> str:
        """The mark of an image file."""
        mark = self._mark("image", re.sub(r"[\]\s]+", " ", path.name))
        self.images[mark] = path
        return mark

    def unfold(self, text: str) -> str:
        """The text with everything that was pasted in its place."""
        return _MARK.sub(lambda mark: self.pastes.get(mark[0], mark[0]), text)

    def spelled(self, text: str) -> str:
        """The text as it means the same without chips: pastes in their places, images as paths."""
        return _MARK.sub(lambda mark: str(self.images.get(mark[0], mark[0])), self.unfold(text))

    def disarm(self, text: str) -> str:
        """A text from elsewhere, in which nothing is taken for a chip."""
        return _MARK.sub(lambda mark: f"({mark[0][1:-1]})" if self._is_chip(mark[0]) else mark[0], text)

    def images_in(self, text: str) -> list[Path]:
        """The images whose marks are in a text, in their order."""
        return [self.images[mark[0]] for mark in _MARK.finditer(text) if mark[0] in self.images]

    def spans(self, line: str) -> list[tuple[int, int]]:
        """Where chips are in a line."""
        return [mark.span() for mark in _MARK.finditer(line) if self._is_chip(mark[0])]

    def _is_chip(self, mark: str) -> bool:
        return mark in self.pastes or mark in self.images

    def _mark(self, kind: str, about: str) -> str:
        self._made += 1
        return f"[{kind} #{self._made} {about}]"


@lru_cache(maxsize=256)
def unit_starts(line: str, chips: tuple[tuple[int, int], ...]) -> tuple[int, ...]:
    """The columns where a cursor may stand: at the edges of visible letters and of chips."""
    letters = range(len(line)) if line.isascii() else (start for start, _ in _letters(line))
    inside = {at for start, end in chips for at in range(start + 1, end)}
    return (*(at for at in letters if at not in inside), len(line))


def _letters(line: str) -> Iterator[tuple[int, int]]:
    """What a person sees as one letter: joined emoji, marks on letters, and flags, which are two letters."""
    waiting: int | None = None
    for start, end, _ in split_graphemes(line)[0]:
        if _is_flag_half(line[start]):
            if waiting is None:
                waiting = start
                continue
            start, waiting = waiting, None
        elif waiting is not None:
            yield waiting, start
            waiting = None
        yield start, end
    if waiting is not None:
        yield waiting, len(line)


def _is_flag_half(letter: str) -> bool:
    return "\U0001f1e6" <= letter <= "\U0001f1ff"
