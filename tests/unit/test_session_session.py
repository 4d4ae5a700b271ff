"""A session as its callers see it: appending, moving, names and labels, bodies on demand."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import trio

from pi_trio.errors import UsageError
from pi_trio.messages import AssistantMessage, TextContent, UserMessage
from pi_trio.session.cache import CACHE_BYTES
from pi_trio.session.entries import (
    BranchSummaryEntry,
    CustomEntry,
    LabelEntry,
    LeafEntry,
    MessageEntry,
    OpaqueEntry,
    SessionInfoEntry,
)
from pi_trio.session.ids import new_entry_id, new_session_id
from pi_trio.session.session import Session


def user(text: str) -> MessageEntry:
    return MessageEntry(UserMessage.of(text))


def answer(text: str) -> MessageEntry:
    return MessageEntry(AssistantMessage((TextContent(text),)))


def test_appending_stamps_and_moves_the_leaf() -> None:
    session = Session.in_memory("/p")
    first = session.append(user("one"))
    second = session.append(answer("two"))
    assert (first.parent_id, second.parent_id) == (None, first.id)
    assert len(first.id) == 8
    assert first.timestamp.endswith("Z")
    assert session.get_leaf_id() == second.id
    assert session.get_branch() == [first, second]
    assert session.get_branch(first.id) == [first]
    assert session.raw(second.id)["parentId"] == first.id
    assert session.path is None


def test_moving_the_leaf_is_durable(tmp_path: Path) -> None:
    session = Session.new("/p", tmp_path / "s.jsonl")
    first = session.append(user("one"))
    session.append(answer("two"))
    moved = session.set_leaf_id(first.id)
    assert moved is not None
    assert (moved.target_id, moved.parent_id) == (first.id, first.id)
    assert session.get_leaf_id() == first.id
    assert session.set_leaf_id(first.id) is None
    assert session.set_leaf_id(moved.id) is None  # a pointer stands for its target
    session.close()
    again = Session.open(tmp_path / "s.jsonl")
    assert again.get_leaf_id() == first.id
    assert again.append(answer("other")).parent_id == first.id
    top = again.set_leaf_id(None)
    assert top is not None
    stored = again.raw(top.id)
    assert {key: stored[key] for key in ("type", "parentId", "targetId")} == {
        "type": "leaf",
        "parentId": None,
        "targetId": None,
    }
    assert again.append(user("new root")).parent_id is None


def test_another_programs_entry_on_a_pointer_is_on_the_target(tmp_path: Path) -> None:
    """pi takes the last line as the leaf, so its next entry names our pointer as its parent."""
    path = tmp_path / "s.jsonl"
    session = Session.new("/p", path)
    first = session.append(user("one"))
    session.append(answer("two"))
    moved = session.set_leaf_id(first.id)
    assert moved is not None
    session.close()
    line = {
        "type": "message",
        "id": "12345678",
        "parentId": moved.id,
        "timestamp": "2026-01-01T00:00:00.000Z",
    }
    with path.open("a") as file:
        file.write(json.dumps({**line, "message": {"role": "user", "content": "pi", "timestamp": 1}}) + "\n")
    again = Session.open(path)
    assert again.tree.path(again.get_leaf_id()) == [first.id, "12345678"]


def test_a_summary_hangs_where_the_leaf_goes() -> None:
    session = Session.in_memory("/p")
    first = session.append(user("one"))
    second = session.append(answer("two"))
    summary = session.append_at(first.id, BranchSummaryEntry(second.id, "went there"))
    assert summary.parent_id == first.id
    assert session.get_leaf_id() == summary.id
    assert [head.type for head in session.heads] == ["message", "message", "branch_summary"]


def test_unknown_entries_are_the_callers_mistake() -> None:
    session = Session.in_memory("/p")
    for call in (session.entry, session.raw, session.set_leaf_id):
        with pytest.raises(UsageError, match="no entry nope"):
            call("nope")
    with pytest.raises(UsageError):
        session.append(LeafEntry(None))


def test_names_and_labels_are_the_last_in_file_order(tmp_path: Path) -> None:
    session = Session.new("/p", tmp_path / "s.jsonl")
    first = session.append(user("one"))
    assert session.name is None
    assert session.label_of(first.id) is None
    session.append(SessionInfoEntry("a\nname "))
    session.append(LabelEntry(first.id, "start"))
    session.append(LabelEntry(first.id, "begin"))
    session.set_leaf_id(first.id)  # another branch: names and labels hold for the whole file
    assert (session.name, session.label_of(first.id)) == ("a name", "begin")
    session.close()
    again = Session.open(tmp_path / "s.jsonl")
    assert (again.name, again.label_of(first.id)) == ("a name", "begin")
    again.append(LabelEntry(first.id))
    again.append(SessionInfoEntry(""))
    assert (again.name, again.label_of(first.id)) == (None, None)


def test_listeners_get_each_object_after_it_is_there() -> None:
    session = Session.in_memory("/p")
    seen: list[Mapping[str, Any]] = []

    def listen(data: Mapping[str, Any]) -> None:
        assert session.raw(data["id"]) == data
        seen.append(data)

    session.on_append = listen
    first = session.append(user("one"))
    session.append(answer("two"))
    session.set_leaf_id(first.id)
    assert [each["type"] for each in seen] == ["message", "message", "leaf"]


def test_unknown_types_and_fields_survive(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    session = Session.new("/p", path)
    session.append(user("one"))
    session.append(OpaqueEntry("future", extra={"secret": [1, {"x": None}]}))
    session.append(CustomEntry("note", {"n": 1}, extra={"more": 2}))
    session.close()
    again = Session.open(path)
    future, note = again.get_branch()[1:]
    assert (future.type, future.extra) == ("future", {"secret": [1, {"x": None}]})
    assert note.extra == {"more": 2}


def test_entries_stay_readable_when_the_cache_is_full(tmp_path: Path) -> None:
    session = Session.new("/p", tmp_path / "s.jsonl")
    size = CACHE_BYTES // 3
    ids = [session.append(user(f"{n}" + "x" * size)).id for n in range(6)]
    for n, each in enumerate(ids):
        entry = session.entry(each)
        assert isinstance(entry, MessageEntry)
        assert isinstance(entry.message, UserMessage)
        assert entry.message.content[0].text[0] == str(n)


def test_entry_bigger_than_the_cache(tmp_path: Path) -> None:
    session = Session.new("/p", tmp_path / "s.jsonl")
    added = session.append(user("x" * (CACHE_BYTES + 1)))
    assert session.entry(added.id) == added


async def test_sync_in_a_thread(tmp_path: Path) -> None:
    session = Session.new("/p", tmp_path / "s.jsonl")
    await trio.to_thread.run_sync(session.sync)  # no file yet: nothing to wait for
    session.append(user("one"))
    await trio.to_thread.run_sync(session.sync)
    session.close()


def test_ids() -> None:
    ids = [uuid.UUID(new_session_id()) for _ in range(50)]
    assert {each.version for each in ids} == {7}
    assert {each.variant for each in ids} == {uuid.RFC_4122}
    assert ids[0].time_low <= ids[-1].time_low

    class Everything:
        def __contains__(self, item: object) -> bool:
            return len(str(item)) == 8

    assert len(new_entry_id(Everything())) == 36
