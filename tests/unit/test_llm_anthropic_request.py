"""Conversations as Messages bodies."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest

from pi_trio.llm import anthropic_request
from pi_trio.llm.anthropic_request import encode_request, headers_for, sent_level
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

MODEL = Model("m", api="anthropic-messages", provider="p", input=("text", "image"), max_tokens=64_000)
BUDGET = attrs.evolve(MODEL, reasoning=True)
ADAPTIVE = attrs.evolve(
    BUDGET, compat={"forceAdaptiveThinking": True}, thinking_level_map={"xhigh": "xhigh", "max": "max"}
)
PICTURE = ImageContent("AAAA", "image/png")
PICTURE_BLOCK = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
SHORT = {"type": "ephemeral"}
LONG = {"type": "ephemeral", "ttl": "1h"}


def body_of(*messages: Any, model: Model = MODEL, system: str = "", tools=(), **options: Any) -> Any:
    return json.loads(encode_request(model, Context(system, messages, tools), StreamOptions(**options)))


def sent(*messages: Any, model: Model = MODEL) -> list[dict[str, Any]]:
    return body_of(*messages, model=model, cache_retention="none")["messages"]


def said(*content: Any, **fields: Any) -> AssistantMessage:
    return AssistantMessage(content, **{"api": "anthropic-messages", "provider": "p", "model": "m", **fields})


def result(call_id: str, *content: Any, **fields: Any) -> ToolResultMessage:
    return ToolResultMessage(call_id, "t", content, **fields)


def words(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def marked(value: Any) -> list[Any]:
    """Every marked object in a body, with its mark."""
    found = [value] if isinstance(value, dict) and "cache_control" in value else []
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        found += marked(item)
    return found


# ------------------------------------------------------------------ messages


def test_system_prompt_tools_and_words() -> None:
    tool = ToolSchema("read", "Reads", {"type": "object", "properties": {}, "anyOf": [{}]})
    body = body_of(UserMessage("hi"), system="Be brief.", tools=(tool,), cache_retention="none")
    assert body == {
        "model": "m",
        "max_tokens": 64_000,
        "stream": True,
        "system": [words("Be brief.")],
        "tools": [
            {
                "name": "read",
                "description": "Reads",
                "eager_input_streaming": True,
                "input_schema": {"type": "object", "properties": {}},
            }
        ],
        "messages": [{"role": "user", "content": [words("hi")]}],
    }
    plain = attrs.evolve(MODEL, compat={"supportsEagerToolInputStreaming": False})
    assert "eager_input_streaming" not in body_of(UserMessage("x"), model=plain, tools=(tool,))["tools"][0]


def test_blank_text_is_left_out() -> None:
    """PQ-07"""
    messages = sent(
        UserMessage.of(" \n", [PICTURE]), UserMessage("  "), said(TextContent("x"), TextContent(" "))
    )
    assert messages == [
        {"role": "user", "content": [PICTURE_BLOCK]},
        {"role": "assistant", "content": [words("x")]},
    ]


def test_what_one_side_says_in_a_row_is_one_message() -> None:
    """PQ-06: results come first, and nothing parts them from their calls."""
    calls = said(TextContent("I look."), ToolCall("a", "t", {"x": "é"}), ToolCall("b", "t"))
    messages = sent(
        UserMessage("one"),
        UserMessage.of("two"),
        calls,
        result("a", TextContent("1"), PICTURE),
        result("b", TextContent("")),
        UserMessage("and?"),
        said(TextContent("x")),
    )
    assert [message["role"] for message in messages] == ["user", "assistant", "user", "assistant"]
    assert messages[1]["content"][1] == {"type": "tool_use", "id": "a", "name": "t", "input": {"x": "é"}}
    assert messages[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "a", "content": [words("1"), PICTURE_BLOCK]},
        {"type": "tool_result", "tool_use_id": "b", "content": [words("(no output)")]},
        words("and?"),
    ]


def test_results_that_tell_of_an_error_hold_text_only() -> None:
    """Their images follow all results."""
    calls = said(ToolCall("a", "t"), ToolCall("b", "t"))
    failed = result("a", PICTURE, TextContent("no"), is_error=True)
    wordless = result("b", PICTURE, is_error=True)
    content = sent(calls, failed, wordless)[1]["content"]
    shown = [block.get("content") for block in content[:2]]
    assert shown == [[words("no")], [words("(see the image that follows)")]]
    assert all(block["is_error"] for block in content[:2])
    assert content[2:] == [PICTURE_BLOCK, PICTURE_BLOCK]


def test_broken_arguments_become_an_empty_object() -> None:
    """TA-01"""
    [answer, _] = sent(said(ToolCall("a", "t", {}, arguments_error="not JSON")), result("a"))
    assert answer["content"][0]["input"] == {}


def test_thinking_goes_back_signed_and_in_its_place() -> None:
    """PQ-02: to the same model only; what nobody signed is refused, so it is left out."""
    thoughts = (
        ThinkingContent("hm", "Eu4B"),
        ThinkingContent("", "sealed", redacted=True),
        ThinkingContent("", "Zz=="),
        ThinkingContent("unsigned"),
    )
    [answer] = sent(said(*thoughts, TextContent("x")))
    assert answer["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": "Eu4B"},
        {"type": "redacted_thinking", "data": "sealed"},
        {"type": "thinking", "thinking": "", "signature": "Zz=="},
        words("x"),
    ]
    for stranger in ({"provider": "q"}, {"api": "other"}, {"model": "n"}):
        assert sent(said(*thoughts, TextContent("x"), **stranger))[0]["content"] == [words("x")]


def test_server_that_signs_nothing_gets_its_thinking_back() -> None:
    local = attrs.evolve(MODEL, compat={"allowEmptySignature": True})
    [answer] = sent(said(ThinkingContent("hm", ""), TextContent("x")), model=local)
    assert answer["content"][0] == {"type": "thinking", "thinking": "hm", "signature": ""}


@pytest.mark.parametrize("call_id", ["call_1|fc_2", "x" * 65, ""])
def test_foreign_call_ids_are_made_acceptable(call_id: str) -> None:
    messages = sent(said(ToolCall(call_id, "t")), result(call_id, TextContent("x")))
    new = messages[0]["content"][0]["id"]
    assert messages[1]["content"][0]["tool_use_id"] == new
    assert new.replace("_", "").isalnum()
    assert 0 < len(new) <= 64


def test_system_messages_join_the_instructions_unless_the_model_takes_them_on_the_way() -> None:
    history = (UserMessage("a"), SystemMessage("Mind the step."), UserMessage("b"))
    body = body_of(*history, system="Be brief.", cache_retention="none")
    assert body["system"] == [words("Be brief."), words("Mind the step.")]
    assert [message["role"] for message in body["messages"]] == ["user"]
    newer = attrs.evolve(MODEL, compat={"supportsMidConvoSystemMessages": True})
    messages = sent(*history, model=newer)
    assert messages == [
        {"role": "user", "content": [words("a"), words("b")]},
        {"role": "system", "content": [words("Mind the step.")]},
    ]


def test_half_letters_of_an_old_session_are_replaced() -> None:
    """TA-09"""
    [user, answer, _] = sent(UserMessage("a\ud83d"), said(ToolCall("a", "t", {"x\ud83d": ["\udfff"]})))
    assert user["content"] == [words("a\ufffd")]
    assert answer["content"][0]["input"] == {"x\ufffd": ["\ufffd"]}


# ------------------------------------------------------------------ thinking


@pytest.mark.parametrize(
    ("level", "effort"),
    [("minimal", "low"), ("low", "low"), ("medium", "medium"), ("high", "high"), ("max", "max")],
)
def test_newer_models_are_told_an_effort(level: Any, effort: str) -> None:
    body = body_of(UserMessage("x"), model=ADAPTIVE, thinking_level=level)
    assert body["thinking"] == {"type": "adaptive", "display": "summarized"}
    assert body["output_config"] == {"effort": effort}
    assert body["max_tokens"] == 64_000
    options = StreamOptions(thinking_level=level)
    assert sent_level(ADAPTIVE, options) == effort
    assert "anthropic-beta" not in headers_for(ADAPTIVE, options)


@pytest.mark.parametrize(
    ("level", "options", "budget", "limit"),
    [
        ("minimal", {}, 1024, 64_000),
        ("high", {}, 16_384, 64_000),
        ("xhigh", {}, 16_384, 64_000),
        ("high", {"max_tokens": 1000}, 16_360, 17_384),
        ("high", {"max_tokens": 60_000}, 16_384, 64_000),
        ("low", {"thinking_budgets": {"low": 3000}}, 3000, 64_000),
        ("low", {"thinking_budgets": {"low": 90_000}}, 62_976, 64_000),
    ],
)
def test_older_models_are_given_a_budget(
    level: Any, options: dict[str, Any], budget: int, limit: int
) -> None:
    """It is part of the output limit, of which an answer always keeps some."""
    body = body_of(UserMessage("x"), model=BUDGET, thinking_level=level, **options)
    assert body["thinking"] == {"type": "enabled", "budget_tokens": budget, "display": "summarized"}
    assert body["max_tokens"] == limit
    asked = StreamOptions(thinking_level=level, **options)
    assert sent_level(BUDGET, asked) == str(budget)
    assert headers_for(BUDGET, asked)["anthropic-beta"].startswith("interleaved-thinking")


def test_budget_fits_behind_the_question() -> None:
    """The limit and the budget in it leave room for the input, which providers count together."""
    narrow = attrs.evolve(BUDGET, context_window=40_000)
    long_question = UserMessage("x" * 70_000)
    for asked in ({}, {"max_tokens": 30_000}):
        body = body_of(long_question, model=narrow, thinking_level="high", **asked)
        assert body["max_tokens"] == 40_000 - 20_000 - 4096
        assert body["thinking"]["budget_tokens"] == body["max_tokens"] - 1024


def test_model_with_little_room_does_not_think() -> None:
    small = attrs.evolve(BUDGET, max_tokens=2000)
    body = body_of(UserMessage("x"), model=small, thinking_level="high")
    assert (body["thinking"], body["max_tokens"]) == ({"type": "disabled"}, 2000)


def test_older_models_do_not_begin_to_think_in_the_middle_of_an_answer() -> None:
    """An answer with calls, which another model began or which began without thinking, goes on without it."""

    def thinks(*messages: Any, model: Model = BUDGET) -> bool:
        return body_of(*messages, model=model, thinking_level="high")["thinking"]["type"] != "disabled"

    thought, call = ThinkingContent("hm", "Eu4B"), ToolCall("a", "t")
    one = result("a", TextContent("1"))
    begun = (UserMessage("u"), said(call), one)
    assert not thinks(*begun)
    assert not thinks(*begun, said(thought, call), one)
    assert not thinks(*begun, UserMessage("and mind the step"))
    assert not thinks(UserMessage("u"), said(ThinkingContent("unsigned"), call), one)
    assert thinks(*begun, said(TextContent("x")), UserMessage("v"))
    assert thinks(UserMessage("u"), said(thought, call), one)
    assert thinks(UserMessage("u"), said(thought, call), one, said(call), one)
    assert not thinks(UserMessage("u"), said(thought, call, model="n"), one)
    assert thinks(*begun, model=ADAPTIVE)


def test_thinking_is_turned_off_where_it_can_be() -> None:
    for model in (BUDGET, ADAPTIVE):
        assert body_of(UserMessage("x"), model=model)["thinking"] == {"type": "disabled"}
        assert sent_level(model, StreamOptions()) is None
    assert "thinking" not in body_of(UserMessage("x"))
    always = attrs.evolve(ADAPTIVE, thinking_level_map={"off": None, "minimal": None})
    assert body_of(UserMessage("x"), model=always)["output_config"] == {"effort": "low"}


def test_newest_models_are_told_the_effort_before_each_answer() -> None:
    """Another level changes only the end of the request, so what was cached stays good."""
    newest = attrs.evolve(ADAPTIVE, compat={"forceAdaptiveThinking": True, "supportsMidConvoEffort": True})
    strange = said(TextContent("z"), provider="q", provider_thinking_level="high")
    history = (
        UserMessage("a"),
        said(TextContent("x"), provider_thinking_level="medium"),
        UserMessage("b"),
        strange,
        UserMessage("c"),
    )
    body = body_of(*history, model=newest, thinking_level="max")
    notes = [
        message["output_config"]["effort"] for message in body["messages"] if message["role"] == "system"
    ]
    assert notes == ["medium", "max"]
    roles = ["user", "system", "assistant", "user", "assistant", "user", "system"]
    assert [message["role"] for message in body["messages"]] == roles
    assert body["output_config"] == {"effort": "low"}
    assert body["thinking"]["block_binding"] == {"prefix_mismatch_behavior": "drop_block"}
    options = StreamOptions(thinking_level="max")
    assert headers_for(newest, options)["anthropic-beta"].startswith("mid-conversation-output-config")
    assert sent_level(newest, options) == "max"
    off = body_of(*history, model=newest)
    assert off["thinking"] == {"type": "disabled"}
    assert all(message["role"] != "system" for message in off["messages"])


def test_temperature_is_for_models_that_do_not_think() -> None:
    assert body_of(UserMessage("x"), temperature=0.5)["temperature"] == 0.5
    assert body_of(UserMessage("x"), model=BUDGET, temperature=0.5)["temperature"] == 0.5
    assert "temperature" not in body_of(UserMessage("x"), model=BUDGET, temperature=0.5, thinking_level="low")
    never = attrs.evolve(MODEL, compat={"supportsTemperature": False})
    assert "temperature" not in body_of(UserMessage("x"), model=never, temperature=0.5)


# ------------------------------------------------------------------ the cache


TOOLS = (ToolSchema("a", "A", {}), ToolSchema("b", "B", {}))
HISTORY = (
    UserMessage("one"),
    said(ThinkingContent("hm", "Eu4B"), ToolCall("a", "t"), ToolCall("b", "t")),
    result("a", TextContent("1")),
    result("b", TextContent("2")),
    said(TextContent("x")),
    UserMessage("two"),
)


@pytest.mark.parametrize(("retention", "mark"), [("short", SHORT), ("long", LONG)])
def test_four_places_are_marked(retention: Any, mark: dict[str, str]) -> None:
    """System, last tool, last block of the user and that of the turn before: four is all there may be."""
    body = body_of(*HISTORY, system="Be brief.", tools=TOOLS, cache_retention=retention)
    places = [body["system"][-1], body["tools"][-1]]
    places += [body["messages"][2]["content"][-1], body["messages"][4]["content"][-1]]
    assert marked(body) == places
    assert all(place["cache_control"] == mark for place in places)


def test_marks_are_not_for_every_host() -> None:
    assert marked(body_of(*HISTORY, system="s", tools=TOOLS, cache_retention="none")) == []
    plain = attrs.evolve(MODEL, compat={"supportsCacheControlOnTools": False})
    assert "cache_control" not in body_of(*HISTORY, model=plain, tools=TOOLS)["tools"][-1]
    forgetful = attrs.evolve(MODEL, compat={"supportsLongCacheRetention": False})
    assert body_of(UserMessage("x"), model=forgetful, cache_retention="long")["messages"][0]["content"][0][
        "cache_control"
    ] == {"type": "ephemeral"}


@pytest.mark.parametrize("level", ["off", "high"])
def test_longer_history_begins_with_the_bytes_of_the_shorter(level: Any) -> None:
    """What was sent before is sent again to the byte, save for the marks and the ends of open lists."""
    newest = attrs.evolve(ADAPTIVE, compat={"forceAdaptiveThinking": True, "supportsMidConvoEffort": True})
    told = [
        attrs.evolve(each, provider_thinking_level="high") if each in HISTORY[1::3] else each
        for each in HISTORY
    ]
    for model in (MODEL, BUDGET, ADAPTIVE, newest):
        shorter, longer = (
            encode_request(
                model, Context("Be brief.", told[:count], TOOLS), StreamOptions(thinking_level=level)
            ).replace(b',"cache_control":{"type":"ephemeral"}', b"")
            for count in (4, 6)
        )
        assert longer.startswith(shorter.rstrip(b"]}"))


def test_message_and_tool_are_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step costs what is new."""
    encoded: list[Any] = []

    def counting(name: str) -> None:
        original = getattr(anthropic_request, name)
        monkeypatch.setattr(
            anthropic_request, name, lambda first, value: (encoded.append(value), original(first, value))[1]
        )

    counting("_turn")
    counting("_tool")
    tool = ToolSchema("once", "", {})
    first, second, third = UserMessage("a"), said(TextContent("b")), UserMessage("c")
    body_of(first, second, tools=(tool,))
    body_of(first, second, third, tools=(tool,))
    assert encoded == [first, second, tool, third]
