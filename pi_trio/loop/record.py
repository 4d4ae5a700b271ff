"""When the pieces of an answer came, in a form small enough to keep with it."""

from __future__ import annotations

import trio

from pi_trio.llm.protocol import StreamEvent, TextDelta, ThinkingDelta, ToolCallDelta

__all__ = ["StreamRecord"]


class StreamRecord:
    """Triples of delay (milliseconds since the piece before), block and characters.

    The text itself is the message's; pieces of a block that came in the same millisecond
    are one triple. Arguments of a call are counted as JSON text.
    """

    def __init__(self) -> None:
        self.triples: list[list[int]] = []
        self._last = _now()

    def add(self, event: StreamEvent) -> None:
        """Take in the next event; only pieces count."""
        if not isinstance(event, (TextDelta, ThinkingDelta, ToolCallDelta)):
            return
        now = _now()
        last = self.triples[-1] if self.triples else None
        if last is not None and now == self._last and last[1] == event.content_index:
            last[2] += len(event.delta)
        else:
            self.triples.append([now - self._last, event.content_index, len(event.delta)])
            self._last = now


def _now() -> int:
    return int(trio.current_time() * 1000)
