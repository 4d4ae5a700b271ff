"""`check_file`: every oddity with its line, and none in a sound file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pi_trio.errors import SessionError
from pi_trio.messages import AssistantMessage, ToolCall, UserMessage
from pi_trio.session.check import check_file
from pi_trio.session.session import Session

HEADER: dict[str, Any] = {"type": "session", "version": 3, "id": "s-1", "timestamp": "", "cwd": "/p"}


def entry(entry_id: str, parent: str | None, **fields: Any) -> dict[str, Any]:
    return {
        "type": "custom",
        "id": entry_id,
        "parentId": parent,
        "timestamp": "",
        "customType": "n",
        **fields,
    }


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([entry("a", None), entry("b", "a")], []),
        ([entry("a", None), "{half", "[]", entry("b", "a")], [(3, "damaged"), (4, "damaged")]),
        ([entry("a", None), entry("a", None)], [(3, "line 2 already")]),
        ([entry("a", "x")], [(2, "parent x")]),
        ([entry("a", "b"), entry("b", "a")], [(2, "circle")]),
        ([{"type": "custom"}], [(2, "no id")]),
        ([entry("a", None, type="label", targetId="x")], [(2, "targetId names x")]),
        ([entry("a", None, type="label")], [(2, "lacks a field")]),
        ([entry("a", None, type="compaction", summary="", firstKeptEntryId="x")], [(2, "firstKeptEntryId")]),
        ([entry("a", None, type="from the future")], []),
        (["\0" * 100], [(2, "NUL")]),
    ],
)
def test_findings(tmp_path: Path, lines: list[Any], expected: list[tuple[int, str]]) -> None:
    path = tmp_path / "s.jsonl"
    texts = (each if isinstance(each, str) else json.dumps(each) for each in [HEADER, *lines])
    path.write_text("\n".join(texts) + "\n")
    found = check_file(path)
    assert [each.line for each in found] == [number for number, _ in expected]
    for finding, (_, words) in zip(found, expected, strict=True):
        assert words in finding.text


def test_a_torn_end_and_a_damaged_header(tmp_path: Path) -> None:
    """SF-01, SF-02."""
    path = tmp_path / "s.jsonl"
    path.write_text("{broken\n" + json.dumps(entry("a", None)) + '\n{"type":"cus')
    before = path.read_bytes()
    assert [each.line for each in check_file(path)] == [1, 3, 3]
    assert path.read_bytes() == before


def test_a_call_without_a_result(tmp_path: Path) -> None:
    session = Session.new("/p", tmp_path / "s.jsonl")
    session.append_message(UserMessage.of("q"))
    session.append_message(AssistantMessage((ToolCall("c-1", "read"),), stop_reason="aborted"))
    session.append_message(AssistantMessage((ToolCall("c-2", "read"),)))
    (finding,) = check_file(tmp_path / "s.jsonl")
    assert (finding.line, finding.text) == (4, "the call c-2 has no result")


def test_what_pi_wrote_is_sound(shared: Path) -> None:
    for path in sorted((shared / "sessions" / "real-pi").glob("*.jsonl")):
        assert check_file(path) == [], path.name


def test_what_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SessionError):
        check_file(tmp_path)
    with pytest.raises(SessionError):
        check_file(tmp_path / "missing")
