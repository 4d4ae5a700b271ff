"""A sequence that is frozen although its list grows."""

from __future__ import annotations

import pytest

from pi_trio.llm.protocol import Context
from pi_trio.messages import UserMessage
from pi_trio.prefix import Prefix


def test_later_items_do_not_show() -> None:
    items = ["a", "b"]
    prefix = Prefix(items)
    items.append("c")
    assert list(prefix) == ["a", "b"]
    assert list(reversed(prefix)) == ["b", "a"]
    assert len(prefix) == 2
    assert "c" not in prefix
    assert repr(prefix) == "('a', 'b')"
    assert bool(prefix)
    assert not Prefix([])


@pytest.mark.parametrize(
    "index", [0, 1, -1, -2, slice(None), slice(1), slice(-1, None), slice(5), slice(None, None, -1)]
)
def test_it_is_indexed_like_a_tuple(index) -> None:
    items = ["a", "b"]
    prefix = Prefix(items)
    items.append("c")
    assert prefix[index] == ("a", "b")[index]


@pytest.mark.parametrize("index", [2, -3])
def test_what_came_later_is_out_of_range(index) -> None:
    items = ["a", "b"]
    prefix = Prefix(items)
    items.append("c")
    with pytest.raises(IndexError):
        prefix[index]


def test_it_equals_what_has_equal_items() -> None:
    assert Prefix(["a"]) == ("a",) == Prefix(["a"])
    assert Prefix(["a"]) != ("b",)
    assert Prefix(["a"]) != ("a", "b")
    assert Prefix(["a"]) != "a"
    with pytest.raises(TypeError):
        hash(Prefix(["a"]))


def test_a_context_keeps_it_and_copies_a_list() -> None:
    messages = [UserMessage.of("Hi")]
    prefix, given = Prefix(messages), list(messages)
    context = Context("", given)
    given.append(UserMessage.of("more"))
    assert Context("", prefix).messages is prefix
    assert Context("", prefix) == context
