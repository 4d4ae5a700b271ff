"""How long an answer may be."""

from __future__ import annotations

import json

import pytest

from pi_trio.llm import anthropic_request, google_request, openai_request, openai_responses_request
from pi_trio.llm.limits import estimated_tokens, output_limit
from pi_trio.llm.protocol import Context, Model, StreamOptions
from pi_trio.messages import (
    AssistantMessage,
    ImageContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolSchema,
    UserMessage,
)

MODEL = Model("m", context_window=200_000, max_tokens=64_000)


def asking(tokens: int) -> Context:
    return Context("", (UserMessage.of("x" * round(tokens * 3.5)),))


@pytest.mark.parametrize(
    ("asked", "wanted", "limit"),
    [
        (0, None, 64_000),
        (0, 500, 500),
        (0, 99_000, 64_000),
        (100_000, None, 64_000),
        (130_000, None, 50_500),  # a margin of 15 %
        (150_000, None, 32_768),  # little room: the margin is given up
        (180_000, None, 15_904),
        (180_000, 500, 500),
        (200_000, None, 1),
        (999_000, 500, 1),
    ],
)
def test_answer_fits_behind_its_question(asked: int, wanted: int | None, limit: int) -> None:
    assert output_limit(MODEL, asking(asked), wanted) == limit


def test_everything_that_is_sent_is_measured() -> None:
    answer = AssistantMessage(
        (ThinkingContent("t" * 70), TextContent("a" * 70), ToolCall("c", "n" * 5, {"k": "v"}))
    )
    picture = UserMessage.of("p" * 35, [ImageContent("A" * 100_000, "image/png")])
    tool = ToolSchema("look", "d" * 33, {})
    context = Context("s" * 35, (answer, picture, UserMessage("u" * 35)), (tool,))
    letters = 35 + (70 + 70 + 5 + len('{"k":"v"}')) + (35 + 4800) + 35 + (33 + len("{}"))
    assert estimated_tokens(context) == round(letters / 3.5)


@pytest.mark.parametrize(
    ("encode", "field"),
    [
        (openai_request.encode_request, "max_tokens"),
        (openai_responses_request.encode_request, "max_output_tokens"),
        (anthropic_request.encode_request, "max_tokens"),
        (
            lambda *asked: json.dumps(json.loads(google_request.encode_request(*asked))["generationConfig"]),
            "maxOutputTokens",
        ),
    ],
)
def test_every_dialect_keeps_to_it(encode, field: str) -> None:
    body = json.loads(encode(MODEL, asking(180_000), StreamOptions(max_tokens=50_000)))
    assert body[field] == 15_904
