"""Sums over a turn: what stands in the line at its end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from pi_trio.messages import AssistantMessage
from pi_tui.shown import Call, Item, Stats

__all__ = ["turn_stats"]


def turn_stats(items: Sequence[Item], turn: Item, timestamp: Callable[[Item], str]) -> Stats:
    """Sums over the turn that ends at the item `turn`; `timestamp` gives when an item was written."""
    at = items.index(turn)
    start = at
    while start and items[start - 1].kind != "turn":
        start -= 1
    shown = items[start:at]
    answers = [item.message for item in shown if isinstance(item.message, AssistantMessage)]
    calls = [call for item in shown for call in item.calls.values()]
    return Stats(
        tools=sum(len(answer.tool_calls) for answer in answers),
        files=len({path for call in calls if (path := _changed_file(call))}),
        tokens=sum(answer.usage.total_tokens for answer in answers),
        cost=sum(answer.usage.cost.total for answer in answers),
        seconds=_seconds(next(filter(None, map(timestamp, shown)), ""), timestamp(turn)),
        complete=not any(item.missing for item in shown),
    )


def _changed_file(call: Call) -> str | None:
    path = call.args.get("path") if call.state == "done" and call.name in ("edit", "write") else None
    return path if isinstance(path, str) else None


def _seconds(first: str, last: str) -> float:
    try:
        return (datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds()
    except ValueError:
        return 0.0
