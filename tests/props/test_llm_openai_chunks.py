"""No host can break the reader by the shape of what it sends."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from json_shapes import lists, objects

from pi_trio.llm.openai_completions import ChunkDecoder
from pi_trio.llm.protocol import Done, Failed, Model, StreamOptions

CALL = objects(index=st.integers(0, 2), id=st.text(), function=objects(name=st.text(), arguments=st.text()))
PART = objects(type=st.text(), text=st.text(), thinking=lists(objects(text=st.text())))
DELTA = objects(
    content=st.text() | lists(PART),
    reasoning=st.text(),
    refusal=st.text(),
    tool_calls=lists(CALL),
    role=st.text(),
)
USAGE = objects(
    prompt_tokens=st.integers(0, 100),
    completion_tokens=st.integers(0, 100),
    total_tokens=st.integers(0, 200),
    prompt_tokens_details=objects(cached_tokens=st.integers(0, 100)),
    cost=st.floats(0, 1),
)
CHOICE = objects(index=st.integers(0, 1), delta=DELTA, finish_reason=st.text(), usage=USAGE)
ERROR = objects(message=st.text(), code=st.integers(400, 599), type=st.text())
CHUNK = objects(
    id=st.text(), model=st.text(), choices=lists(CHOICE), usage=USAGE, x_groq=objects(usage=USAGE)
)
FAILING_CHUNK = objects(error=ERROR, choices=lists(CHOICE))


@given(st.lists(st.one_of(CHUNK, CHUNK, CHUNK, FAILING_CHUNK), max_size=4), st.booleans())
def test_every_stream_ends_with_one_last_event(chunks: list[Any], marked: bool) -> None:
    decoder = ChunkDecoder(Model("m"), StreamOptions())
    for chunk in chunks:
        if decoder.ended:
            break
        if isinstance(chunk, dict):
            decoder.feed("", json.dumps(chunk))
    if marked and not decoder.ended:
        decoder.feed("", "[DONE]")
    if not decoder.ended:
        decoder.finish()
    events = decoder.take()
    assert [isinstance(event, (Done, Failed)) for event in events].count(True) == 1
    assert isinstance(events[-1], (Done, Failed))
    usage = events[-1].message.usage
    assert min(usage.input, usage.output, usage.cache_read, usage.total_tokens) >= 0
