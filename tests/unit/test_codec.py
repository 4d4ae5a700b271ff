"""Values to JSON and back: nothing lost, nothing invented, nothing that breaks a reader."""

from __future__ import annotations

import json
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import attrs
import pytest
from attrs import frozen

from pi_trio import codec
from pi_trio.codec import dumps, from_json, json_name, loads, message_from_json, register_message, to_json
from pi_trio.messages import (
    AssistantMessage,
    ImageContent,
    OpaqueContent,
    OpaqueMessage,
    TextContent,
    ToolCall,
    ToolResultMessage,
    ToolSchema,
    Usage,
    UserMessage,
    text_of,
)
from pi_trio.session.entries import SessionHeader, entry_from_json

# ------------------------------------------------------------------ bytes


@pytest.mark.parametrize(
    "value",
    [
        2**63,
        -(2**63) - 1,
        12345678901234567890123,
        {"a": 2**64, "b": [2**53 + 1]},
        "\ud83d",
        {"\udc00": "a\ud800b"},
        "\u2028\u2029\x00\x1f\x7f",
        {"deep": json.loads("[" * 400 + "]" * 400)},
        json.loads('{"a":' * 300 + "1" + "}" * 300),
        [0.1, 1e300, -0.0, 1.5e-10],
    ],
)
def test_what_orjson_cannot_do_is_done(value) -> None:
    """TA-09: lone surrogates, large integers, deep nesting."""
    data = dumps(value)
    assert b"\n" not in data
    assert loads(data) == value
    assert loads(data.decode()) == value


def test_plain_data_is_compact_utf_8() -> None:
    assert dumps({"a": [1, "é", None, True]}) == '{"a":[1,"é",null,true]}'.encode()


@pytest.mark.parametrize(
    "text", ["", "{", "[1,]", '{"a":1}x', "NaN", '{"a":-Infinity}', "'a'", "[" * 5000, '"\t"']
)
def test_what_is_not_json_is_a_value_error(text) -> None:
    """Also what is nested too deeply, and constants that only some readers know."""
    with pytest.raises(ValueError, match=r"."):
        loads(text)
    with pytest.raises(ValueError, match=r"."):
        loads(text.encode())


@pytest.mark.parametrize("value", [{1, 2}, b"bytes", object(), {"a": {3}}])
def test_what_json_cannot_say_is_refused(value) -> None:
    with pytest.raises((TypeError, ValueError)):
        dumps(value)


def test_a_key_given_twice_is_read_as_its_last_value() -> None:
    """TA-06: whichever reader is used."""
    large = 12345678901234567890
    assert loads('{"a":1,"a":2}') == {"a": 2}
    assert loads(f'{{"a":{large},"a":2}}') == {"a": 2}


# ------------------------------------------------------------------ names and fields


@pytest.mark.parametrize(
    ("name", "key"),
    [("text", "text"), ("tool_call_id", "toolCallId"), ("cache_write_1h", "cacheWrite1h"), ("a_b_c", "aBC")],
)
def test_names_are_camel_case_outside(name, key) -> None:
    assert json_name(name) == key


def test_a_message_is_written_as_pi_writes_it() -> None:
    message = AssistantMessage(
        (TextContent("Hi"), ToolCall("c", "read", {"path": "a"})),
        *("openai-completions", "openai", "gpt"),
        usage=Usage(input=3, output=2, total_tokens=5),
        stop_reason="toolUse",
        timestamp=7,
    )
    assert to_json(message) == {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "Hi"},
            {"type": "toolCall", "id": "c", "name": "read", "arguments": {"path": "a"}},
        ],
        **{"api": "openai-completions", "provider": "openai", "model": "gpt"},
        "usage": {
            **{"input": 3, "output": 2, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 5},
            "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0},
        },
        **{"stopReason": "toolUse", "timestamp": 7},
    }


USER = {"role": "user", "content": "plain", "timestamp": 1}
RESULT = {
    "role": "toolResult",
    "toolCallId": "c",
    "toolName": "t",
    "content": [],
    "isError": False,
    "timestamp": 1,
}
KEPT = {
    "text as content": USER,
    "an unknown field": {**USER, "later": {"x": [1, None]}},
    "an unknown field inside": {**USER, "content": [{"type": "text", "text": "a", "x": 1}]},
    "an explicit null": {**RESULT, "details": None, "usage": None},
    "an unknown role": {**USER, "role": "weather"},
    "an unknown block": {**USER, "content": [{"type": "video", "url": "x"}, "bare", 3]},
    "a block that lacks a field": {**USER, "content": [{"type": "image", "data": "x"}]},
    "text that is null": {**USER, "content": [{"type": "text", "text": None}]},
    "a message that lacks a field": {"role": "toolResult", "content": "x"},
}


@pytest.mark.parametrize("data", KEPT.values(), ids=KEPT.keys())
def test_it_comes_back_as_it_was(data) -> None:
    assert to_json(message_from_json(data)) == data


def test_what_is_unknown_or_incomplete_is_opaque() -> None:
    message = message_from_json({"role": "user", "content": [{"type": "text", "text": None}, {"no": "type"}]})
    assert [type(block) for block in message.content] == [OpaqueContent, OpaqueContent]
    assert isinstance(message_from_json({"role": "user"}), OpaqueMessage)
    assert isinstance(message_from_json({"content": "no role"}), OpaqueMessage)


