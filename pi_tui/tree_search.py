"""A search in the tree: what is written, what was found, and which of it the cursor is at. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from pi_tui.tree_rows import Rows

__all__ = ["Search"]


class Search:
    """`typing` while letters go into it. `found` are entries, None while they are looked for."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """No search."""
        self.text = ""
        self.typing = False
        self.found: Sequence[str] | None = ()
        self._at: list[int] = []

    @property
    def on(self) -> bool:
        """Whether letters search, or something may have been found."""
        return self.typing or self.active

    @property
    def active(self) -> bool:
        """Whether there is something to be found."""
        return bool(self.text)

    def write(self, text: str) -> None:
        """Look for something else."""
        self.text, self.found = text, None if text.strip() else ()
        self._at = []

    def sync(self, rows: Rows) -> None:
        """The rows are others, or other entries were found: tell which rows have them."""
        places = (rows.index(each) for each in self.found or ())
        self._at = sorted({at for at in places if at is not None})

    def has(self, at: int) -> bool:
        """Whether something was found in a row."""
        index = bisect_left(self._at, at)
        return index < len(self._at) and self._at[index] == at

    def next(self, at: int, by: int) -> int | None:
        """The next row, or with a negative `by` the one before, in which something was found; around the end.

        0 stays at a row that has something.
        """
        if not self._at:
            return None
        if by < 0:
            return self._at[bisect_left(self._at, at) - 1]
        index = bisect_left(self._at, at) if by == 0 else bisect_right(self._at, at)
        return self._at[index % len(self._at)]

    def told(self, at: int) -> str:
        """`/word  3 of 17`, for a person."""
        cursor = "▏" if self.typing else ""
        if not self.text:
            return f"/{cursor} names, labels and words; letters only search"
        if self.found is None:
            return f"/{self.text}{cursor}  …"
        if not self._at:
            return f"/{self.text}{cursor}  not found"
        here = bisect_right(self._at, at)
        return f"/{self.text}{cursor}  {here if self.has(at) else '–'} of {len(self._at)}"
