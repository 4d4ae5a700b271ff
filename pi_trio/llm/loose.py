"""Reading JSON that may have any shape: what is not as it should be is as if it were not there."""

from __future__ import annotations

from typing import Any

import orjson

from pi_trio import codec

__all__ = ["CutShortError", "count", "get", "load_chunk", "objects", "text"]


class CutShortError(ValueError):
    """JSON that is right as far as it goes, as where a connection broke."""


def load_chunk(data: str) -> dict[str, Any]:
    """The object of one event of a stream. Raises `CutShortError` for half of one, else `ValueError`.

    It holds no number worth the codec's care, and this is the hottest line of a stream.
    """
    try:
        chunk = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        if error.pos >= len(data):
            raise CutShortError(str(error)) from None
        chunk = codec.loads(data)
    if not isinstance(chunk, dict):
        raise ValueError(f"a chunk is not an object: {data[:80]}")
    return chunk


def get(value: Any, key: str) -> Any:
    """A field of an object."""
    return value.get(key) if isinstance(value, dict) else None


def text(value: Any, key: str) -> str:
    """A text field of an object, else an empty text."""
    found = get(value, key)
    return found if isinstance(found, str) else ""


def count(value: Any, key: str) -> int:
    """A whole number of an object, else 0."""
    found = get(value, key)
    return found if isinstance(found, int) and found > 0 else 0


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects of a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
