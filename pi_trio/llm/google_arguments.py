"""The arguments of a call that come one value at a time, each with its place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

__all__ = ["GrowingArguments"]

_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\['([^']*)'\]")
_HIGHEST_INDEX = 10_000  # a place further on is a mistake, and would fill the list up to it
_VALUES = ("stringValue", "numberValue", "boolValue")


class GrowingArguments:
    """An object that grows by pieces such as `{"jsonPath": "$.edits[0].text", "stringValue": "a"}`.

    Text for the same place is joined, anything else replaced.
    """

    def __init__(self) -> None:
        self.value: dict[str, Any] = {}

    def update(self, arguments: Any) -> None:
        """Take arguments that came whole."""
        if isinstance(arguments, dict):
            self.value.update(arguments)

    def put(self, path: str, piece: Mapping[str, Any]) -> None:
        """Put the value of `piece` in its place. Raises `ValueError` for a place that cannot be."""
        steps = _steps(path)
        value = next((piece[key] for key in _VALUES if key in piece), None)
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # numbers come as doubles
        place: Any = self.value
        for step, following in pairwise(steps):
            place = _child(place, step, following)
        _set(place, steps[-1], value)


def _steps(path: str) -> list[str | int]:
    steps: list[str | int] = [
        int(index) if index else name or quoted for name, index, quoted in _STEP.findall(path)
    ]
    if not path.startswith("$") or not steps or not isinstance(steps[0], str):
        raise ValueError(f"not the place of an argument: {path[:80]!r}")
    return steps


def _child(place: Any, step: str | int, following: str | int) -> Any:
    """The container at `step`, made where there is none."""
    found = _get(place, step)
    if not isinstance(found, list if isinstance(following, int) else dict):
        found = [] if isinstance(following, int) else {}
        _put(place, step, found)
    return found


def _get(place: Any, step: str | int) -> Any:
    if isinstance(place, dict):
        return place.get(step)
    return place[step] if isinstance(step, int) and step < len(place) else None


def _set(place: Any, step: str | int, value: Any) -> None:
    before = _get(place, step)
    joined = isinstance(before, str) and isinstance(value, str)
    _put(place, step, before + value if joined else value)


def _put(place: Any, step: str | int, value: Any) -> None:
    if isinstance(place, dict):
        place[step] = value
    elif isinstance(step, int) and step <= _HIGHEST_INDEX:
        place.extend([None] * (step + 1 - len(place)))
        place[step] = value
    else:
        raise ValueError(f"not a place in a list: {step!r}")
