"""Standing before a prompt, and what a fork takes along."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from pi_trio.messages import (
    AssistantMessage,
    TextContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    text_of,
)
from pi_trio.session import facts
from pi_trio.session.branching import before
from pi_trio.session.entries import (
    CompactionEntry,
    CustomEntry,
    CustomMessageEntry,
    Entry,
    LabelEntry,
    MessageEntry,
    OpaqueEntry,
)
from pi_trio.session.repository import SessionRepository
from pi_trio.session.session import Session


def user(text: str) -> MessageEntry:
    return MessageEntry(UserMessage.of(text))


def answer(*content: TextContent | ToolCall) -> MessageEntry:
    return MessageEntry(AssistantMessage(content or (TextContent("ok"),), provider="p", model="m"))


def fact(name: str, **data: Any) -> CustomEntry:
    return facts.fact(name, "s", **data)


def digest(path: Path | None) -> str:
    assert path is not None
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def repository(tmp_path: Path) -> SessionRepository:
    return SessionRepository(tmp_path / "agent", tmp_path)


def ids_of(session: Session, *entries: Entry) -> list[str]:
    return [session.append(each).id for each in entries]


# ------------------------------------------------------------------ before


def test_before_input_of_a_turn() -> None:
    session = Session.in_memory("/p")
    ids = ids_of(
        session,
        user("by another program"),
        answer(),
        fact(facts.INBOX_SPLICED),
        fact(facts.TURN_START),
        fact(facts.INBOX_SPLICED),
        fact(facts.STEP_START),
        user("first"),
        CustomMessageEntry("note", "of the same batch"),
        answer(ToolCall("c", "read")),
        fact(facts.TOOL_CALL, callId="c"),
        MessageEntry(ToolResultMessage("c", "read", ())),
        fact(facts.STEP_END),
        fact(facts.INBOX_SPLICED),
        fact(facts.STEP_START),
        user("steered"),
        answer(),
        fact(facts.STEP_END),
        fact(facts.TURN_END),
        user("by another program, later"),
    )
    tree = session.tree
    assert before(tree, ids[0]) is None
    assert before(tree, ids[6]) == before(tree, ids[7]) == ids[2]
    assert before(tree, ids[14]) == ids[11]
    assert before(tree, ids[18]) == ids[17]
    assert before(tree, ids[8]) == ids[7]  # no input: its parent


def test_before_the_first_prompt_of_all() -> None:
    session = Session.in_memory("/p")
    ids = ids_of(session, fact(facts.TURN_START), fact(facts.STEP_START), user("first"))
    assert before(session.tree, ids[2]) is None


# ------------------------------------------------------------------ forks


def test_a_fork_is_unwritten_and_leaves_its_source_alone(repository: SessionRepository) -> None:
    """TR-04."""
    source = repository.create()
    ids = ids_of(source, user("one"), answer(), user("two"), answer(), user("three"), answer())
    was = digest(source.path)
    fork, text = repository.fork(source, ids[2], "before")
    assert text == "two"
    assert [head.id for head in fork.heads] == ids[:2]
    assert fork.path is not None
    assert not fork.path.exists()
    fork.append(user("other two"))
    header, *lines = [json.loads(each) for each in fork.path.read_bytes().splitlines()]
    assert header["parentSession"] == str(source.path)
    assert header["id"] == fork.id != source.id
    assert header["cwd"] == source.cwd
    assert [each["id"] for each in lines[:2]] == ids[:2]
    assert digest(source.path) == was
    at, nothing = repository.fork(source, ids[2], "at")
    assert (at.get_leaf_id(), nothing) == (ids[2], "")


def test_the_lines_are_the_sources_byte_for_byte(repository: SessionRepository) -> None:
    source = repository.create()
    ids = ids_of(
        source, user("é\u2028\U0001f642"), OpaqueEntry("future", extra={"big": 2**70, "x": [None]}), answer()
    )
    fork, _ = repository.fork(source, ids[2], "at")
    fork.append(user("on"))
    assert source.path is not None
    assert fork.path is not None
    assert fork.path.read_bytes().splitlines()[1:4] == source.path.read_bytes().splitlines()[1:4]


def test_pointers_and_queues_stay_behind(repository: SessionRepository) -> None:
    source = repository.create()
    first = source.append(user("one"))
    source.append(answer())
    source.set_leaf_id(first.id)
    spliced = source.append(fact(facts.INBOX_SPLICED))
    reply = source.append(answer())
    fork, _ = repository.fork(source, reply.id, "at")
    assert [head.id for head in fork.heads] == [first.id, reply.id]
    assert fork.raw(reply.id) == {**source.raw(reply.id), "parentId": first.id}
    assert spliced.id not in fork.tree


def test_labels_go_along_with_their_targets(repository: SessionRepository) -> None:
    source = repository.create()
    first, second, third = ids_of(source, user("one"), answer(), user("two"))
    source.append(LabelEntry(first, "begin"))
    source.append(LabelEntry(third, "not on the path"))
    fork, _ = repository.fork(source, second, "at")
    assert fork.label_of(first) == "begin"
    assert fork.label_of(third) is None
    assert fork.tree.path(fork.get_leaf_id())[:2] == [first, second]
    assert len(fork.heads) == 3


@pytest.mark.parametrize("boundary", [LabelEntry("elsewhere", "l"), facts.fact(facts.INBOX_SPLICED, "s")])
def test_the_boundary_of_a_compaction_goes_along(repository: SessionRepository, boundary: Entry) -> None:
    """TR-03: the request before and after the fork is the same."""
    source = repository.create()
    source.append(user("old"))
    kept = source.append(boundary)
    ids = ids_of(source, user("one"), answer(), CompactionEntry("sum", kept.id), user("two"))
    fork, _ = repository.fork(source, ids[-1], "at")
    assert fork.build_context() == source.build_context()
    assert len(fork.build_context().messages) == 4
    fork.append(answer())
    fork.append(user("three"))
    fork.close()
    assert fork.path is not None
    assert len(Session.open(fork.path).build_context().messages) == 6


def test_a_fork_of_a_fork(repository: SessionRepository) -> None:
    """TR-07: each opens at its own last entry, and the lineage has two levels."""
    first = repository.create()
    ids_of(first, user("1"), answer())
    second, _ = repository.fork(first, str(first.get_leaf_id()), "at")
    ids_of(second, user("2"), answer(), user("3"), answer())
    third, _ = repository.fork(second, str(second.get_leaf_id()), "at")
    ids_of(third, user("4"), answer())
    leaves = {}
    for session in (first, second, third):
        leaves[session.id] = session.get_leaf_id()
        session.close()
    assert len(leaves) == 3
    for session_id, leaf in leaves.items():
        opened = repository.open(session_id)
        assert opened.get_leaf_id() == leaf
        opened.close()
    assert third.header.parent_session == str(second.path)
    assert second.header.parent_session == str(first.path)


def test_fork_before_the_first_prompt(repository: SessionRepository) -> None:
    source = repository.create()
    first = source.append(user("one"))
    fork, text = repository.fork(source, first.id, "before")
    assert (fork.heads, text) == ([], "one")


def test_what_has_no_file_is_no_parent(repository: SessionRepository) -> None:
    source = repository.in_memory()
    first = source.append(user("one"))
    fork, _ = repository.fork(source, first.id, "at")
    assert fork.header.parent_session is None


def test_the_request_is_the_active_branch_whatever_was_done_before(repository: SessionRepository) -> None:
    """RS-01: forked three times, gone back twice, compacted once, opened again."""
    session = repository.create()
    for number in range(4):
        session.append_message(UserMessage.of(f"q{number}"))
        session.append_message(AssistantMessage((TextContent(f"a{number}"),)))
    for number, said in enumerate(["q3", "f0", "f1"]):
        fork, text = repository.fork(session, session.get_branch()[-2].id, "before")
        assert text == said
        fork.append_message(UserMessage.of(f"f{number}"))
        fork.append_message(AssistantMessage((TextContent(f"b{number}"),)))
        session.close()
        session = fork
    for _ in range(2):
        left = session.append_message(UserMessage.of("undone"))
        session.set_leaf_id(before(session.tree, left.id))
    kept = session.get_branch()[-1]
    session.append_compaction("so far", kept.id, 100)
    session.append_message(UserMessage.of("on"))
    context = session.build_context()
    assert [text_of(each.content) for each in context.messages[1:]] == ["b2", "on"]
    session.close()
    assert session.path is not None
    again = Session.open(session.path)
    assert again.build_context() == context
    assert [each.id for each in again.get_branch()] == again.tree.path(again.get_leaf_id())
