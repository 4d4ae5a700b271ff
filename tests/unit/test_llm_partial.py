"""An answer while it streams."""

from __future__ import annotations

import pytest

from pi_trio.llm.partial import PartialMessage
from pi_trio.llm.protocol import TextDelta, TextStart, ToolCallDelta, ToolCallEnd, ToolCallStart
from pi_trio.messages import AssistantMessage, TextContent, ToolCall


@pytest.fixture
def partial() -> PartialMessage:
    partial = PartialMessage(AssistantMessage(()))
    for event in (TextStart(0), TextDelta(0, "I write"), ToolCallStart(1, "c1", "write")):
        partial.apply(event)
    return partial


def test_calls_show_their_arguments_as_they_come(partial: PartialMessage) -> None:
    views = []
    for piece in ('{"path": "a', '.txt", "content": "one ', "two", '", "mode": 7', "}"):
        partial.apply(ToolCallDelta(1, piece))
        views.append(partial.view())
    calls = [view.message.tool_calls[0].arguments for view in views]
    assert calls == [
        {"path": "a"},
        {"path": "a.txt", "content": "one "},
        {"path": "a.txt", "content": "one two"},
        {"path": "a.txt", "content": "one two"},
        {"path": "a.txt", "content": "one two", "mode": 7},
    ]
    assert views[0].message.tool_calls[0].arguments == {"path": "a"}


def test_whole_call_replaces_what_was_shown(partial: PartialMessage) -> None:
    """The strict reading counts: broken arguments are none."""
    partial.apply(ToolCallDelta(1, '{"path": "a"'))
    whole = ToolCall("c1", "write", {}, arguments_error="not JSON")
    partial.apply(ToolCallEnd(1, whole))
    assert partial.message().content == (TextContent("I write"), whole)


def test_an_abort_leaves_no_call(partial: PartialMessage) -> None:
    partial.apply(ToolCallDelta(1, '{"path": "a'))
    assert partial.interrupted().content == (TextContent("I write"),)


def test_pieces_of_a_call_that_never_began_are_nothing(partial: PartialMessage) -> None:
    before = partial.message()
    partial.apply(ToolCallDelta(0, "{"))
    partial.apply(ToolCallDelta(5, "{"))
    assert partial.message() == before
