"""No host can break the reader by the shape of what it sends."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pi_trio.llm.openai_completions import ChunkDecoder
from pi_trio.llm.protocol import Done, Failed, Model, StreamOptions

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


def maybe(shape: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Mostly what should be there."""
    return st.one_of(shape, shape, ANYTHING)


def objects(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return maybe(st.fixed_dictionaries({}, optional={key: maybe(value) for key, value in fields.items()}))


def lists(item: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return maybe(st.lists(item, max_size=3))


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
