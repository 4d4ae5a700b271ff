"""Requests against the types of the providers' own packages. Runs where those are installed (extra `sdk`)."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable
from typing import Any

import attrs
import pytest

from pi_trio.llm import anthropic_request, google_request
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
TOOLS = (
    ToolSchema("read", "Reads a file", {"type": "object", "properties": {"path": {"type": "string"}}}),
    ToolSchema("now", "Tells the time", {}),
)
CLAUDE = Model(
    "claude-x", api="anthropic-messages", provider="anthropic", reasoning=True, input=("text", "image")
)
GEMINI = Model(
    "gemini-4-x", api="google-generative-ai", provider="google", reasoning=True, input=("text", "image")
)
NEWER = {"forceAdaptiveThinking": True, "supportsMidConvoSystemMessages": True}
OPTIONS = (
    StreamOptions(),
    StreamOptions(thinking_level="high", max_tokens=20_000, cache_retention="long"),
    StreamOptions(thinking_level="low", cache_retention="none"),
)


def history(model: Model) -> tuple[LlmMessage, ...]:
    """Everything that a conversation may hold, of this model and of another."""
    content = (
        ThinkingContent("hm", "U2ln"),
        ThinkingContent("", "c2VhbGVk", redacted=True),
        TextContent("I look.", "VHg="),
        ToolCall("call_1", "read", {"path": "é"}, "Q2E="),
        ToolCall("foreign|2", "now"),
    )
    own = AssistantMessage(content, model.api, model.provider, model.id)
    results = (
        ToolResultMessage("call_1", "read", (TextContent("1"), PICTURE)),
        ToolResultMessage("foreign|2", "now", (TextContent("no"), PICTURE), is_error=True),
    )
    start = (UserMessage.of("look", [PICTURE]), SystemMessage("Mind the step."))
    return (*start, own, *results, UserMessage("on"), attrs.evolve(own, provider="other"), UserMessage("end"))


def exhausted(value: Any) -> None:
    """Go through everything: iterables are validated only as they are read."""
    if isinstance(value, dict):
        value = value.values()
    elif isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        return
    for item in value:
        exhausted(item)


@pytest.fixture
def anthropic() -> Any:
    return pytest.importorskip("anthropic")


@pytest.fixture
def google_types() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package's own affair
        return pytest.importorskip("google.genai.types")


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("compat", [{}, NEWER, {**NEWER, "supportsMidConvoEffort": True}])
def test_messages_requests_are_of_the_official_type(
    anthropic: Any, options: StreamOptions, compat: dict[str, Any]
) -> None:
    from pydantic import TypeAdapter

    module = anthropic.types.beta if "supportsMidConvoEffort" in compat else anthropic.types
    params = TypeAdapter(module.message_create_params.MessageCreateParamsStreaming)
    model = attrs.evolve(CLAUDE, compat=compat)
    body = anthropic_request.encode_request(model, Context("Be brief.", history(model), TOOLS), options)
    exhausted(params.validate_python(json.loads(body), extra="forbid"))


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("model_id", ["gemini-4-x", "gemini-2.5-flash"])
def test_generative_ai_requests_are_of_the_official_types(
    google_types: Any, options: StreamOptions, model_id: str
) -> None:
    model = attrs.evolve(GEMINI, id=model_id)
    body = json.loads(
        google_request.encode_request(model, Context("Be brief.", history(model), TOOLS), options)
    )
    for content in [*body.pop("contents"), {"role": "user", **body.pop("systemInstruction")}]:
        for part in google_types.Content.model_validate(content).parts:
            assert part.model_dump(exclude_none=True)
    for tool in body.pop("tools"):
        assert google_types.Tool.model_validate(tool).function_declarations[0].name == "read"
    google_types.GenerationConfig.model_validate(body.pop("generationConfig"))
    assert body == {}