def test_null_is_no_value_where_there_is_a_default() -> None:
    """So that nobody who adds up tokens meets a None."""
    message = message_from_json({"role": "assistant", "content": None, "usage": None, "stopReason": None})
    assert (message.content, message.usage, message.stop_reason) == ((), Usage(), "stop")


def test_a_field_set_since_wins_over_a_null_that_was_kept() -> None:
    message = message_from_json(
        {"role": "toolResult", "toolCallId": "c", "toolName": "t", "content": "", "details": None}
    )
    assert to_json(attrs.evolve(message, details={"a": 1}))["details"] == {"a": 1}


def test_blocks_and_tools_inside_become_values() -> None:
    data = {"role": "toolResult", "toolCallId": "c", "toolName": "t",
            "content": [{"type": "image", "data": "aGk=", "mimeType": "image/png"}]}  # fmt: skip
    assert message_from_json(data).content == (ImageContent("aGk=", "image/png"),)
    system = message_from_json(
        {"role": "system", "toolsAdded": [{"name": "t", "description": "", "parameters": {}}]}
    )
    assert system.tools_added == (ToolSchema("t", "", {}),)


def test_a_required_field_that_is_missing_is_named() -> None:
    with pytest.raises(ValueError, match="ToolResultMessage: `toolName` is missing"):
        from_json(ToolResultMessage, {"toolCallId": "c", "content": ""})


def test_containers_are_written_through() -> None:
    assert to_json({"a": [UserMessage("x", timestamp=1)], "b": (TextContent("y"),)}) == {
        "a": [{"role": "user", "content": "x", "timestamp": 1}],
        "b": [{"type": "text", "text": "y"}],
    }


def test_an_application_registers_its_own_message() -> None:
    @frozen
    class Note:
        role: ClassVar[str] = "test_note"
        text: str

    assert isinstance(message_from_json({"role": "test_note", "text": "x"}), OpaqueMessage)
    register_message(Note)
    try:
        assert message_from_json(to_json(Note("late"))) == Note("late")
    finally:
        del codec._roles()["test_note"]


# ------------------------------------------------------------------ files that others wrote

ADDED = {
    *["id", "parentId"],  # of version 1, which has none; the migration gives real ones
    *["api", "provider", "model", "stopReason", "timestamp", "usage", "arguments"],
    *["input", "output", "cacheRead", "cacheWrite", "totalTokens", "cost"],
}
"""The only change that reading and writing makes: what was left out is written with its default."""


def changes(before: Any, after: Any, place: str = "") -> Iterator[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        yield from (f"{place}.{key} lost" for key in before.keys() - after.keys())
        yield from (f"{place}.{key} added" for key in after.keys() - before.keys() - ADDED)
        for key in before.keys() & after.keys():
            yield from changes(before[key], after[key], f"{place}.{key}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from changes(one, other, f"{place}[{number}]")
    elif before != after:
        yield f"{place} changed"


def test_every_recorded_line_comes_back(shared: Path) -> None:
    """All but the one line that is cut off on purpose."""
    lines = [
        line for path in sorted(shared.glob("sessions/*/*.jsonl")) for line in path.read_bytes().split(b"\n")
    ]
    damaged = 0
    for line in filter(bytes.strip, lines):
        try:
            data = loads(line)
        except ValueError:
            damaged += 1
            continue
        value = (
            from_json(SessionHeader, data)
            if data["type"] == "session" and "version" in data
            else entry_from_json(data)
        )
        assert list(changes(data, loads(dumps(to_json(value))))) == [], line
    assert len(lines) > 1000
    assert damaged == 1


@pytest.mark.parametrize(
    "data",
    [
        {"role": "user", "content": 5},
        {"role": "assistant", "content": 5},
        {"role": "toolResult", "toolCallId": 5, "toolName": "x", "content": []},
        {"role": "bashExecution", "command": ["ls"], "output": ""},
    ],
)
def test_a_message_of_another_shape_is_kept_and_not_understood(data: dict[str, Any]) -> None:
    """It spoils nothing that is done with the rest of the conversation."""
    message = message_from_json(data)
    assert isinstance(message, OpaqueMessage)
    assert to_json(message) == data


def test_an_optional_field_of_another_shape_counts_as_left_out() -> None:
    data = {"role": "assistant", "content": [{"type": "text", "text": "x"}], "usage": "x", "model": 5}
    message = message_from_json({**data, "durationMs": {}, "timestamp": "now"})
    assert isinstance(message, AssistantMessage)
    assert (message.text, message.usage, message.model) == ("x", Usage(), "unknown")
    block = message_from_json({"role": "user", "content": [{"type": "text", "text": 5}]})
    assert to_json(block)["content"] == [{"type": "text", "text": 5}]
    assert text_of(block.content) == ""


def test_what_was_encoded_holds_no_more_memory_than_it_needs() -> None:
    """ME-01: thousands of encoded messages are kept for the next request."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        kept = [dumps({"role": "user", "content": f"{number}" * 20}) for number in range(1000)]
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 2 * sum(map(sys.getsizeof, kept))
