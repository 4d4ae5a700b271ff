"""Files of versions 1 and 2: read as they are, replaced only when something is appended."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from pi_trio.errors import SessionLockedError, StorageError
from pi_trio.messages import UserMessage
from pi_trio.session.session import Session

STAMP = "2025-01-01T00:00:00.000Z"


def message(text: str) -> dict[str, Any]:
    return {
        "type": "message",
        "timestamp": STAMP,
        "message": {"role": "user", "content": text, "timestamp": 1},
    }


def hook() -> dict[str, Any]:
    content = {"role": "hookMessage", "customType": "h", "content": "!", "display": True, "timestamp": 1}
    return {"type": "message", "timestamp": STAMP, "message": content}


def write(path: Path, version: int | None, *entries: dict[str, Any]) -> bytes:
    header = {"type": "session", "id": "s-1", "timestamp": STAMP, "cwd": "/p", "provider": "kept"}
    if version is not None:
        header["version"] = version
    path.write_text("".join(json.dumps(each) + "\n" for each in [header, *entries]))
    return path.read_bytes()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "old.jsonl"


def first_version(path: Path) -> bytes:
    compaction = {"type": "compaction", "timestamp": STAMP, "summary": "so far", "firstKeptEntryIndex": 2}
    return write(path, None, message("one"), message("two"), message("three"), compaction, hook())


def test_reading_changes_nothing_and_gives_the_same_tree_each_time(path: Path) -> None:
    before = first_version(path)
    session = Session.open(path)
    session.close()
    again = Session.open(path)
    assert session.heads == again.heads
    assert len(again.get_branch()) == 5
    messages = again.build_context().messages
    assert [each.role for each in messages] == ["compactionSummary", "user", "user", "custom"]
    assert [each.content for each in messages[1:3]] == ["two", "three"]
    again.close()
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_the_first_append_puts_a_file_of_version_3_in_its_place(path: Path) -> None:
    before = first_version(path)
    session = Session.open(path)
    context = session.build_context().messages
    added = session.append_message(UserMessage.of("on"))
    assert session.build_context().messages == (*context, added.message)
    session.append_label(added.id, "here")
    session.close()
    kept = path.with_name("old.jsonl.v1.bak")
    assert kept.read_bytes() == before
    assert sorted(path.parent.iterdir()) == [path, kept]
    header = json.loads(path.read_bytes().splitlines()[0])
    assert (header["version"], header["id"], header["provider"]) == (3, "s-1", "kept")
    again = Session.open(path)
    assert again.heads == session.heads
    assert again.findings == []
    assert again.build_context().messages == (*context, added.message)


def test_version_2_keeps_its_ids(path: Path) -> None:
    entry = {**message("one"), "id": "aaaa0001", "parentId": None}
    other = {**hook(), "id": "aaaa0002", "parentId": "aaaa0001", "unknown": [1]}
    before = write(path, 2, entry, other)
    session = Session.open(path)
    session.append_message(UserMessage.of("on"))
    assert session.raw("aaaa0002")["unknown"] == [1]
    assert session.raw("aaaa0002")["message"]["role"] == "custom"
    session.close()
    assert path.with_name("old.jsonl.v2.bak").read_bytes() == before


def test_an_old_copy_of_something_else_is_not_overwritten(path: Path) -> None:
    before = first_version(path)
    kept = path.with_name("old.jsonl.v1.bak")
    kept.write_text("mine")
    session = Session.open(path)
    session.append_message(UserMessage.of("on"))
    session.close()
    assert kept.read_text() == "mine"
    assert path.with_name("old.jsonl.v1.1.bak").read_bytes() == before


def test_an_attempt_that_was_stopped_is_done_again(path: Path) -> None:
    """What a crash leaves between two steps: an unfinished file, and the second name of the old one."""
    before = first_version(path)
    path.with_name(".old.jsonl.new").write_text("{half")
    os.link(path, path.with_name("old.jsonl.v1.bak"))
    session = Session.open(path)
    session.append_message(UserMessage.of("on"))
    session.close()
    assert path.with_name("old.jsonl.v1.bak").read_bytes() == before
    assert len(list(path.parent.iterdir())) == 2
    assert len(Session.open(path).heads) == 6


def test_only_one_may_write(path: Path) -> None:
    first_version(path)
    session = Session.open(path)
    with pytest.raises(SessionLockedError):
        Session.open(path)
    reader = Session.open(path, writable=False)
    with pytest.raises(StorageError, match="opened for reading"):
        reader.append_message(UserMessage.of("no"))
    session.append_message(UserMessage.of("on"))
    with pytest.raises(SessionLockedError):
        Session.open(path)
    session.close()


def test_a_fork_of_an_old_file_is_of_version_3(path: Path, tmp_path: Path) -> None:
    from pi_trio.session.repository import SessionRepository

    before = first_version(path)
    source = Session.open(path, writable=False)
    fork = SessionRepository(tmp_path / "agent", tmp_path).clone(source)
    fork.append_message(UserMessage.of("on"))
    assert fork.header.version == 3
    assert fork.header.parent_session == str(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("name", ["v1_large", "constructed_v2_hook_message"])
def test_recorded_files(shared: Path, tmp_path: Path, name: str) -> None:
    path = tmp_path / f"{name}.jsonl"
    shutil.copy(shared / "sessions" / "public" / path.name, path)
    before = path.read_bytes()
    session = Session.open(path)
    context = session.build_context()
    version = 1 if "v1" in name else 2
    session.append_message(UserMessage.of("on"))
    session.close()
    assert path.with_name(f"{path.name}.v{version}.bak").read_bytes() == before
    again = Session.open(path)
    assert again.heads == session.heads
    assert again.build_context().messages[:-1] == context.messages
