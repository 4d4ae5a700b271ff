"""What a request says of a message, made once and reused in every later request."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, TypeVar, cast

from pi_trio import codec
from pi_trio.surrogates import mend

__all__ = ["Encodings", "dumps"]

T = TypeVar("T")
V = TypeVar("V")


class Encodings:
    """What was made of values, by their identity. Each is kept as long as its value is.

    What is made must not hold the value itself, which would then be kept for good.
    """

    def __init__(self) -> None:
        self._made: dict[int, _Made] = {}

    def __len__(self) -> int:
        return len(self._made)

    def of(self, value: V, encode: Callable[[V], T]) -> T:
        """`encode(value)`, made at the first call."""
        made = self._made.get(id(value))
        if made is None:
            made = _Made(value, self._forget)
            made.key, made.result = id(value), encode(value)
            self._made[made.key] = made
        return cast("T", made.result)

    def _forget(self, made: Any) -> None:  # also when the program ends, and no module can be asked any more
        self._made.pop(made.key, None)


class _Made(weakref.ref[Any]):
    """A reference to a value, with what was made of it: there is one for each message of a history."""

    __slots__ = ("key", "result")

    key: int
    result: Any


def dumps(value: Any) -> bytes:
    """JSON that every host can read: none takes the lone surrogates an old session may hold."""
    data = codec.dumps(value)
    return codec.dumps(mend(value)) if b"\\ud" in data else data
