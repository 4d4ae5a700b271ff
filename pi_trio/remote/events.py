"""Events on their way between a server and its clients.

They are those of JSON mode, but `turn_end` and `agent_end` do not repeat the messages that
`message_end` brought: a client puts them together again.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping
from typing import Any

from pi_trio.codec import from_json
from pi_trio.events import (
    AgentEnd,
    AgentEvent,
    AgentStart,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    TurnEnd,
    TurnStart,
)
from pi_trio.llm.partial import PartialMessage
from pi_trio.llm.protocol import StreamEvent, TextEnd, ThinkingEnd, ToolCallEnd
from pi_trio.messages import (
    AgentMessage,
    AssistantMessage,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
)
from pi_trio.wire import event_to_json

__all__ = ["EventReader", "encode_event"]

_EVENTS: Mapping[str, type[Any]] = {cls.type: cls for cls in typing.get_args(AgentEvent)}
_PIECES: Mapping[str, type[Any]] = {cls.type: cls for cls in typing.get_args(StreamEvent)}


def encode_event(event: AgentEvent) -> dict[str, Any]:
    """The JSON object of an event."""
    if isinstance(event, AgentEnd):
        return {"type": event.type, "willRetry": event.will_retry}
    if isinstance(event, TurnEnd):
        return {"type": event.type}
    return event_to_json(event)


class EventReader:
    """Makes events of their JSON objects, in order. `streaming` is an answer that is met midway."""

    def __init__(self, streaming: AssistantMessage | None = None) -> None:
        self._partial = PartialMessage(streaming or AssistantMessage(()))
        for index, block in enumerate(streaming.content if streaming is not None else ()):
            if (piece := _whole(index, block)) is not None:
                self._partial.apply(piece)
        self._run: list[AgentMessage] = []
        self._answer = AssistantMessage(())
        self._results: list[ToolResultMessage] = []

    def read(self, data: Mapping[str, Any]) -> AgentEvent | None:
        """The event; None for one that this version does not know. Raises `ValueError` for a damaged one."""
        cls = _EVENTS.get(data.get("type", ""))
        if cls is None:
            return None
        if cls is MessageUpdate:
            return self._update(data["assistantMessageEvent"])
        if cls is AgentEnd:
            return AgentEnd(tuple(self._run), bool(data.get("willRetry")))
        if cls is TurnEnd:
            return TurnEnd(self._answer, tuple(self._results))
        event: AgentEvent = from_json(cls, data)
        self._note(event)
        return event

    def _update(self, data: Mapping[str, Any]) -> MessageUpdate | None:
        cls = _PIECES.get(data.get("type", ""))
        if cls is None:
            return None
        piece: StreamEvent = from_json(cls, data)
        self._partial.apply(piece)
        return MessageUpdate(piece, self._partial.view())

    def _note(self, event: AgentEvent) -> None:
        """Keep what later events do not repeat."""
        match event:
            case AgentStart():
                self._run = []
            case TurnStart():
                self._answer, self._results = AssistantMessage(()), []
            case MessageStart(AssistantMessage() as message):
                self._partial = PartialMessage(message)
            case MessageEnd(message):
                self._run.append(message)
                if isinstance(message, AssistantMessage):
                    self._answer = message
                elif isinstance(message, ToolResultMessage):
                    self._results.append(message)


def _whole(index: int, block: object) -> StreamEvent | None:
    """The piece that makes a block what it is by now."""
    match block:
        case TextContent(text):
            return TextEnd(index, text)
        case ThinkingContent(text):
            return ThinkingEnd(index, text)
        case ToolCall():
            return ToolCallEnd(index, block)
        case _:
            return None
