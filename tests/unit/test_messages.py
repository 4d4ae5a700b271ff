"""Messages and blocks as values."""

from __future__ import annotations

import attrs
import pytest

from pi_trio.messages import (
    EMPTY,
    AssistantMessage,
    CustomMessage,
    ImageContent,
    OpaqueContent,
    SystemMessage,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    is_llm_message,
    now_ms,
    text_of,
)

TEXT, IMAGE, CALL = TextContent("Hi"), ImageContent("aGk=", "image/png"), ToolCall("c", "read")


def test_text_is_one_block_with_images_after_it() -> None:
    """A1, A2."""
    assert UserMessage.of("Hi", [IMAGE]).content == (TEXT, IMAGE)


@pytest.mark.parametrize(
    ("given", "kept"), [("plain", "plain"), ([TEXT], (TEXT,)), (iter([TEXT]), (TEXT,)), ((), ()), (None, ())]
)
def test_content_is_text_or_a_tuple(given, kept) -> None:
    assert UserMessage(given).content == kept


def test_values_cannot_be_changed() -> None:
    message = UserMessage("Hi")
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        message.content = "Ho"
    with pytest.raises(TypeError):
        EMPTY["a"] = 1


def test_an_answer_tells_its_text_and_calls() -> None:
    other = TextContent("there")
    message = AssistantMessage([ThinkingContent("hm"), TEXT, CALL, OpaqueContent("video"), other])
    assert message.text == "Hi\nthere"
    assert message.tool_calls == (CALL,)


@pytest.mark.parametrize(
    ("content", "text"), [("plain", "plain"), ((), ""), ((TEXT, IMAGE, TEXT), "Hi\nHi"), ((CALL,), "")]
)
def test_the_text_of_content(content, text) -> None:
    assert text_of(content) == text


@pytest.mark.parametrize(
    ("message", "known"),
    [
        (SystemMessage("Be kind."), True),
        (UserMessage("Hi"), True),
        (AssistantMessage(()), True),
        (ToolResultMessage("c", "t", "done"), True),
        (CustomMessage("note", "x"), False),
    ],
)
def test_four_roles_are_known_to_providers(message, known) -> None:
    assert is_llm_message(message) == known


def test_a_message_knows_when_it_was_made() -> None:
    before = now_ms()
    assert before <= UserMessage("Hi").timestamp <= now_ms()
