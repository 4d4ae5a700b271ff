"""What the line chat prints: whole lines, in order, and nothing that drives a terminal."""

from __future__ import annotations

from typing import Any

import pytest

from pi_trio.cli.chat_text import ChatText
from pi_trio.events import (
    AgentStart,
    AutoRetryStart,
    EntryAppended,
    ExtensionError,
    Gap,
    MessageEnd,
    MessageUpdate,
    ToolExecutionEnd,
    ToolExecutionStart,
)
from pi_trio.llm.protocol import TextDelta, ThinkingDelta, ThinkingStart
from pi_trio.messages import AssistantMessage, TextContent, UserMessage
from pi_trio.tool import ToolResult

EVIL = "\x1b]52;c;AAAA\x07\x1b[2J\x9b6n\x1bc\u202e"


def _update(piece: Any) -> MessageUpdate:
    return MessageUpdate(piece, None)  # type: ignore[arg-type]


def _answer(stop_reason: str, **options: Any) -> MessageEnd:
    return MessageEnd(AssistantMessage(content=(), stop_reason=stop_reason, **options))  # type: ignore[arg-type]


def _printed(text: ChatText, *events: Any) -> str:
    return "".join(text.event(event) for event in events)


def test_an_answer_streams_and_ends_its_line() -> None:
    text = ChatText()
    pieces = [_update(ThinkingStart(0)), _update(ThinkingDelta(0, "hm")), _update(TextDelta(1, "One "))]
    assert _printed(text, *pieces, _update(TextDelta(1, "two")), _answer("stop")) == "[thinking]\nOne two\n"
    assert _printed(text, _update(TextDelta(0, "Whole.\n")), _answer("stop")) == "Whole.\n"
    assert not text.failed


def test_thinking_without_text_is_left_out() -> None:
    pieces = [_update(ThinkingStart(0)), _update(ThinkingDelta(0, " \n")), _update(TextDelta(1, "Yes."))]
    assert _printed(ChatText(), *pieces, _answer("stop")) == "Yes.\n"


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        (_answer("error", error_message="no key"), "[error] no key\n"),
        (_answer("error"), "[error] the request failed\n"),
        (_answer("aborted"), "[aborted]\n"),
        (_answer("length"), "[cut off: the model's output limit]\n"),
    ],
)
def test_an_answer_that_is_not_whole_says_so(answer: MessageEnd, line: str) -> None:
    text = ChatText()
    assert _printed(text, _update(TextDelta(0, "Half")), answer) == f"Half\n{line}"
    assert text.failed
    _printed(text, _answer("stop"))
    assert not text.failed


def test_a_line_that_is_waited_for_is_not_written_on() -> None:
    text = ChatText()
    assert text.wait("> ") == "> "
    assert text.waiting
    assert _printed(text, _update(TextDelta(0, "Unasked"))) == "\nUnasked"
    assert text.wait("> ") == "\n> "
    text.typed()
    assert (
        _printed(text, ExtensionError("x.py", "turn_end", "x.py:1 failed")) == "[extension] x.py:1 failed\n"
    )


def test_calls_are_one_line_and_their_output_is_short() -> None:
    text = ChatText()
    start = ToolExecutionStart("1", "bash", {"command": "a\nb"})
    assert _printed(text, start) == "[bash] a⏎b\n"
    long = ToolExecutionStart("1", "odd", {"x": "y" * 300})
    assert len(_printed(text, long)) == len("[odd] ") + 200 + len("…\n")
    lines = "\n".join(str(number) for number in range(12))
    end = ToolExecutionEnd("1", "bash", ToolResult(lines), is_error=False)
    assert _printed(text, end) == "".join(f"  {number}\n" for number in range(10)) + "  … 2 more lines\n"
    failed = ToolExecutionEnd("1", "bash", ToolResult("no"), is_error=True)
    assert _printed(text, failed) == "[bash failed]\n  no\n"
    assert _printed(text, ToolExecutionEnd("1", "bash", ToolResult(""), is_error=False)) == ""


def test_waiting_and_gaps_are_told() -> None:
    text = ChatText()
    assert _printed(text, AutoRetryStart(1, 3, 2_500, "overloaded")) == "[retry 1 of 3 in 2.5 s] overloaded\n"
    assert _printed(text, Gap()) == "[some output was left out]\n"
    assert _printed(text, AgentStart(), MessageEnd(UserMessage.of("mine"))) == ""


@pytest.mark.parametrize(
    ("entry", "line"),
    [
        ({"type": "custom", "customType": "mark", "data": {"n": 1}}, "= 1 =\n"),
        ({"type": "custom", "customType": "turn/start", "data": {"n": 1}}, ""),
        ({"type": "custom_message", "customType": "mark", "content": "c", "details": {"n": 2}}, "= 2 =\n"),
        ({"type": "custom_message", "customType": "note", "content": "said"}, "said\n"),
        ({"type": "custom_message", "customType": "note", "content": [{"type": "text", "text": "a"}]}, "a\n"),
        ({"type": "custom_message", "customType": "mark", "content": "c", "display": False}, ""),
        ({"type": "message", "message": {"role": "user"}}, ""),
    ],
)
def test_entries_of_extensions_are_shown_as_they_wish(entry: dict[str, Any], line: str) -> None:
    text = ChatText()
    text.renderers = {"mark": "= {n} ="}
    assert _printed(text, EntryAppended(entry)) == line


def test_nothing_drives_the_terminal() -> None:
    """SE-01: answer, tool name, arguments, output, error, entry; also a sequence cut in two."""
    text = ChatText()
    text.renderers = {"mark": "{x}"}
    printed = _printed(
        text,
        _update(TextDelta(0, EVIL)),
        _update(TextDelta(0, "\x1b")),
        _update(TextDelta(0, "]0;title\x07[2J")),
        ToolExecutionStart("1", EVIL, {"command": EVIL}),
        ToolExecutionStart("1", "x", {EVIL: EVIL}),
        ToolExecutionEnd("1", EVIL, ToolResult((TextContent(EVIL),)), is_error=True),
        _answer("error", error_message=EVIL),
        AutoRetryStart(1, 3, 2_000, EVIL),
        ExtensionError(EVIL, EVIL, EVIL),
        EntryAppended({"type": "custom", "customType": "mark", "data": {"x": EVIL}}),
    )
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(printed)
