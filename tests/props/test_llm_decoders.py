"""No host can break the readers of Messages and Generative AI by the shape of what it sends."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from json_shapes import lists, maybe, objects

from pi_trio.llm.anthropic_messages import EventDecoder
from pi_trio.llm.dialect import Decoder
from pi_trio.llm.google_generative_ai import ResponseDecoder
from pi_trio.llm.protocol import Done, Failed, Model, StreamOptions


def tokens(*names: str) -> st.SearchStrategy[Any]:
    return objects(**{name: st.integers(0, 100) for name in names})


# ------------------------------------------------------------------ Messages


USAGE = tokens("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
BLOCKS = objects(
    type=st.sampled_from(["text", "thinking", "redacted_thinking", "tool_use", "server_tool_use"]),
    text=st.text(),
    thinking=st.text(),
    data=st.text(),
    id=st.text(),
    name=st.text(),
    input=objects(path=st.text()),
)
DELTAS = objects(
    type=st.sampled_from(["text_delta", "thinking_delta", "signature_delta", "input_json_delta"]),
    text=st.text(),
    thinking=st.text(),
    signature=st.text(),
    partial_json=st.text(),
    stop_reason=st.text(),
    stop_details=objects(explanation=st.text()),
)
KINDS = (
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
    "ping",
    "error",
)
EVENTS = st.fixed_dictionaries(
    {"type": maybe(st.sampled_from(KINDS))},
    optional={
        "index": maybe(st.integers(0, 2)),
        "message": objects(id=st.text(), model=st.text(), usage=USAGE),
        "content_block": BLOCKS,
        "delta": DELTAS,
        "usage": USAGE,
        "error": objects(type=st.text(), message=st.text()),
    },
)

# ------------------------------------------------------------------ Generative AI


CALLS = objects(
    name=st.text(),
    id=st.text(),
    args=objects(path=st.text()),
    willContinue=st.booleans(),
    partialArgs=lists(objects(jsonPath=st.just("$.a"), stringValue=st.text(), numberValue=st.floats(0, 9))),
)
PARTS = objects(text=st.text(), thought=st.booleans(), thoughtSignature=st.text(), functionCall=CALLS)
CANDIDATES = objects(
    index=st.integers(0, 1),
    content=objects(parts=lists(PARTS)),
    finishReason=st.sampled_from(["STOP", "MAX_TOKENS", "SAFETY", "NEW"]),
    finishMessage=st.text(),
)
RESPONSES = st.fixed_dictionaries(
    {},
    optional={
        "candidates": lists(CANDIDATES),
        "usageMetadata": tokens(
            "promptTokenCount", "cachedContentTokenCount", "candidatesTokenCount", "thoughtsTokenCount"
        ),
        "promptFeedback": objects(blockReason=st.text()),
        "responseId": maybe(st.text()),
        "modelVersion": maybe(st.text()),
    },
)


def check(decoder: Decoder, sent: list[Any]) -> None:
    """One last event, whatever came; a reader may only say that something is not its dialect."""
    for each in sent:
        if decoder.ended:
            break
        try:
            decoder.feed("", json.dumps(each))
        except ValueError:
            continue
    if not decoder.ended:
        decoder.finish()
    events = decoder.take()
    assert [isinstance(event, (Done, Failed)) for event in events].count(True) == 1
    assert isinstance(events[-1], (Done, Failed))
    usage = events[-1].message.usage
    assert min(usage.input, usage.output, usage.cache_read, usage.cache_write) >= 0
    assert usage.total_tokens == usage.input + usage.output + usage.cache_read + usage.cache_write


@given(st.lists(EVENTS, max_size=6))
def test_messages(events: list[Any]) -> None:
    check(EventDecoder(Model("m"), StreamOptions()), events)


@given(st.lists(RESPONSES, max_size=4))
def test_generative_ai(responses: list[Any]) -> None:
    check(ResponseDecoder(Model("m"), StreamOptions()), responses)
