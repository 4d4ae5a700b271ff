"""Sums over a turn: what stands in the line at its end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from pi_trio.messages import AssistantMessage
from pi_tui.shown import Call, Item, Stats

__all__ = ["turn_stats"]


def turn_stats(
    items: Sequence[Item], turn: Item, timestamp: Callable[[str], str], place: Callable[[str], int | None]
) -> Stats:
    """Sums over the turn that ends at the item `turn`, none if nothing came of it.

    `timestamp` gives when an entry was written, and `place` where it stands in the file: what stands
    before the beginning of the turn is not its, even if no other turn has ended there.
    """
    begun = place(turn.ids[1]) if len(turn.ids) > 1 else None
    start = at = items.index(turn)
    while start and items[start - 1].kind != "turn" and _follows(place(items[start - 1].key), begun):
        start -= 1
    shown = [item for item in items[start:at] if item.ids]
    if not shown:
        return Stats()
    answers = [item.message for item in shown if isinstance(item.message, AssistantMessage)]
    calls = [call for item in shown for call in item.calls.values()]
    times = [*turn.ids[1:], *(item.key for item in shown)]
    return Stats(
        tools=sum(len(answer.tool_calls) for answer in answers),
        files=len({path for call in calls if (path := _changed_file(call))}),
        tokens=sum(answer.usage.total_tokens for answer in answers),
        cost=sum(answer.usage.cost.total for answer in answers),
        seconds=_seconds(next(filter(None, map(timestamp, times)), ""), timestamp(turn.key)),
        complete=not any(item.missing for item in shown),
    )


def _follows(place: int | None, begun: int | None) -> bool:
    return place is None or begun is None or place > begun


def _changed_file(call: Call) -> str | None:
    path = call.args.get("path") if call.state == "done" and call.name in ("edit", "write") else None
    return path if isinstance(path, str) else None


def _seconds(first: str, last: str) -> float:
    try:
        return (datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds()
    except ValueError:
        return 0.0
