"""Conversations as Generative AI bodies."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest

from pi_trio.llm import google_request
from pi_trio.llm.google_arguments import GrowingArguments
from pi_trio.llm.google_request import encode_request, sent_level
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

MODEL = Model("gemini-4-x", api="google-generative-ai", provider="p", input=("text", "image"))
OLDER = attrs.evolve(MODEL, id="gemini-2.5-flash")
PICTURE = ImageContent("AAAA", "image/png")
PICTURE_PART = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
UNSIGNED = "skip_thought_signature_validator"


def body_of(*messages: Any, model: Model = MODEL, system: str = "", tools=(), **options: Any) -> Any:
    return json.loads(encode_request(model, Context(system, messages, tools), StreamOptions(**options)))


def sent(*messages: Any, model: Model = MODEL) -> list[dict[str, Any]]:
    return body_of(*messages, model=model)["contents"]


def said(*content: Any, **fields: Any) -> AssistantMessage:
    values = {"api": "google-generative-ai", "provider": "p", "model": "gemini-4-x", **fields}
    return AssistantMessage(content, **values)


def result(call_id: str, *content: Any, **fields: Any) -> ToolResultMessage:
    return ToolResultMessage(call_id, "t", content, **fields)


# ------------------------------------------------------------------ messages


def test_system_prompt_tools_and_words() -> None:
    tool = ToolSchema("read", "Reads", {"type": "object"})
    body = body_of(UserMessage("hi"), SystemMessage("Mind."), system="Be brief.", tools=(tool,))
    declaration = {"name": "read", "description": "Reads", "parametersJsonSchema": {"type": "object"}}
    assert body == {
        "systemInstruction": {"parts": [{"text": "Be brief."}, {"text": "Mind."}]},
        "tools": [{"functionDeclarations": [declaration]}],
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
    }


def test_nothing_is_sent_that_was_not_asked_for() -> None:
    assert set(body_of(UserMessage("hi"))) == {"contents"}
    small = attrs.evolve(MODEL, max_tokens=100)
    body = body_of(UserMessage("hi"), model=small, temperature=0.5, max_tokens=500)
    assert body["generationConfig"] == {"temperature": 0.5, "maxOutputTokens": 100}


def test_results_and_what_follows_are_one_turn() -> None:
    """PQ-06: results come first, errors under their own name, images inside."""
    calls = said(ToolCall("a", "t", {"x": "é"}, "Q2E="), ToolCall("b", "t"), ToolCall("c", "t"))
    contents = sent(
        UserMessage.of("look", [PICTURE]),
        calls,
        result("a", TextContent("1")),
        result("b", PICTURE),
        result("c", TextContent("no"), is_error=True),
        UserMessage("and?"),
    )
    assert [content["role"] for content in contents] == ["user", "model", "user"]
    assert contents[0]["parts"] == [{"text": "look"}, PICTURE_PART]
    assert contents[2]["parts"] == [
        {"functionResponse": {"name": "t", "response": {"output": "1"}, "id": "a"}},
        {
            "functionResponse": {
                "name": "t",
                "response": {"output": "(see the image)"},
                "id": "b",
                "parts": [PICTURE_PART],
            }
        },
        {"functionResponse": {"name": "t", "response": {"error": "no"}, "id": "c"}},
        {"text": "and?"},
    ]


def test_older_models_know_no_ids_and_no_images_in_results() -> None:
    calls = said(ToolCall("a", "t"), ToolCall("b", "t"), model=OLDER.id)
    contents = sent(calls, result("a", PICTURE), result("b", TextContent("2")), model=OLDER)
    assert contents[0]["parts"] == [{"functionCall": {"name": "t", "args": {}}}] * 2
    assert contents[1]["parts"] == [
        {"functionResponse": {"name": "t", "response": {"output": "(see the image)"}}},
        {"functionResponse": {"name": "t", "response": {"output": "2"}}},
        PICTURE_PART,
    ]


def test_signatures_go_back_where_they_came_from() -> None:
    """PQ-02: to the same model only."""
    content = (
        ThinkingContent("hm", "VGg="),
        TextContent("x", "VHg="),
        ToolCall("a", "t", {}, "Q2E="),
        ToolCall("b", "t"),
        TextContent("", "ZW1wdHk="),
    )
    assert sent(said(*content))[0]["parts"] == [
        {"text": "hm", "thought": True, "thoughtSignature": "VGg="},
        {"text": "x", "thoughtSignature": "VHg="},
        {"functionCall": {"name": "t", "args": {}, "id": "a"}, "thoughtSignature": "Q2E="},
        {"functionCall": {"name": "t", "args": {}, "id": "b"}},
        {"text": "", "thoughtSignature": "ZW1wdHk="},
    ]
    for stranger in ({"provider": "q"}, {"api": "other"}, {"model": "n"}):
        assert sent(said(*content, **stranger))[0]["parts"] == [
            {"text": "x"},
            {"functionCall": {"name": "t", "args": {}, "id": "a"}, "thoughtSignature": UNSIGNED},
            {"functionCall": {"name": "t", "args": {}, "id": "b"}},
        ]


def test_half_letters_of_an_old_session_are_replaced() -> None:
    """TA-09"""
    [user] = sent(UserMessage("a\ud83d"), UserMessage(""))
    assert user["parts"] == [{"text": "a\ufffd"}]


# ------------------------------------------------------------------ thinking


@pytest.mark.parametrize(
    ("model_id", "mapping", "level", "config"),
    [
        ("gemini-4-x", None, "low", {"includeThoughts": True, "thinkingLevel": "LOW"}),
        ("gemini-4-x", {"xhigh": "xhigh"}, "xhigh", {"includeThoughts": True, "thinkingLevel": "XHIGH"}),
        ("gemini-4-x", {"off": None, "minimal": None}, "off", {"thinkingLevel": "LOW"}),
        ("gemini-3-flash", None, "off", {"thinkingBudget": 0}),
        ("gemini-2.5-pro", None, "high", {"includeThoughts": True, "thinkingBudget": 32_768}),
        ("gemini-2.5-pro", {"off": None}, "off", {"thinkingBudget": 128}),
        ("gemini-2.5-flash", None, "medium", {"includeThoughts": True, "thinkingBudget": 8192}),
        ("gemini-2.5-flash-lite", None, "minimal", {"includeThoughts": True, "thinkingBudget": 512}),
        ("gemini-2.5-flash", None, "off", {"thinkingBudget": 0}),
        ("gemini-2.0-x", None, "high", {"includeThoughts": True, "thinkingBudget": -1}),
    ],
)
def test_models_are_told_a_level_or_given_a_budget(
    model_id: str, mapping: Any, level: Any, config: dict[str, Any]
) -> None:
    model = attrs.evolve(MODEL, id=model_id, reasoning=True, thinking_level_map=mapping)
    body = body_of(UserMessage("x"), model=model, thinking_level=level)
    assert body["generationConfig"] == {"thinkingConfig": config}
    sent_word = config.get("thinkingLevel", config.get("thinkingBudget"))
    assert sent_level(model, StreamOptions(thinking_level=level)) == str(sent_word)


def test_budgets_of_the_user_count() -> None:
    model = attrs.evolve(OLDER, reasoning=True)
    body = body_of(UserMessage("x"), model=model, thinking_level="low", thinking_budgets={"low": 77})
    assert body["generationConfig"]["thinkingConfig"]["thinkingBudget"] == 77


# ------------------------------------------------------------------ bytes


def test_message_and_tool_are_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step costs what is new."""
    encoded: list[Any] = []
    original = google_request._turn

    def counting(profile: Any, message: Any) -> Any:
        encoded.append(message)
        return original(profile, message)

    monkeypatch.setattr(google_request, "_turn", counting)
    first, second, third = UserMessage("a"), said(TextContent("b")), UserMessage("c")
    before = encode_request(MODEL, Context("s", (first, second)), StreamOptions())
    after = encode_request(MODEL, Context("s", (first, second, third)), StreamOptions())
    assert encoded == [first, second, third]
    assert after.startswith(before.rstrip(b"]}"))


# ------------------------------------------------------------------ arguments by their place


def test_values_take_the_place_of_others() -> None:
    growing = GrowingArguments()
    growing.update({"a": 1, "b": "x"})
    growing.put("$.a.c", {"numberValue": 1.5})
    growing.put("$.b", {"stringValue": "y"})
    growing.put("$.l[1]", {"boolValue": False})
    growing.put("$.l[0][0]", {"stringValue": "z"})
    assert growing.value == {"a": {"c": 1.5}, "b": "xy", "l": [["z"], False]}


def test_place_far_behind_the_end_is_refused() -> None:
    growing = GrowingArguments()
    growing.put("$.l[0]", {"stringValue": "x"})
    with pytest.raises(ValueError, match="place"):
        growing.put("$.l[20000]", {"stringValue": "y"})
    growing.put("$.l.name", {"stringValue": "y"})
    assert growing.value == {"l": {"name": "y"}}, "a list makes room for the object that is wanted"
