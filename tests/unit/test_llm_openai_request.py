"""Conversations as Chat Completions bodies."""

from __future__ import annotations

import gc
import json
from typing import Any

import attrs
import pytest

from pi_trio.llm import openai_request
from pi_trio.llm.openai_request import encode_request
from pi_trio.llm.protocol import Context, Model, StreamOptions
from pi_trio.messages import (
    AssistantMessage,
    ImageContent,
    SystemMessage,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    ToolSchema,
    UserMessage,
)

MODEL = Model(
    "m", api="openai-completions", provider="p", base_url="http://localhost/v1", input=("text", "image")
)
BLIND = Model("m", api="openai-completions", provider="p", base_url="http://localhost/v1")
PICTURE = ImageContent("AAAA", "image/png")
PICTURE_PART = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


def body_of(
    *messages: Any, model: Model = MODEL, system: str = "", tools=(), **options: Any
) -> dict[str, Any]:
    return json.loads(encode_request(model, Context(system, messages, tools), StreamOptions(**options)))


def sent(*messages: Any, model: Model = MODEL) -> list[dict[str, Any]]:
    return body_of(*messages, model=model)["messages"]


def said(*content: Any, **fields: Any) -> AssistantMessage:
    values = {"api": "openai-completions", "provider": "p", "model": "m", **fields}
    return AssistantMessage(content, **values)


def result(call_id: str, *content: Any, **fields: Any) -> ToolResultMessage:
    return ToolResultMessage(call_id, "t", content, **fields)


def test_a_request_of_a_growing_conversation_costs_what_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    handed: list[int] = []
    hand_over = openai_request.hand_over

    def counting(messages: Any, *rest: Any) -> Any:
        handed.append(len(messages))
        return hand_over(messages, *rest)

    monkeypatch.setattr(openai_request, "hand_over", counting)
    messages: list[Any] = [UserMessage.of("hi")]
    for number in range(3):
        body_of(*messages)
        messages += [said(ToolCall(f"c{number}", "t", {})), result(f"c{number}", TextContent("done"))]
    body_of(*messages[:-1])  # a call without its result: what is added for it is not kept
    body_of(*messages)
    assert handed == [1, 2, 2, 1, 2]


def test_system_prompt_and_tools() -> None:
    tool = ToolSchema("read", "Reads", {"type": "object"})
    body = body_of(UserMessage.of("hi"), system="Be brief.", tools=(tool,))
    assert body["messages"] == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}]
    function = {"name": "read", "description": "Reads", "parameters": {"type": "object"}}
    assert body["tools"] == [{"type": "function", "function": function}]


def test_nothing_is_sent_that_was_not_asked_for() -> None:
    body = body_of(UserMessage("hi"))
    assert set(body) == {"model", "stream", "stream_options", "messages"}


def test_host_may_know_other_names_or_less() -> None:
    compat = {"maxTokensField": "limit", "supportsUsageInStreaming": False, "supportsReasoningEffort": False}
    model = Model("m", reasoning=True, max_tokens=100, compat=compat)
    body = body_of(UserMessage("hi"), model=model, max_tokens=500, thinking_level="high")
    assert body == {
        "model": "m",
        "stream": True,
        "limit": 100,
        "messages": [{"role": "user", "content": "hi"}],
    }
    openai = Model("m", base_url="https://api.openai.com/v1")
    assert body_of(UserMessage("hi"), model=openai, max_tokens=5)["max_completion_tokens"] == 5


