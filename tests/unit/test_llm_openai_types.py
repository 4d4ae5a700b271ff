"""Requests against the types of OpenAI's own package. Runs where it is installed (extra `sdk`)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import attrs
import pytest

from pi_trio.llm import openai_request, openai_responses_request
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

PICTURE = ImageContent("AAAA", "image/png")
TOOLS = (ToolSchema("read", "Reads", {"type": "object"}), ToolSchema("now", "Tells the time", {}))
CHAT = Model("gpt-x", api="openai-completions", provider="openai", reasoning=True, input=("text", "image"))
RESPONSES = attrs.evolve(CHAT, api="openai-responses")
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]}


def conversation(model: Model) -> Context:
    """Everything that a conversation may hold, of this model and of another."""
    content = (
        ThinkingContent("hm", json.dumps({**REASONING, "encrypted_content": "gAAA"})),
        TextContent("I look.", '{"v":1,"id":"msg_1","phase":"commentary"}'),
        ToolCall("call_1", "read", {"path": "é"}),
        ToolCall("call_2|fc_2", "now"),
    )
    own = AssistantMessage(content, model.api, model.provider, model.id)
    results = (
        ToolResultMessage("call_1", "read", (TextContent("1"), PICTURE)),
        ToolResultMessage("call_2|fc_2", "now", (TextContent("no"),), is_error=True),
    )
    start = (UserMessage.of("look", [PICTURE]), SystemMessage("Mind the step."))
    other = attrs.evolve(own, provider="other")
    messages: tuple[LlmMessage, ...] = (*start, own, *results, UserMessage("on"), other, UserMessage("end"))
    return Context("Be brief.", messages, TOOLS)


def exhausted(value: Any) -> None:
    """Go through everything: iterables are validated only as they are read."""
    if isinstance(value, dict):
        value = value.values()
    elif isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        return
    for item in value:
        exhausted(item)


@pytest.fixture
def types() -> Any:
    return pytest.importorskip("openai").types


OPTIONS = (
    StreamOptions(),
    StreamOptions(thinking_level="high", max_tokens=2000, temperature=0.5, session_id="s" * 80),
)


@pytest.mark.parametrize("options", OPTIONS)
def test_responses_requests_are_of_the_official_type(types: Any, options: StreamOptions) -> None:
    from pydantic import TypeAdapter

    params = TypeAdapter(types.responses.response_create_params.ResponseCreateParamsStreaming)
    body = json.loads(openai_responses_request.encode_request(RESPONSES, conversation(RESPONSES), options))
    exhausted(params.validate_python(body, extra="forbid"))


@pytest.mark.parametrize("options", OPTIONS)
def test_chat_requests_are_of_the_official_type(types: Any, options: StreamOptions) -> None:
    from pydantic import TypeAdapter

    params = TypeAdapter(types.chat.completion_create_params.CompletionCreateParamsStreaming)
    body = json.loads(openai_request.encode_request(CHAT, conversation(CHAT), options))
    exhausted(params.validate_python(body, extra="forbid"))
