"""Pieces to events and the answer, without any dialect."""

from __future__ import annotations

import pytest

from pi_trio.llm.builder import AnswerBuilder, parse_arguments
from pi_trio.llm.protocol import (
    Done,
    Failed,
    Failure,
    StreamStart,
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
from pi_trio.messages import AssistantMessage, TextContent, ThinkingContent, ToolCall, Usage
from pi_trio.surrogates import mend_text


@pytest.fixture
def builder() -> AnswerBuilder:
    return AnswerBuilder(AssistantMessage((), "api", "provider", "model"))


def test_events_tell_the_whole_answer(builder: AnswerBuilder) -> None:
    builder.start()
    builder.thinking("hm", "reasoning")
    builder.text("a")
    builder.text("b")
    builder.tool_call(0, "c1", "read", '{"x":1}')
    builder.usage = Usage(input=1)
    builder.response_id = "r"
    builder.done("toolUse", "tool_calls")
    call = ToolCall("c1", "read", {"x": 1})
    events = builder.take()
    assert events[:-1] == [
        StreamStart(),
        ThinkingStart(0),
        ThinkingDelta(0, "hm"),
        ThinkingEnd(0, "hm"),
        TextStart(1),
        TextDelta(1, "a"),
        TextDelta(1, "b"),
        TextEnd(1, "ab"),
        ToolCallStart(2, "c1", "read"),
        ToolCallDelta(2, '{"x":1}'),
        ToolCallEnd(2, call),
    ]
    message = events[-1].message
    assert isinstance(events[-1], Done)
    assert message.content == (ThinkingContent("hm", "reasoning"), TextContent("ab"), call)
    assert (message.api, message.stop_reason, message.raw_stop_reason) == ("api", "toolUse", "tool_calls")
    assert (message.response_id, message.usage.input) == ("r", 1)
    assert builder.ended
    assert builder.take() == []


def test_text_after_a_call_is_a_new_block(builder: AnswerBuilder) -> None:
    builder.text("a")
    builder.tool_call(0, "c", "t")
    builder.text("b")
    builder.done("stop")
    content = builder.take()[-1].message.content
    assert content == (TextContent("a"), ToolCall("c", "t"), TextContent("b"))


def test_failure_keeps_prose_and_drops_calls(builder: AnswerBuilder) -> None:
    builder.text("half")
    builder.tool_call(0, "c", "bash", '{"command": "rm')
    builder.failed(Failure("broke", "transport"))
    last = builder.take()[-1]
    assert isinstance(last, Failed)
    assert last.message.content == (TextContent("half"),)
    assert (last.message.stop_reason, last.message.error_message) == ("error", "broke")


def test_batches_do_not_share_events(builder: AnswerBuilder) -> None:
    builder.text("a")
    first = builder.take()
    builder.text("b")
    assert first == [TextStart(0), TextDelta(0, "a")]
    assert builder.take() == [TextDelta(0, "b")]


@pytest.mark.parametrize("text", ["", " ", "\n"])
def test_no_arguments_are_an_empty_object(text: str) -> None:
    """TA-02"""
    assert parse_arguments(text) == ({}, None)


@pytest.mark.parametrize("text", ["null", "[]", '"x"', "3", "true"])
def test_arguments_that_are_no_object_are_refused(text: str) -> None:
    """TA-05"""
    arguments, error = parse_arguments(text)
    assert arguments == {}
    assert error is not None
    assert error.startswith("The arguments must be a JSON object, not ")


def test_broken_arguments_name_the_place() -> None:
    """TA-01"""
    arguments, error = parse_arguments('{"path": "a.txt", "content": "x')
    assert arguments == {}
    assert error is not None
    assert "line 1 column 30" in error


def test_control_characters_are_a_clear_error_or_accepted() -> None:
    """TA-08: raw line ends inside a string do not crash anything."""
    arguments, error = parse_arguments('{"command":"a\tb\n"}')
    assert arguments == {}
    assert error is not None
    assert "control character" in error


def test_arguments_nested_beyond_reason_are_an_error() -> None:
    arguments, error = parse_arguments('{"a":' + "[" * 200_000)
    assert arguments == {}
    assert error is not None


def test_surrogates_in_arguments_are_replaced() -> None:
    """TA-09: in values, keys and lists, escaped or not."""
    text = '{"\\ud800": ["\\uDFFF", {"a": "x\ud83dy"}], "b": "\\ud83d\\ude00"}'
    assert parse_arguments(text) == ({"\ufffd": ["\ufffd", {"a": "x\ufffdy"}], "b": "😀"}, None)


def test_mending_leaves_whole_letters_alone() -> None:
    assert mend_text("aé한😀") == "aé한😀"
    assert mend_text("\ud83d\ude00\ud83d") == "😀\ufffd"


def test_name_may_come_in_pieces_until_the_arguments_begin(builder: AnswerBuilder) -> None:
    builder.tool_call(0, "c", "ba")
    builder.tool_call(0, "", "sh")
    builder.tool_call(0, "", "", "{}")
    builder.tool_call(0, "", "bash")
    builder.done("toolUse")
    assert [call.name for call in builder.take()[-1].message.tool_calls] == ["bash"]
