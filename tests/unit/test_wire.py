"""Events as JSON objects."""

from __future__ import annotations

from pi_trio.events import AgentEnd, MessageUpdate, SessionInfoChanged, ToolExecutionEnd, ToolExecutionUpdate
from pi_trio.llm.partial import PartialMessage
from pi_trio.llm.protocol import StreamEvent, TextDelta, ToolCallStart
from pi_trio.messages import AssistantMessage, UserMessage
from pi_trio.remote.interface import SessionInfo
from pi_trio.tool import ToolResult
from pi_trio.wire import event_to_json, header_to_json

NO_USAGE = {
    "input": 0,
    "output": 0,
    "cacheRead": 0,
    "cacheWrite": 0,
    "totalTokens": 0,
    "cost": {"input": 0.0, "output": 0.0, "cacheRead": 0.0, "cacheWrite": 0.0, "total": 0.0},
}


def _update(event: StreamEvent) -> dict[str, object]:
    return event_to_json(MessageUpdate(event, PartialMessage(AssistantMessage(())).view()))


def test_a_piece_comes_without_the_answer_so_far() -> None:
    assert _update(TextDelta(0, "hi")) == {
        "type": "message_update",
        "usage": NO_USAGE,
        "assistantMessageEvent": {"type": "text_delta", "contentIndex": 0, "delta": "hi"},
    }


def test_the_start_of_a_call_names_it() -> None:
    assert _update(ToolCallStart(1, "c1", "bash"))["assistantMessageEvent"] == {
        "type": "toolcall_start",
        "contentIndex": 1,
        "id": "c1",
        "toolName": "bash",
    }


def test_a_result_has_only_what_it_says() -> None:
    plain = event_to_json(ToolExecutionUpdate("c1", "bash", {"command": "ls"}, ToolResult("a")))
    assert plain["partialResult"] == {"content": [{"type": "text", "text": "a"}]}
    ended = event_to_json(
        ToolExecutionEnd("c1", "bash", ToolResult("a", {"n": 0}, terminate=True), False, duration_ms=3)
    )
    assert ended == {
        "type": "tool_execution_end",
        "toolCallId": "c1",
        "toolName": "bash",
        "result": {"content": [{"type": "text", "text": "a"}], "details": {"n": 0}, "terminate": True},
        "isError": False,
        "durationMs": 3,
    }


def test_other_events_have_their_fields() -> None:
    assert event_to_json(SessionInfoChanged(None)) == {"type": "session_info_changed", "name": None}
    assert event_to_json(AgentEnd((UserMessage("a", timestamp=1),))) == {
        "type": "agent_end",
        "messages": [{"role": "user", "content": "a", "timestamp": 1}],
        "willRetry": False,
    }


def test_the_header_is_that_of_the_file() -> None:
    session = SessionInfo(id="s", path=None, cwd="/p", timestamp="t", parent_session="/old")
    assert header_to_json(session) == {
        "type": "session",
        "version": 3,
        "id": "s",
        "timestamp": "t",
        "cwd": "/p",
        "parentSession": "/old",
    }
