"""Any history of appends, moves, forks, failures and reloads leaves a sound file and tree."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from pi_trio.errors import StorageError
from pi_trio.messages import AssistantMessage, TextContent, ToolCall, ToolResultMessage, UserMessage
from pi_trio.session import facts
from pi_trio.session.branching import before
from pi_trio.session.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    ContextEditEntry,
    Entry,
    LabelEntry,
    MessageEntry,
)
from pi_trio.session.repository import SessionRepository
from pi_trio.session.session import Session
from pi_trio.testing.storage import LimitedDisk

CALLS = st.sampled_from(["c1", "c2", "c3"])
FACTS = st.sampled_from(
    [facts.TURN_START, facts.TURN_END, facts.STEP_START, facts.STEP_END, facts.TOOL_CALL, facts.INBOX_SPLICED]
)


class SessionMachine(RuleBasedStateMachine):
    """The model is the file as it was after each step, and the session itself before a reload."""

    entries = Bundle("entries")

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.disk = LimitedDisk()
        self.repository = SessionRepository(self.folder / "agent", self.folder, write=self.disk)
        self.session = self.repository.create()
        self.bytes = b""
        self.torn = 0  # half lines in the file

    def teardown(self) -> None:
        self.session.close()
        shutil.rmtree(self.folder)

    def add(self, entry: Entry) -> str:
        return self.session.append(entry).id

    @initialize(target=entries)
    def begin(self) -> str:
        return self.add(MessageEntry(UserMessage.of("begin")))

    @rule(target=entries, text=st.text(max_size=20))
    def prompt(self, text: str) -> str:
        return self.add(MessageEntry(UserMessage.of(text)))

    @rule(
        target=entries,
        calls=st.lists(CALLS, max_size=3, unique=True),
        stop=st.sampled_from(["stop", "error", "aborted"]),
    )
    def answer(self, calls: list[str], stop: str) -> str:
        content = (TextContent("ok"), *(ToolCall(each, "read") for each in calls))
        return self.add(MessageEntry(AssistantMessage(content, stop_reason=stop)))

    @rule(target=entries, call=CALLS)
    def result(self, call: str) -> str:
        return self.add(MessageEntry(ToolResultMessage(call, "read", (TextContent("done"),))))

    @rule(target=entries, name=FACTS, call=CALLS)
    def record(self, name: str, call: str) -> str:
        return self.add(facts.fact(name, self.session.id, callId=call))

    @rule(target=entries, entry=entries, label=st.sampled_from(["one", "two", None]))
    def label(self, entry: str, label: str | None) -> str:
        added = self.add(LabelEntry(entry, label))
        assert self.session.label_of(entry) == label
        return added

    @rule(target=entries, kept=entries)
    def compact(self, kept: str) -> str:
        return self.add(CompactionEntry("so far", kept))

    @rule(target=entries, entry=entries)
    def edit(self, entry: str) -> str:
        return self.add(ContextEditEntry(entry, None))

    @rule(target=entries, entry=entries)
    def leave_with_summary(self, entry: str) -> str:
        if entry not in self.session.tree:  # of the session that was forked from
            return self.add(MessageEntry(UserMessage.of("instead")))
        return self.session.append_at(entry, BranchSummaryEntry("root", "was there")).id

    @rule(entry=entries)
    def move(self, entry: str) -> None:
        if entry in self.session.tree:
            self.session.set_leaf_id(entry)
            assert self.session.get_leaf_id() == entry

    @rule(entry=entries)
    def move_before(self, entry: str) -> None:
        if entry in self.session.tree:
            leaf = before(self.session.tree, entry)
            assert leaf is None or leaf in self.session.tree.path(entry)
            self.session.set_leaf_id(leaf)

    @rule(space=st.integers(0, 200))
    def fail_to_append(self, space: int) -> None:
        leaf, count = self.session.get_leaf_id(), len(self.session.heads)
        self.disk.space = space
        with pytest.raises(StorageError):
            self.add(MessageEntry(UserMessage.of("x" * 300)))
        self.disk.space = None
        assert (self.session.get_leaf_id(), len(self.session.heads)) == (leaf, count)

    @rule(entry=entries, position=st.sampled_from(["before", "at"]))
    def fork(self, entry: str, position: str) -> None:
        if entry not in self.session.tree:
            return
        source, self.bytes, self.torn = self.session, b"", 0
        path = source.tree.path(entry)
        source.set_leaf_id(entry if position == "at" else before(source.tree, entry))
        context = source.build_context()
        assert source.path is not None
        left = source.path.read_bytes()
        self.session, _ = self.repository.fork(source, entry, position)
        assert {head.id for head in self.session.heads if head.type != "label"} <= set(path)
        assert self.session.build_context() == context
        self.add(MessageEntry(UserMessage.of("in the fork")))
        assert source.path.read_bytes() == left
        source.close()

    @rule()
    def clone(self) -> None:
        if self.session.get_leaf_id() is None:
            return
        source, self.bytes, self.torn = self.session, b"", 0
        context = source.build_context()
        self.session = self.repository.clone(source)
        assert self.session.build_context() == context
        self.session.save()
        assert self.session.header.parent_session == str(source.path)
        source.close()

    @rule(name=st.text(max_size=10))
    def rename(self, name: str) -> None:
        self.session.append_session_name(name)
        assert self.session.name == (" ".join(name.splitlines()).strip() or None)

    @rule(texts=st.lists(st.text(max_size=5), min_size=1, max_size=3), space=st.integers(0, 200))
    def keep_what_cannot_be_written(self, texts: list[str], space: int) -> None:
        """On a full disk answers are kept; with room again they go out first."""
        if not self.session.is_saved:
            return
        self.disk.space = space
        for text in texts:
            with pytest.raises(StorageError):
                self.session.append(
                    MessageEntry(AssistantMessage((TextContent(text + "x" * 300),))), keep=True
                )
        assert self.session.unsaved == len(texts)
        self.disk.space = None
        self.session.flush()
        assert self.session.unsaved == 0

    @rule()
    def read_along(self) -> None:
        """A second reader sees the same, from the start or by following."""
        if self.session.is_saved:
            assert self.session.path is not None
            reader = Session.open(self.session.path, writable=False)
            assert reader.heads == self.session.heads
            added = self.session.append_message(UserMessage.of("more"))
            assert [head.id for head in reader.refresh()] == [added.id]
            assert reader.get_leaf_id() == added.id
            assert reader.build_context() == self.session.build_context()
            reader.close()

    @rule(cut=st.integers(1, 60))
    def tear(self, cut: int) -> None:
        """A crash in the middle of an append: the half line stays, and is no entry."""
        if not self.session.is_saved:
            return
        then = self.session
        assert then.path is not None
        then.close()
        half = then.path.read_bytes().rpartition(b"\n{")[2][:cut]
        with then.path.open("ab") as file:
            file.write(b"{" + half)
        self.session = Session.open(then.path, write=self.disk)
        assert self.session.heads == then.heads
        assert len(self.session.findings) == len(then.findings) + 1
        self.torn += 1
        self.add(MessageEntry(UserMessage.of("on")))

    @rule()
    def reload(self) -> None:
        then = self.session
        then.close()
        assert then.path is not None
        self.session = Session.open(then.path, write=self.disk)
        assert self.session.header == then.header
        assert self.session.heads == then.heads
        assert self.session.get_leaf_id() == then.get_leaf_id()
        assert self.session.build_context() == then.build_context()
        assert self.session.findings == then.findings

    @invariant()
    def file_only_grows(self) -> None:
        if self.session.is_saved:
            assert self.session.path is not None
            now = self.session.path.read_bytes()
            assert now.startswith(self.bytes)
            assert now.endswith(b"\n")
            assert now.count(b"\n") == len(self.session.heads) + 1 + self.torn
            self.bytes = now

    @invariant()
    def paths_are_rooted_and_without_circles(self) -> None:
        tree = self.session.tree
        path = tree.path(self.session.get_leaf_id())
        assert len(set(path)) == len(path)
        for parent, child in zip([None, *path], path, strict=False):
            assert tree.parent(child) == parent
            assert child in tree.children(parent)

    @invariant()
    def context_is_fit_to_be_sent(self) -> None:
        waiting: list[str] = []
        for message in self.session.build_context().messages:
            if isinstance(message, ToolResultMessage):
                assert message.tool_call_id == waiting.pop(0)
                continue
            assert waiting == []
            if isinstance(message, AssistantMessage):
                assert message.stop_reason != "error"
                waiting = [call.id for call in message.tool_calls]
        assert waiting == []

    @invariant()
    def context_is_a_function_of_the_branch(self) -> None:
        fresh = Session.new("", lines=[self.session.line(head.id) for head in self.session.heads])
        assert fresh.build_context() == self.session.build_context()


TestSession = SessionMachine.TestCase
TestSession.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
