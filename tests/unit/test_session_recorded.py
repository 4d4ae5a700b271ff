"""Session files of other programs: pi 1.6 and public ones."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pi_trio.messages import AssistantMessage, ToolResultMessage, UserMessage
from pi_trio.session.entries import MessageEntry
from pi_trio.session.repository import SessionRepository
from pi_trio.session.session import Session

PUBLIC = (
    "constructed_broken_last_line",
    "constructed_v2_hook_message",
    "v1_large",
    "v3_branches",
    "v3_custom_entries",
    "v3_error_message",
    "v3_header_only",
    "v3_label_session_info",
    "v3_model_changes_error",
    "v3_orphan_parent",
    "v3_thinking_tools",
    "v3_unknown_entry_branches",
    "v3_version_as_text",
)


def leaves(session: Session) -> list[str]:
    return [head.id for head in session.heads if not session.tree.children(head.id)]


@pytest.mark.parametrize("name", PUBLIC)
def test_counts_of_public_files(shared: Path, name: str) -> None:
    folder = shared / "sessions" / "public"
    expected: dict[str, Any] = json.loads((folder / f"{name}.expected.json").read_bytes())
    session = Session.open(folder / f"{name}.jsonl", writable=False)
    heads = session.heads
    types = Counter(head.type for head in heads)
    roles = Counter(str(head.detail) for head in heads if head.type == "message")
    lines = {key: count for key, count in expected["lines_by_type"].items() if key != "session"}
    assert types == lines
    assert roles == {("custom" if key == "hookMessage" else key): n for key, n in expected["roles"].items()}
    assert session.id == expected["session_id"]
    assert session.cwd == expected["cwd"]
    assert (
        Counter(head.detail for head in heads if head.type == "custom" and head.detail)
        == expected["custom_types"]
    )
    assert len([each for each in session.findings if "damaged" in each]) == expected["unreadable_lines"]
    assert parts(session) == expected["parts"]
    if expected["has_ids"] and heads:
        assert leaves(session) == expected["leaves"]
        assert heads[-1].id == expected["last_entry_id"]
        parents = {head.parent_id for head in heads if head.parent_id is not None}
        assert sorted(each for each in parents if each not in session.tree) == sorted(
            expected["orphan_parents"]
        )
    elif heads:
        assert len(session.get_branch()) == len(heads)
    assert_valid_context(session)


def parts(session: Session) -> dict[str, int]:
    contents = [
        session.raw(head.id)["message"]["content"] for head in session.heads if head.type == "message"
    ]
    return Counter(block["type"] for content in contents if isinstance(content, list) for block in content)


def assert_valid_context(session: Session) -> None:
    waiting: list[str] = []
    for message in session.build_context().messages:
        if isinstance(message, ToolResultMessage):
            assert message.tool_call_id == waiting.pop(0)
        else:
            assert waiting == []
        if isinstance(message, AssistantMessage):
            assert message.stop_reason != "error"
            waiting = [call.id for call in message.tool_calls]
    assert waiting == []


def test_files_of_pi_open_whole(shared: Path) -> None:
    files = sorted((shared / "sessions" / "real-pi").glob("*.jsonl"))
    assert files
    for path in files:
        session = Session.open(path, writable=False)
        assert session.findings == [], path.name
        assert len(session.heads) == path.read_bytes().count(b"\n") - 1
        assert_valid_context(session)
        assert session.build_context().system_message is not None


@pytest.mark.parametrize("name", ["linear", "tree-two-branches"])
def test_files_of_pi_go_on_and_fork(shared: Path, tmp_path: Path, name: str) -> None:
    """TR-04 with files of pi."""
    path = tmp_path / f"{name}.jsonl"
    shutil.copy(shared / "sessions" / "real-pi" / f"{name}.jsonl", path)
    whole = path.read_bytes()
    session = Session.open(path)
    prompts = [head.id for head in session.heads if head.detail == "user"]
    messages = len(session.build_context().messages)
    repository = SessionRepository(tmp_path / "agent", tmp_path)
    fork, text = repository.fork(session, prompts[1], "before")
    fork.append(MessageEntry(UserMessage.of("another way")))
    assert text
    assert hashlib.sha256(path.read_bytes()).digest() == hashlib.sha256(whole).digest()
    assert fork.header.parent_session == str(path)

    added = session.append(MessageEntry(UserMessage.of("go on")))
    session.close()
    assert path.read_bytes().startswith(whole)
    again = Session.open(path)
    assert again.get_leaf_id() == added.id
    assert len(again.build_context().messages) == messages + 1


def test_all_branches_of_a_tree_of_pi_are_there(shared: Path) -> None:
    """TR-08: ends that were left stay in the tree."""
    session = Session.open(shared / "sessions" / "real-pi" / "tree-two-branches.jsonl", writable=False)
    assert len(leaves(session)) == 3
    last = leaves(session)[-1]
    assert session.get_leaf_id() == last
    texts = [
        each.message.content
        for each in session.get_branch()
        if isinstance(each, MessageEntry) and isinstance(each.message, UserMessage)
    ]
    assert len(texts) == 3
