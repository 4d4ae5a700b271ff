"""A sequence that is frozen although the list behind it grows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar, overload

__all__ = ["Prefix", "frozen_sequence"]

T_co = TypeVar("T_co", covariant=True)


class Prefix(Sequence[T_co]):
    """What a list holds now, if nothing is ever done to it but to append. Costs no copy.

    A conversation is sent again with every request; copying it each time would make a step cost
    what is old. Equal to any sequence with equal items.
    """

    __slots__ = ("_count", "_items")

    def __init__(self, items: list[T_co]) -> None:
        self._items = items
        self._count = len(items)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[T_co]:
        return islice(self._items, self._count)

    @overload
    def __getitem__(self, index: int) -> T_co: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T_co, ...]: ...
    def __getitem__(self, index: int | slice) -> T_co | tuple[T_co, ...]:
        if isinstance(index, slice):
            return tuple(self._items[slice(*self._bounds(index))])
        return self._items[range(self._count)[index]]

    def _bounds(self, index: slice) -> tuple[int, int | None, int]:
        start, stop, step = index.indices(self._count)
        return start, None if stop < 0 else stop, step  # backwards, -1 would be the last one

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return len(self) == len(other) and all(mine == its for mine, its in zip(self, other, strict=True))

    def __repr__(self) -> str:
        return repr(tuple(self))


def frozen_sequence(items: Any) -> Any:
    """The converter of a field that may hold a prefix; what is neither that nor a tuple is copied."""
    return items if isinstance(items, Prefix) else tuple(items)
