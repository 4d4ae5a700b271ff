"""Any value survives JSON: every class, every field, whatever text and numbers are in it."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pi_trio import messages
from pi_trio.codec import dumps, from_json, json_name, loads, to_json
from pi_trio.llm.protocol import Model, ModelCost
from pi_trio.messages import AgentMessage, Content, Cost, ToolSchema, Usage

CLASSES = [
    *typing.get_args(Content),
    *typing.get_args(AgentMessage),
    Usage,
    Cost,
    ToolSchema,
    Model,
    ModelCost,
]


def _stands(text: str) -> bool:
    """Whether no two halves in the text make a pair, which JSON cannot tell from the letter itself."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass") == text


texts = st.text(st.characters(exclude_categories=()), max_size=8).filter(_stands)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
plain = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(texts, plain, max_size=3)
unknown = st.dictionaries(texts.map("x-{}".format), plain, max_size=2)


def values_of(cls: type) -> st.SearchStrategy:
    """Values of an attrs class, with fields that it does not know."""
    hints = typing.get_type_hints(cls)
    fields = {spec.name: _of(hints[spec.name]) for spec in attrs.fields(cls) if spec.name != "extra"}
    return st.builds(cls, **fields, extra=unknown)


def _of(hint: Any) -> st.SearchStrategy:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    simple = {str: texts, int: st.integers(), bool: st.booleans(), type(None): st.none(), Any: plain,
              float: st.floats(allow_nan=False, allow_infinity=False)}  # fmt: skip
    if hint in simple:
        return simple[hint]
    if origin is typing.Literal:
        return st.sampled_from(args)
    if origin is tuple:
        return st.lists(_of(args[0]), max_size=2).map(tuple)
    if origin in (typing.Union, types.UnionType):
        return st.one_of([_of(option) for option in args])
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return st.dictionaries(texts, _of(args[1]), max_size=2)
    return st.deferred(lambda: values_of(hint))


@given(plain)
def test_plain_data_comes_back(value) -> None:
    assert loads(dumps(value)) == value
    assert loads(dumps(value).decode()) == value


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
@given(data=st.data())
@settings(max_examples=25)
def test_values_come_back(cls, data) -> None:
    value = data.draw(values_of(cls))
    assert from_json(cls, loads(dumps(to_json(value)))) == value


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
@given(data=st.data())
@settings(max_examples=25)
def test_explicit_nulls_come_back(cls, data) -> None:
    written = to_json(data.draw(values_of(cls)))
    optional = [json_name(spec.name) for spec in attrs.fields(cls) if spec.default is None]
    written |= dict.fromkeys(data.draw(st.sets(st.sampled_from(optional))) if optional else (), None)
    assert to_json(from_json(cls, written)) == written


def test_every_message_and_block_is_tried() -> None:
    named = [getattr(messages, name) for name in messages.__all__]
    assert {each for each in named if isinstance(each, type) and attrs.has(each)} <= set(CLASSES)
