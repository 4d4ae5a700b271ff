"""Events as JSON objects, for the JSON and RPC modes: pi's fields in pi's compact form.

A piece of an answer comes without the answer so far, which only `message_start` and
`message_end` carry: what a stream costs does not grow with its length.
"""

from __future__ import annotations

from typing import Any

from pi_trio.codec import to_json
from pi_trio.events import AgentEvent, MessageUpdate, ToolExecutionEnd, ToolExecutionUpdate
from pi_trio.remote.interface import SessionInfo
from pi_trio.session.entries import SESSION_VERSION, SessionHeader
from pi_trio.tool import ToolResult

__all__ = ["event_to_json", "header_to_json"]


def event_to_json(event: AgentEvent) -> dict[str, Any]:
    """The object that stands for `event`."""
    if isinstance(event, MessageUpdate):
        return {
            "type": event.type,
            "usage": to_json(event.view.usage),
            "assistantMessageEvent": to_json(event.assistant_message_event),
        }
    data: dict[str, Any] = to_json(event)
    if isinstance(event, ToolExecutionUpdate):
        data["partialResult"] = _result(event.partial_result)
    elif isinstance(event, ToolExecutionEnd):
        data["result"] = _result(event.result)
    return data


def header_to_json(session: SessionInfo) -> dict[str, Any]:
    """The session's header as its file has, or will have, it."""
    header = SessionHeader(
        SESSION_VERSION, session.id, session.timestamp, session.cwd, parent_session=session.parent_session
    )
    data: dict[str, Any] = to_json(header)
    return data


def _result(result: ToolResult) -> dict[str, Any]:
    """A tool's result without what it does not say."""
    data: dict[str, Any] = to_json(result)
    return {key: value for key, value in data.items() if key == "content" or value not in (False, [], None)}
