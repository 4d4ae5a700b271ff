"""Noticing a model that does not learn: the same calls, refused for the same reason, again and again.

Only calls whose body did not run count (unknown, invalid, blocked, cut off). A body that ran may
fail in the same way for long and then succeed, as when it waits for a server.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pi_trio.messages import AssistantMessage, ToolResultMessage

__all__ = ["RepeatedRefusal", "Repetition"]

LIMIT = 3


class RepeatedRefusal(Exception):  # noqa: N818 - it never leaves the loop
    """Ends a run. It is the model's doing, so the run tells it like a failed answer."""


class Repetition:
    """Follows the steps of a turn."""

    def __init__(self) -> None:
        self._last: list[Any] | None = None
        self._count = 0

    def check(self, answer: AssistantMessage, results: Sequence[ToolResultMessage]) -> None:
        """Raise `RepeatedRefusal` if this is the third step in a row with the same refused calls."""
        refused = _refused(answer, results)
        if refused is None or refused != self._last:
            self._last, self._count = refused, 0
        self._count += 1
        if refused is not None and self._count == LIMIT:
            names = ", ".join(dict.fromkeys(call.name for call in answer.tool_calls))
            text = f"the model called {names} {LIMIT} times in the same way, which was refused each time."
            raise RepeatedRefusal(f"Stopped: {text}")


def _refused(answer: AssistantMessage, results: Sequence[ToolResultMessage]) -> list[Any] | None:
    """The calls with their refusals; None if there are none, or a body ran."""
    if not results or any(result.duration_ms is not None for result in results):
        return None
    return [
        (call.name, call.arguments, result.content)
        for call, result in zip(answer.tool_calls, results, strict=True)
    ]
