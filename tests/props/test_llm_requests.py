"""Whatever was said before, a request keeps the rules of its host."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import attrs
from hypothesis import given
from hypothesis import strategies as st

from pi_trio.llm import anthropic_request, google_request, openai_request
from pi_trio.llm.protocol import Context, Model, StreamOptions
from pi_trio.messages import (
    AssistantMessage,
    ImageContent,
    LlmMessage,
    SystemMessage,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    ToolSchema,
    UserMessage,
)

CLAUDE = Model("c", api="anthropic-messages", provider="a", reasoning=True, input=("text", "image"))
NEWEST = {
    "forceAdaptiveThinking": True,
    "supportsMidConvoSystemMessages": True,
    "supportsMidConvoEffort": True,
}
GEMINI = Model("gemini-4", api="google-generative-ai", provider="g", reasoning=True, input=("text",))
CHAT = Model("m", api="openai-completions", provider="p", input=("text", "image"))
TOOLS = (ToolSchema("t", "", {}), ToolSchema("u", "", {}))

IDS = st.sampled_from(["a", "b", "Foreign|1", "x" * 70, ""])
TEXTS = st.sampled_from(["", " ", "\n", "one", "two \ud83d"])
BLOCKS = st.one_of(
    TEXTS.map(TextContent),
    st.builds(ThinkingContent, TEXTS, st.sampled_from([None, "", "U2ln"]), st.sampled_from([None, True])),
    st.builds(ToolCall, IDS, st.just("t")),
)
AUTHORS = st.sampled_from(
    [(CLAUDE.api, "a", "c"), (CLAUDE.api, "a", "other"), (GEMINI.api, "g", "gemini-4"), ("x", "y", "z")]
)
ANSWERS = st.builds(
    lambda content, author, stop, level: AssistantMessage(
        content, *author, stop_reason=stop, provider_thinking_level=level
    ),
    st.lists(BLOCKS, max_size=4),
    AUTHORS,
    st.sampled_from(["stop", "toolUse", "error", "aborted", "length"]),
    st.sampled_from([None, "high", "1024"]),
)
CONTENT = st.lists(TEXTS.map(TextContent) | st.just(ImageContent("AAAA", "image/png")), max_size=3)
RESULTS = st.builds(ToolResultMessage, IDS, st.just("t"), CONTENT | TEXTS, is_error=st.booleans())
USERS = st.builds(UserMessage, CONTENT | TEXTS)
HISTORIES = st.lists(st.one_of(ANSWERS, RESULTS, USERS, TEXTS.map(SystemMessage)), max_size=12)
LEVELS: st.SearchStrategy[Any] = st.sampled_from(["off", "low", "high"])


def body_of(module: Any, model: Model, messages: list[LlmMessage], level: Any) -> dict[str, Any]:
    context, options = Context("Be brief.", messages, TOOLS), StreamOptions(thinking_level=level)
    body: dict[str, Any] = json.loads(module.encode_request(model, context, options))
    return body


def dicts(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from dicts(item)


@given(HISTORIES, LEVELS, st.sampled_from([{}, {"forceAdaptiveThinking": True}, NEWEST]))
def test_messages(messages: list[LlmMessage], level: Any, compat: dict[str, Any]) -> None:
    """PQ-02, PQ-06, PQ-07"""
    body = body_of(anthropic_request, attrs.evolve(CLAUDE, compat=compat), messages, level)
    sides = [message for message in body["messages"] if message["role"] != "system"]
    roles = [message["role"] for message in body["messages"]]
    assert all(first != second or first == "system" for first, second in pairwise(roles))
    assert all(message["content"] for message in sides)
    assert len([each for each in dicts(body) if "cache_control" in each]) <= 4
    for block in dicts(body["messages"]):
        match block.get("type"):
            case "text":
                assert block["text"].strip()
            case "thinking":
                assert block["signature"]
            case "redacted_thinking":
                assert block["data"]
            case "tool_result" if block.get("is_error"):
                assert all(each["type"] == "text" for each in block["content"])
            case _:
                pass
    check_pairs(sides, "assistant", claude_calls, claude_results)


def claude_calls(message: dict[str, Any]) -> list[str]:
    return [block["id"] for block in message["content"] if block["type"] == "tool_use"]


def claude_results(message: dict[str, Any]) -> list[str]:
    kinds = [block["type"] for block in message["content"]]
    assert kinds == sorted(kinds, key=lambda kind: kind != "tool_result"), "results come first"
    return [block["tool_use_id"] for block in message["content"] if block["type"] == "tool_result"]


@given(HISTORIES, LEVELS, st.sampled_from(["gemini-4", "gemini-2.5-flash"]))
def test_generative_ai(messages: list[LlmMessage], level: Any, model_id: str) -> None:
    """PQ-02, PQ-06, PQ-07"""
    body = body_of(google_request, attrs.evolve(GEMINI, id=model_id), messages, level)
    contents = body["contents"]
    assert all(first["role"] != second["role"] for first, second in pairwise(contents))
    assert all(content["parts"] for content in contents)
    assert all(part != {"text": ""} for content in contents for part in content["parts"])
    named = model_id == "gemini-4"
    check_pairs(contents, "model", lambda each: gemini(each, "functionCall", named), gemini_results(named))


def gemini(content: dict[str, Any], kind: str, named: bool) -> list[str]:
    found = [part[kind] for part in content["parts"] if kind in part]
    return [each["id"] if named else each["name"] for each in found]


def gemini_results(named: bool) -> Any:
    return lambda content: gemini(content, "functionResponse", named)


def check_pairs(sides: list[dict[str, Any]], answer: str, calls: Any, results: Any) -> None:
    """Every call has its one result in the very next message, and there are no others."""
    wanted: list[str] = []
    for side in sides:
        if side["role"] == answer:
            assert wanted == []
            wanted = calls(side)
            assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", each) for each in wanted)
        else:
            assert sorted(results(side)) == sorted(wanted)
            wanted = []
    assert wanted == []


@given(HISTORIES, st.lists(st.integers(1, 12)))
def test_a_growing_conversation_is_sent_as_one_that_was_never_sent(
    messages: list[LlmMessage], lengths: list[int]
) -> None:
    """Requests reuse what an earlier one of the same conversation had; also after going back."""
    for length in [*lengths, len(messages)]:
        known = messages[:length]
        fresh = [attrs.evolve(message) for message in known]
        assert body_of(openai_request, CHAT, known, "off") == body_of(openai_request, CHAT, fresh, "off")
