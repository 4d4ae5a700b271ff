"""What a call's arguments show while they arrive."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pi_trio.llm.growing_json import GrowingObject


def shown(text: str) -> dict[str, Any]:
    growing = GrowingObject()
    growing.feed(text)
    return growing.value()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", {}),
        ("{", {}),
        ('{"pa', {}),
        ('{"path"', {}),
        ('{"path": ', {}),
        ('{"path": "', {"path": ""}),
        ('{"path": "src/a', {"path": "src/a"}),
        ('{"path": "a", "limit": 1', {"path": "a"}),
        ('{"path": "a", "limit": 10,', {"path": "a", "limit": 10}),
        ('{"all": tru', {}),
        ('{"all": true}', {"all": True}),
        ('{"edits": [{"old": "x", "new": "y', {"edits": [{"old": "x", "new": "y"}]}),
        ('{"edits": [{"old": "x"}, {"ol', {"edits": [{"old": "x"}, {}]}),
        ('{"a": {"b": [1, [2, "c', {"a": {"b": [1, [2, "c"]]}}),
    ],
)
def test_text_grows_and_the_rest_counts_when_it_is_whole(text: str, value: dict[str, Any]) -> None:
    assert shown(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'{"x": "a\n\"\\', 'a\n"\\'),
        (r'{"x": "a\u00e', "a"),
        (r'{"x": "a\u00e9', "aé"),
        (r'{"x": "a\ud83d', "a"),
        (r'{"x": "a\ud83d\ude0', "a"),
        (r'{"x": "a\ud83d\ude00', "a😀"),
        (r'{"x": "a\ud83dz', "a\ufffdz"),
        (r'{"x": "a\ud83d"', "a\ufffd"),
        (r'{"x": "C:\dir', r"C:\dir"),
        ('{"x": "a\tb\n', "a\tb\n"),
    ],
)
def test_escapes_count_when_they_are_whole_and_bad_ones_stay(text: str, value: str) -> None:
    """TA-08, TA-09: nothing here is a reason to show nothing."""
    assert shown(text) == {"x": value}


@pytest.mark.parametrize("text", ["null", "[1, 2", '"x"', "}", "3", " ] {", "oops {"])
def test_what_is_no_object_shows_nothing(text: str) -> None:
    """TA-05"""
    assert shown(text) == {}


def test_nothing_is_taken_in_after_the_end_or_after_nonsense() -> None:
    assert shown('{"a": 1} {"a": 2}') == {"a": 1}
    assert shown('{"a": 1, "b": oops, "c": 2}') == {"a": 1}


def test_a_look_is_not_changed_by_what_follows() -> None:
    growing = GrowingObject()
    text = '{"list": [1, {"a": "x"}], "text": "one two"}'
    looks = []
    for letter in text:
        growing.feed(letter)
        looks.append((growing.value(), json.dumps(growing.value())))
    assert all(json.dumps(value) == then for value, then in looks)
    assert looks[-1][0] == json.loads(text)


def test_eight_megabytes_in_small_pieces_are_read_once() -> None:
    """Each letter is matched once: what is kept for later never grows with the text."""
    growing = GrowingObject()
    growing.feed('{"content": "')
    for _ in range(8 * 1024):
        growing.feed("x" * 1024)
        assert growing._rest == ""
    growing.feed('"}')
    assert len(growing.value()["content"]) == 8 * 1024 * 1024


def test_number_without_an_end_is_not_kept_for_ever() -> None:
    growing = GrowingObject()
    growing.feed('{"n": ')
    for _ in range(1000):
        growing.feed("1" * 60)
        assert len(growing._rest) <= 100
