"""What is asked of sessions, one test each, by the numbers of the checklist."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pi_trio.messages import AssistantMessage, CustomMessage, TextContent, Usage, UserMessage, text_of
from pi_trio.session.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    CustomMessageEntry,
    Entry,
    MessageEntry,
)
from pi_trio.session.session import Session


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session.new("/p", tmp_path / "s.jsonl")


def lines(session: Session) -> list[dict[str, object]]:
    assert session.path is not None
    return [json.loads(line) for line in session.path.read_bytes().splitlines()]


def said(session: Session) -> list[str]:
    messages = session.build_context().messages
    return [text_of(each.content) if hasattr(each, "content") else each.role for each in messages]


def ask(session: Session, text: str) -> str:
    return session.append_message(UserMessage.of(text)).id


def answer(session: Session, text: str) -> str:
    return session.append_message(AssistantMessage((TextContent(text),))).id


def test_43_the_first_line_is_the_header(session: Session) -> None:
    ask(session, "q")
    header = lines(session)[0]
    assert list(header) == ["type", "version", "id", "timestamp", "cwd"]
    assert (header["type"], header["version"], header["id"], header["cwd"]) == (
        "session",
        3,
        session.id,
        "/p",
    )


def test_44_each_entry_has_type_id_parent_and_timestamp(session: Session) -> None:
    for number in range(20):
        ask(session, str(number))
    entries = lines(session)[1:]
    assert all(list(each)[:4] == ["type", "id", "parentId", "timestamp"] for each in entries)
    assert [each["parentId"] for each in entries] == [None, *(each["id"] for each in entries[:-1])]
    assert len({each["id"] for each in entries}) == 20
    assert all(len(str(each["id"])) == 8 for each in entries)


def test_45_the_branch_is_the_chain_of_parents_and_a_missing_one_is_told(session: Session) -> None:
    ids = [ask(session, "1"), answer(session, "2"), ask(session, "3")]
    assert [each.id for each in session.get_branch()] == ids
    assert [each.id for each in session.get_branch(ids[1])] == ids[:2]
    kept = [session.line(each) for each in (ids[0], ids[2])]
    torn = Session.new("/p", lines=kept)
    assert [each.id for each in torn.get_branch()] == [ids[2]]
    assert len(torn.findings) == 1


def test_46_setting_the_leaf_starts_a_branch_and_keeps_the_other(session: Session) -> None:
    first, second = ask(session, "1"), answer(session, "2")
    session.set_leaf_id(first)
    third = answer(session, "3")
    assert session.tree.children(first) == [second, third]
    assert session.raw(third)["parentId"] == first
    assert said(session) == ["1", "3"]


def test_47_changes_are_entries_and_the_last_on_the_branch_counts(session: Session) -> None:
    first = ask(session, "1")
    session.append_model_change("p", "m")
    session.append_thinking_level_change("high")
    session.append_active_tools_change(["read"])
    context = session.build_context()
    assert (context.model, context.thinking_level, context.active_tool_names) == (
        ("p", "m"),
        "high",
        ("read",),
    )
    session.set_leaf_id(first)
    context = session.build_context()
    assert (context.model, context.thinking_level, context.active_tool_names) == (None, "off", None)


def test_48_records_never_reach_the_model(session: Session) -> None:
    first = ask(session, "1")
    session.append_label(first, "l")
    session.append_session_name("n")
    session.append_model_change("p", "m")
    session.append_thinking_level_change("high")
    session.append_active_tools_change([])
    session.append_usage("cache_warm", "p", "m", Usage())
    session.append_custom_entry("c", "d")
    session.set_leaf_id(None)
    session.set_leaf_id(session.heads[-2].id)
    assert said(session) == ["1"]


def test_49_a_context_is_summary_kept_entries_and_what_came_later(session: Session) -> None:
    ask(session, "1")
    kept = answer(session, "2")
    session.append_compaction("sum", kept, 10)
    ask(session, "3")
    assert said(session) == ["compactionSummary", "2", "3"]


def test_50_custom_entries_need_a_projector_and_custom_messages_do_not(session: Session) -> None:
    session.append_custom_message("note", "seen")
    session.append_custom_entry("data", "unseen")
    assert said(session) == ["seen"]
    session.project("data", lambda entry: [CustomMessage("data", str(entry.data))])
    assert said(session) == ["seen", "unseen"]


def test_51_every_message_is_there_once_and_in_order(session: Session) -> None:
    texts = [str(number) for number in range(30)]
    for text in texts:
        ask(session, text)
    messages = [each["message"] for each in lines(session)[1:]]
    assert [each["content"][0]["text"] for each in messages] == texts  # type: ignore[index]


def test_52_writes_before_the_file_is_made_are_not_lost_and_in_order(session: Session) -> None:
    session.append_model_change("p", "m")
    session.append_custom_entry("c")
    ask(session, "1")
    session.append_session_name("n")
    assert [each["type"] for each in lines(session)[1:]] == [
        "model_change",
        "custom",
        "message",
        "session_info",
    ]


def test_53_a_move_may_leave_a_summary_that_the_model_sees(session: Session) -> None:
    first = ask(session, "1")
    left = answer(session, "2")
    session.append_at(first, BranchSummaryEntry(left, "tried 2"))
    assert said(session) == ["1", "branchSummary"]
    assert len(session.heads) == 3  # the summary is the move


def test_f4_a_branch_ignores_compactions(session: Session) -> None:
    ids = [ask(session, "1"), answer(session, "2"), ask(session, "3")]
    compaction = session.append_compaction("sum", ids[1], 10)
    assert [each.id for each in session.get_branch()] == [*ids, compaction.id]


def test_f5_a_compaction_has_the_first_kept_id_and_no_tail(session: Session) -> None:
    first = ask(session, "1")
    session.append_compaction("sum", first, 10)
    assert "retainedTail" not in lines(session)[-1]
    assert said(session) == ["compactionSummary", "1"]


def test_f22_a_leaf_entry_is_a_pointer_and_no_parent_of_ours(session: Session) -> None:
    first, second = ask(session, "1"), answer(session, "2")
    pointer = session.set_leaf_id(first)
    assert pointer is not None
    assert (pointer.target_id, pointer.parent_id) == (first, first)
    third = answer(session, "3")
    assert session.raw(third)["parentId"] == first
    assert session.tree.children(first) == [second, third]
    assert pointer.id not in session.tree.path(third)
    assert session.path is not None
    session.close()
    assert Session.open(session.path).get_leaf_id() == third


def test_f23_what_is_written_is_pis_schema(session: Session) -> None:
    entries: list[Entry] = [
        session.append_message(UserMessage.of("1")),
        session.append_message(CustomMessage("note", "seen", False, {"n": 1})),
        session.append_compaction("sum", session.heads[0].id, 10),
    ]
    message, custom, compaction = lines(session)[1:]
    assert isinstance(message["timestamp"], str)
    assert isinstance(message["message"]["timestamp"], int)  # type: ignore[index]
    assert {key: custom[key] for key in ("type", "customType", "content", "display", "details")} == {
        "type": "custom_message",
        "customType": "note",
        "content": "seen",
        "display": False,
        "details": {"n": 1},
    }
    assert (compaction["firstKeptEntryId"], compaction["tokensBefore"]) == (session.heads[0].id, 10)
    assert [type(each) for each in entries] == [MessageEntry, CustomMessageEntry, CompactionEntry]


def test_there_is_a_method_for_each_type_of_entry(session: Session) -> None:
    first = ask(session, "1")
    session.append_model_change("p", "m")
    session.append_thinking_level_change("high")
    session.append_active_tools_change(["read"])
    session.append_usage("cache_warm", "p", "m", Usage(input=1), "note")
    session.append_compaction("sum", first, 10, details={"a": 1}, from_hook=True)
    session.append_branch_summary("left", None)
    session.append_custom_entry("c", 1)
    session.append_custom_message("c", [TextContent("t")])
    session.append_context_edit(first, None)
    session.append_label(first, None)
    session.append_session_name("n")
    session.set_leaf_id(first)
    stored = lines(session)[1:]
    assert [each["type"] for each in stored] == [
        "message",
        "model_change",
        "thinking_level_change",
        "active_tools_change",
        "usage",
        "compaction",
        "branch_summary",
        "custom",
        "custom_message",
        "context_edit",
        "label",
        "session_info",
        "leaf",
    ]
    session.close()
    assert session.path is not None
    again = Session.open(session.path)
    assert [again.entry(head.id) for head in again.heads] == [
        session.entry(head.id) for head in session.heads
    ]
    assert again.findings == []
