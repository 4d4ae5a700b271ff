"""However the text of an object is cut, it shows the same, and whole text shows the object."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pi_trio.llm.growing_json import GrowingObject

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(
    st.dictionaries(st.text(), VALUES, max_size=4), st.lists(st.integers(0, 400), max_size=8), st.booleans()
)
def test_whole_text_gives_the_object(value: dict[str, Any], cuts: list[int], escaped: bool) -> None:
    text = json.dumps(value, ensure_ascii=escaped)
    bounds = sorted({cut % (len(text) + 1) for cut in cuts} | {0, len(text)})
    growing = GrowingObject()
    for start, end in pairwise(bounds):
        growing.feed(text[start:end])
        growing.value()  # a look changes nothing
    assert growing.value() == value


@given(st.text('{}[]":,\\ud8301a nul-.e', max_size=30))
def test_any_text_shows_something_and_the_same_in_pieces(text: str) -> None:
    whole, letters = GrowingObject(), GrowingObject()
    whole.feed(text)
    for letter in text:
        letters.feed(letter)
        assert isinstance(letters.value(), dict)
    assert letters.value() == whole.value()
