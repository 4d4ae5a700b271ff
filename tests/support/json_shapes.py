"""JSON that mostly has the shape it should have: what a host, or a file, may hold."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

__all__ = ["ANYTHING", "lists", "maybe", "objects"]

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