@pytest.mark.parametrize(
    ("form", "thinking", "not_thinking"),
    [
        (None, {"reasoning_effort": "high"}, {}),
        ("openrouter", {"reasoning": {"effort": "high"}}, {"reasoning": {"effort": "none"}}),
        ("deepseek", {"thinking": {"type": "enabled"}}, {"thinking": {"type": "disabled"}}),
        ("zai", {"thinking": {"type": "enabled"}}, {"thinking": {"type": "disabled"}}),
        ("qwen", {"enable_thinking": True}, {"enable_thinking": False}),
        (
            "qwen-chat-template",
            {"chat_template_kwargs": {"enable_thinking": True}},
            {"chat_template_kwargs": {"enable_thinking": False}},
        ),
    ],
)
def test_hosts_are_asked_to_think_in_their_own_words(
    form: str | None, thinking: dict[str, Any], not_thinking: dict[str, Any]
) -> None:
    usual = {"model", "stream", "stream_options", "messages"}
    model = Model("m", reasoning=True, compat={"thinkingFormat": form})
    for level, expected in (("high", thinking), ("off", not_thinking)):
        body = body_of(UserMessage("hi"), model=model, thinking_level=level)
        assert {key: body[key] for key in body if key not in usual} == expected
    plain = attrs.evolve(model, reasoning=False)
    assert set(body_of(UserMessage("hi"), model=plain, thinking_level="high")) == usual


def test_user_text_and_images() -> None:
    message = UserMessage.of("look", [PICTURE])
    assert sent(message) == [{"role": "user", "content": [{"type": "text", "text": "look"}, PICTURE_PART]}]


def test_model_without_eyes_is_told_once() -> None:
    message = UserMessage.of("look", [PICTURE, PICTURE])
    texts = [part["text"] for part in sent(message, model=BLIND)[0]["content"]]
    assert texts == ["look", "(image omitted: model does not support images)"]


def test_user_message_without_anything_is_left_out() -> None:
    """PQ-07"""
    assert sent(UserMessage(()), UserMessage.of("x")) == [{"role": "user", "content": "x"}]


def test_answer_with_calls_and_no_text() -> None:
    """PQ-07: no empty text is sent; the results follow their calls."""
    call = ToolCall("c1", "read", {"path": "é"})
    messages = sent(said(TextContent(""), call), result("c1", TextContent("")))
    function = {"name": "read", "arguments": '{"path":"é"}'}
    assert messages == [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "(no output)"},
    ]


def test_broken_arguments_become_valid_json_in_the_next_request() -> None:
    """TA-01"""
    call = ToolCall("c1", "read", {}, arguments_error="not JSON")
    [answer, _] = sent(said(call), result("c1", TextContent("error"), is_error=True))
    assert answer["tool_calls"][0]["function"]["arguments"] == "{}"


def test_images_of_results_follow_all_results() -> None:
    """PQ-06: nothing comes between the calls and their results."""
    calls = said(ToolCall("a", "t"), ToolCall("b", "t"))
    results = (result("a", PICTURE), result("b", TextContent("text"), PICTURE))
    messages = sent(calls, *results, UserMessage.of("and now?"))
    assert [message["role"] for message in messages] == ["assistant", "tool", "tool", "user", "user"]
    assert messages[1]["content"] == "(see the image that follows)"
    assert messages[3]["content"][1:] == [PICTURE_PART, PICTURE_PART]
    blind = sent(calls, *results, model=BLIND)
    assert [message["role"] for message in blind] == ["assistant", "tool", "tool"]
    assert blind[2]["content"] == "text\n(tool image omitted: model does not support images)"


def test_call_without_a_result_gets_one() -> None:
    """PQ-06"""
    calls = said(ToolCall("a", "t"), ToolCall("b", "t"))
    for messages in (
        sent(calls, result("b", TextContent("x"))),
        sent(calls, result("b", TextContent("x")), UserMessage("y")),
    ):
        assert [message.get("tool_call_id") for message in messages[1:3]] == ["b", "a"]
        assert messages[2]["content"] == "No result provided"


def test_system_message_waits_until_the_results_are_there() -> None:
    system = SystemMessage("Mind the step.")
    messages = sent(said(ToolCall("a", "t")), system, result("a", TextContent("x")), UserMessage("y"))
    assert [message["role"] for message in messages] == ["assistant", "tool", "system", "user"]
    assert sent(SystemMessage("", sections={"a": "b"})) == []


def test_failed_and_empty_answers_are_left_out() -> None:
    failed = said(TextContent("half"), stop_reason="error")
    only_thinking = said(ThinkingContent("hm", "reasoning"), stop_reason="aborted")
    assert sent(UserMessage("x"), failed, only_thinking) == [{"role": "user", "content": "x"}]


