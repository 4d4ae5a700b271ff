"""Heights of many items with fast sums: which item is at line y, and where does item i begin."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["Heights"]


class Heights:
    """A Fenwick tree over item heights; every operation but `reset` costs O(log n)."""

    def __init__(self, heights: Iterable[int] = ()) -> None:
        self.reset(heights)

    def reset(self, heights: Iterable[int]) -> None:
        """Start again with these heights."""
        self._heights = list(heights)
        self._tree = [0, *self._heights]
        size = len(self._tree)
        for at in range(1, size):
            above = at + (at & -at)
            if above < size:
                self._tree[above] += self._tree[at]

    def __len__(self) -> int:
        return len(self._heights)

    def __getitem__(self, index: int) -> int:
        return self._heights[index]

    @property
    def total(self) -> int:
        """All lines."""
        return self.before(len(self._heights))

    def append(self, height: int) -> None:
        """One more item at the end."""
        at = len(self._tree)
        start = at - (at & -at)
        self._tree.append(height + self.before(at - 1) - self.before(start))
        self._heights.append(height)

    def pop(self) -> None:
        """Forget the last item."""
        self._heights.pop()
        self._tree.pop()

    def set(self, index: int, height: int) -> None:
        """Correct the height of an item."""
        change = height - self._heights[index]
        self._heights[index] = height
        at = index + 1
        while change and at < len(self._tree):
            self._tree[at] += change
            at += at & -at

    def before(self, index: int) -> int:
        """The line at which item `index` begins."""
        total = 0
        while index > 0:
            total += self._tree[index]
            index -= index & -index
        return total

    def find(self, line: int) -> tuple[int, int]:
        """The item that covers `line`, and the line within it. Past the end: `(len, surplus)`."""
        at, step = 0, 1 << len(self._tree).bit_length()
        while step:
            ahead = at + step
            if ahead < len(self._tree) and self._tree[ahead] <= line:
                at, line = ahead, line - self._tree[ahead]
            step >>= 1
        return at, line
