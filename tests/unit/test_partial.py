"""An answer while it streams, looked at whenever somebody likes."""

from __future__ import annotations

import pytest

from pi_trio.llm.partial import PartialMessage
from pi_trio.llm.protocol import (
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
from pi_trio.messages import AssistantMessage, TextContent, ThinkingContent, ToolCall

WHOLE = ToolCall("c", "read", {"path": "a"})
EVENTS = [
    StreamStart(),
    *[ThinkingStart(0), ThinkingDelta(0, "Let "), ThinkingDelta(0, "me"), ThinkingEnd(0, "Let me")],
    *[TextStart(1), TextDelta(1, "Once "), TextDelta(1, "upon"), TextEnd(1, "Once upon")],
    *[
        ToolCallStart(2, "c", "read"),
        ToolCallDelta(2, '{"path"'),
        ToolCallDelta(2, ':"a"}'),
        ToolCallEnd(2, WHOLE),
    ],
]


def streamed(*events) -> PartialMessage:
    partial = PartialMessage(AssistantMessage((), model="m", timestamp=1))
    for event in events:
        partial.apply(event)
    return partial


def test_the_answer_grows_piece_by_piece() -> None:
    partial, seen = streamed(), []
    for event in EVENTS:
        partial.apply(event)
        seen.append(partial.message().content)
    thinking, text = ThinkingContent("Let me"), TextContent("Once upon")
    assert seen[:5] == [(), *[(ThinkingContent(each),) for each in ("", "Let ", "Let me", "Let me")]]
    assert seen[5:9] == [(thinking, TextContent(each)) for each in ("", "Once ", "Once upon", "Once upon")]
    calls = [ToolCall("c", "read"), ToolCall("c", "read"), WHOLE, WHOLE]
    assert seen[9:] == [(thinking, text, call) for call in calls]


def test_calls_show_their_arguments_as_they_come() -> None:
    pieces = ('{"path": "a', '.txt", "content": "one ', "two", '", "mode": 7', "}")
    partial, views = streamed(ToolCallStart(0, "c", "write")), []
    for piece in pieces:
        partial.apply(ToolCallDelta(0, piece))
        views.append(partial.view())
    assert [view.message.tool_calls[0].arguments for view in views] == [
        {"path": "a"},
        {"path": "a.txt", "content": "one "},
        {"path": "a.txt", "content": "one two"},
        {"path": "a.txt", "content": "one two"},
        {"path": "a.txt", "content": "one two", "mode": 7},
    ]


def test_a_whole_call_replaces_what_was_shown() -> None:
    """The strict reading counts: broken arguments are none."""
    broken = ToolCall("c", "write", {}, arguments_error="not JSON")
    begun = (ToolCallStart(0, "c", "write"), ToolCallDelta(0, '{"path": "a"'))
    assert streamed(*begun, ToolCallEnd(0, broken)).message().content == (broken,)


def test_pieces_of_a_call_that_never_began_are_nothing() -> None:
    assert streamed(ToolCallDelta(5, "{")).message().content == ()


def test_it_is_pending_and_says_who_was_asked() -> None:
    message = streamed(*EVENTS).message()
    assert (message.stop_reason, message.model) == ("pending", "m")


def test_a_view_never_changes() -> None:
    """A29: whoever keeps one may look at it in any order, and more than once."""
    partial, views = streamed(), []
    expected = []
    for event in EVENTS:
        partial.apply(event)
        views.append(partial.view())
        expected.append(streamed(*EVENTS[: len(views)]).message())
    for order in (views, views[::-1], views):
        assert [view.message for view in order] == (expected if order is views else expected[::-1])
    assert partial.message() == expected[-1]


def test_blocks_may_interleave() -> None:
    partial = streamed(
        *[TextStart(0), ThinkingStart(1), TextDelta(0, "a"), ThinkingDelta(1, "x"), TextDelta(0, "b")],
        ThinkingDelta(1, "y"),
    )
    assert partial.message().content == (TextContent("ab"), ThinkingContent("xy"))


def test_pieces_without_a_start_are_taken_all_the_same() -> None:
    assert streamed(TextDelta(3, "a"), TextDelta(3, "b")).message().content == (TextContent("ab"),)


def test_the_end_of_a_block_has_the_last_word() -> None:
    assert streamed(TextStart(0), TextDelta(0, "al"), TextEnd(0, "all of it")).message().content == (
        TextContent("all of it"),
    )


@pytest.mark.parametrize(
    ("count", "kept"),
    [
        (1, ()),
        (2, ()),
        (3, (ThinkingContent("Let "),)),
        (7, (ThinkingContent("Let me"), TextContent("Once "))),
        (13, (ThinkingContent("Let me"), TextContent("Once upon"))),
    ],
)
def test_an_interruption_leaves_what_was_visible(count, kept) -> None:
    """AB-02: without calls, and without blocks that say nothing."""
    message = streamed(*EVENTS[:count]).interrupted()
    assert (message.content, message.stop_reason) == (kept, "aborted")


def test_blank_text_is_not_visible() -> None:
    assert streamed(TextStart(0), TextDelta(0, " \n")).interrupted().content == ()