def test_aborted_answer_keeps_its_text_and_loses_its_calls() -> None:
    aborted = said(TextContent("I will"), ToolCall("a", "t"), stop_reason="aborted")
    assert sent(aborted) == [{"role": "assistant", "content": "I will"}]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_thinking_goes_back_under_the_name_it_came_by(field: str) -> None:
    """PQ-01, PQ-02: to the same model only."""
    thinking = ThinkingContent("hm", field)
    assert sent(said(thinking, TextContent("x"))) == [{"role": "assistant", "content": "x", field: "hm"}]
    for stranger in ({"provider": "q"}, {"api": "other"}, {"model": "n"}):
        assert sent(said(thinking, TextContent("x"), **stranger)) == [{"role": "assistant", "content": "x"}]


def test_signature_of_another_kind_is_not_a_field_name() -> None:
    """PQ-02: an opaque signature is never sent."""
    assert sent(said(ThinkingContent("hm", "Eu4BCkYI"), TextContent("x"))) == [
        {"role": "assistant", "content": "x"}
    ]


def test_host_that_wants_reasoning_on_every_answer_gets_it() -> None:
    """PQ-01: also where it was empty, or came from elsewhere."""
    compat = {"requiresReasoningContentOnAssistantMessages": True}
    model = Model("m", api="openai-completions", provider="p", compat=compat)
    [answer] = sent(said(TextContent("x")), model=model)
    assert answer["reasoning_content"] == ""
    [answer] = sent(said(ThinkingContent("hm", "reasoning_content"), TextContent("x")), model=model)
    assert answer["reasoning_content"] == "hm"


@pytest.mark.parametrize("call_id", ["call_1|fc_2", "x" * 60])
def test_foreign_call_ids_are_made_acceptable(call_id: str) -> None:
    """Calls and results map alike, so that they still belong together."""
    messages = sent(said(ToolCall(call_id, "t")), result(call_id, TextContent("x")))
    new = messages[0]["tool_calls"][0]["id"]
    assert (messages[1]["tool_call_id"], len(messages)) == (new, 2)
    assert len(new) <= 40
    assert "|" not in new


def test_mistral_takes_nine_letters() -> None:
    model = Model("m", provider="mistral")
    for call_id, kept in (("abcDEF123", True), ("call_long_one", False)):
        new = sent(said(ToolCall(call_id, "t")), result(call_id), model=model)[1]["tool_call_id"]
        assert (new == call_id) is kept
        assert len(new) == 9


def test_message_is_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step costs what is new: the second request encodes only the new message."""
    encoded = []
    original = openai_request._piece

    def counting(profile, message):
        encoded.append(message)
        return original(profile, message)

    monkeypatch.setattr(openai_request, "_piece", counting)
    first, second, third = UserMessage.of("a"), said(TextContent("b")), UserMessage.of("c")
    before = sent(first, second)
    assert sent(first, second, third) == [*before, {"role": "user", "content": "c"}]
    assert encoded == [first, second, third]
    sent(first, model=BLIND)
    assert encoded[3:] == [first]


def test_encoded_form_goes_with_its_message() -> None:
    profile = openai_request._Profile.of(Model("forgetful"))
    message = UserMessage.of("x")
    sent(message, model=Model("forgetful"))
    kept = openai_request._encoded_messages[profile]
    assert len(kept) == 1
    del message
    gc.collect()
    assert len(kept) == 0


def test_half_letters_of_an_old_session_are_replaced() -> None:
    """TA-09: in text, in results and in arguments; text that only looks like one stays."""
    call = ToolCall("a", "t", {"x\ud83d": ["\udfff"]})
    messages = sent(UserMessage.of("a\ud83d"), said(call), result("a", TextContent("\\ud83d \ud83d")))
    arguments = json.loads(messages[1]["tool_calls"][0]["function"]["arguments"])
    assert (messages[0]["content"], arguments) == ("a\ufffd", {"x\ufffd": ["\ufffd"]})
    assert messages[2]["content"] == "\\ud83d \ufffd"
