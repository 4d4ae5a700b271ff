"""An answer while it streams: the fold of its events, taken only when somebody looks.

Appending is all that a delta costs. A view remembers how many events it stands for, so it
never changes when later deltas arrive, and a stream nobody looks into is never joined.
"""

from __future__ import annotations

import attrs
from attrs import define, field, frozen

from pi_trio.llm.growing_json import GrowingObject
from pi_trio.llm.protocol import (
    StreamEvent,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from pi_trio.messages import (
    AssistantContent,
    AssistantMessage,
    TextContent,
    ThinkingContent,
    ToolCall,
    Usage,
    is_visible,
)

__all__ = ["PartialMessage", "PartialView"]


@define
class _Block:
    """One content block so far: pieces of text, a call with growing arguments, or a whole call."""

    kind: type[TextContent] | type[ThinkingContent] | type[ToolCall]
    pieces: list[str] = field(factory=list)
    call: ToolCall | None = None
    arguments: GrowingObject | None = None

    def value(self) -> AssistantContent:
        if self.call is not None:
            arguments = self.arguments
            return self.call if arguments is None else attrs.evolve(self.call, arguments=arguments.value())
        text = "".join(self.pieces)
        self.pieces = [text]
        return ThinkingContent(text) if self.kind is ThinkingContent else TextContent(text)


class PartialMessage:
    """Grows by `apply`. `base` gives the fields that are known before the first event."""

    def __init__(self, base: AssistantMessage) -> None:
        self._base = base
        self._events: list[StreamEvent] = []
        self._folded = 0
        self._blocks: dict[int, _Block] = {}

    def apply(self, event: StreamEvent) -> None:
        """Take in the next event of the stream."""
        self._events.append(event)

    def view(self) -> PartialView:
        """The answer as of now, which later events do not change. Costs nothing until read."""
        return PartialView(self, len(self._events))

    def message(self) -> AssistantMessage:
        """The answer as of now, with stop reason `pending`."""
        return self._message_at(len(self._events))

    def interrupted(self) -> AssistantMessage:
        """What an abort leaves: the visible text and thinking, without tool calls."""
        whole = self.message()
        content = tuple(block for block in whole.content if is_visible(block))
        return attrs.evolve(whole, content=content, stop_reason="aborted")

    def _message_at(self, count: int) -> AssistantMessage:
        if count < self._folded:  # an older view: fold again from the start
            self._folded, self._blocks = 0, {}
        for event in self._events[self._folded : count]:
            self._fold(event)
        self._folded = count
        content = tuple(self._blocks[index].value() for index in sorted(self._blocks))
        return attrs.evolve(self._base, content=content, stop_reason="pending")

    def _fold(self, event: StreamEvent) -> None:
        blocks = self._blocks
        match event:
            case TextDelta(index, delta):
                blocks.setdefault(index, _Block(TextContent)).pieces.append(delta)
            case ThinkingDelta(index, delta):
                blocks.setdefault(index, _Block(ThinkingContent)).pieces.append(delta)
            case TextStart(index):
                blocks[index] = _Block(TextContent)
            case ThinkingStart(index):
                blocks[index] = _Block(ThinkingContent)
            case TextEnd(index, text):
                blocks[index] = _Block(TextContent, [text])
            case ThinkingEnd(index, text):
                blocks[index] = _Block(ThinkingContent, [text])
            case ToolCallDelta(index, delta):
                block = blocks.get(index)
                if block is not None and block.arguments is not None:
                    block.arguments.feed(delta)
            case ToolCallStart(index, call_id, name):
                blocks[index] = _Block(ToolCall, call=ToolCall(call_id, name), arguments=GrowingObject())
            case ToolCallEnd(index, call):
                blocks[index] = _Block(ToolCall, call=call)
            case _:
                pass  # start and the terminal event change no block


@frozen
class PartialView:
    """The answer as it was when the view was taken."""

    _partial: PartialMessage
    _count: int

    @property
    def message(self) -> AssistantMessage:
        """The message with all blocks so far, tool calls with as much of their arguments as came."""
        return self._partial._message_at(self._count)

    @property
    def usage(self) -> Usage:
        """What is known of the tokens while it streams."""
        return self._partial._base.usage
