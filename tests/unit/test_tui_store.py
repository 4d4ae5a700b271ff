"""The reducer: snapshot and events to what is shown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs
import pytest

from pi_trio import codec
from pi_trio.approval import Question
from pi_trio.events import (
    AgentEnd,
    AgentEvent,
    AgentSettled,
    AgentStart,
    ApprovalRequested,
    ApprovalResolved,
    AutoRetryEnd,
    AutoRetryStart,
    BashExecutionUpdate,
    CompactionEnd,
    CompactionStart,
    EntryAppended,
    Gap,
    InputReturned,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    QueueUpdate,
    SessionInfoChanged,
    ThinkingLevelChanged,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
)
from pi_trio.hub import Envelope
from pi_trio.llm.partial import PartialMessage
from pi_trio.llm.protocol import Model, TextDelta, TextEnd, ThinkingDelta
from pi_trio.messages import (
    AgentMessage,
    AssistantMessage,
    BashExecutionMessage,
    BranchSummaryMessage,
    Cost,
    TextContent,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from pi_trio.remote.interface import SessionInfo, Snapshot
from pi_trio.session.scan import head_of
from pi_trio.session.tree import EntryHead
from pi_trio.tool import ToolResult
from pi_tui.find import Query, entry_says, item_text
from pi_tui.items.drawing import Drawing
from pi_tui.items.markdown import forget_colours
from pi_tui.items.paint import Budget, Look
from pi_tui.items.render import render_item
from pi_tui.ladder import Situation
from pi_tui.status import status_parts
from pi_tui.store import SHELL_CHARACTERS, SessionStore
from pi_tui.theme import bundled_folder, load_theme

VIEW = PartialMessage(AssistantMessage(())).view()
CALL = ToolCall("c1", "edit", {"path": "a.py"})


def snapshot(**changes: Any) -> Snapshot:
    plain = Snapshot(
        session=SessionInfo(id="s", path="/s.jsonl", cwd="/w", timestamp="2026-11-30"),
        epoch="e",
        seq=0,
        heads=(),
        leaf_id=None,
        running=False,
        streaming=None,
        running_calls=(),
        queue=QueueUpdate((), ()),
        model=Model("m"),
        thinking_level="off",
    )
    return attrs.evolve(plain, **changes)


def status(store: SessionStore) -> str:
    """The status line."""
    theme = load_theme("dark", [bundled_folder()])
    return " ".join(text for part in status_parts(store, Situation(), "", theme) for text, _ in part.spans)


class Feed:
    """A store and the events that it is given."""

    def __init__(self, **changes: Any) -> None:
        self.now = 100.0
        self.store = SessionStore(snapshot(**changes), lambda: self.now)
        self.seq = 0

    def __call__(self, *events: AgentEvent) -> SessionStore:
        self.store.apply(self.envelopes(events))
        return self.store

    def envelopes(self, events: Iterable[AgentEvent]) -> list[Envelope]:
        made = []
        for event in events:
            self.seq += 1
            made.append(Envelope(self.seq, event))
        return made


def entry(id_: str, parent: str | None, message: AgentMessage | None = None, **fields: Any) -> EntryAppended:
    body = {"type": "message", "message": codec.to_json(message)} if message else fields
    return EntryAppended({"id": id_, "parentId": parent, "timestamp": "2026-11-30T12:00:00.000Z", **body})


def says(text: str, *calls: ToolCall, tokens: int = 10, cost: float = 0.5) -> AssistantMessage:
    usage = Usage(total_tokens=tokens, cost=Cost(total=cost))
    return AssistantMessage((TextContent(text), *calls), usage=usage)


def kinds(store: SessionStore) -> list[str]:
    return [item.kind for item in store.items]


def test_a_turn_from_prompt_to_summary():
    feed = Feed()
    store = feed(AgentStart(), entry("u", None, UserMessage.of("hi")))
    assert store.running
    store = feed(MessageStart(AssistantMessage(())), MessageUpdate(TextDelta(0, "he"), VIEW))
    assert kinds(store) == ["welcome", "message", "live"]
    feed(MessageUpdate(TextDelta(0, "llo"), VIEW), MessageUpdate(ThinkingDelta(1, "mm"), VIEW))
    assert {at: block.text for at, block in store.live.items()} == {0: "hello", 1: "mm"}
    feed(MessageUpdate(TextEnd(0, "Hello"), VIEW))
    assert store.live[0].text == "Hello"
    feed(entry("a", "u", says("Hello")), MessageEnd(says("Hello")))
    feed(
        entry("e", "a", type="custom", customType="turn/end", data={}),
        AgentEnd(()),
        AgentSettled(aborted=False),
    )
    assert kinds(store) == ["welcome", "message", "message", "turn"]
    assert not store.running
    assert store.items.context_tokens == 10
    assert store.cost == (0.5, True)
    stats = store.turn_stats(store.items[-1])
    assert (stats.tools, stats.tokens, stats.cost, stats.complete) == (0, 10, 0.5, True)


def fact(id_: str, parent: str | None, name: str, second: int) -> EntryAppended:
    made = entry(id_, parent, type="custom", customType=name, data={})
    return EntryAppended({**made.entry, "timestamp": f"2026-11-30T12:00:{second:02}.000Z"})


def test_a_turn_begins_where_it_is_written_that_it_does():
    """What pi wrote before it has no ends of turns; one that is continued has no prompt."""
    feed = Feed()
    feed(entry("u1", None, UserMessage.of("hi")), entry("a1", "u1", says("Hello", tokens=100)))
    feed(fact("s2", "a1", "turn/start", 1), entry("u2", "s2", UserMessage.of("on")))
    feed(entry("a2", "u2", says("Yes", tokens=7)))
    store = feed(fact("e2", "a2", "turn/end", 3))
    stats = store.turn_stats(store.items[-1])
    assert (stats.tokens, stats.seconds) == (7, 2.0)
    feed(fact("s3", "e2", "turn/start", 10), entry("a3", "s3", says("More", tokens=8)))
    store = feed(fact("e3", "a3", "turn/end", 16))
    stats = store.turn_stats(store.items[-1])
    assert (stats.tokens, stats.seconds) == (8, 6.0)


def test_how_long_a_turn_took_is_told_after_it_is_opened_again_too():
    written = [
        fact("s", None, "turn/start", 1).entry,
        entry("u", "s", UserMessage.of("hi")).entry,
        entry("a", "u", says("Hello")).entry,
        fact("e", "a", "turn/end", 5).entry,
    ]
    store = Feed(heads=tuple(map(head_of, written)), leaf_id="e").store
    missing = store.items.missing_ids(0, len(store.items))
    assert sorted(missing) == ["a", "e", "s", "u"]
    store.fill(body for body in written if body["id"] in missing)
    assert store.turn_stats(store.items[-1]).seconds == 4.0
    assert not store.items.missing_ids(0, len(store.items))


def test_a_turn_that_nothing_came_of_has_no_line():
    feed = Feed()
    feed(entry("u1", None, UserMessage.of("hi")), entry("a1", "u1", says("Hello")))
    store = feed(fact("s2", "a1", "turn/start", 1), fact("e2", "s2", "turn/end", 3))
    look = Look(60, load_theme("dark", [bundled_folder()]))
    assert kinds(store)[-1] == "turn"
    assert render_item(store.items[-1], store, look) == []


@pytest.mark.parametrize("entry_first", [True, False])
def test_a_call_is_shown_from_its_start_to_its_result(entry_first):
    feed = Feed()
    feed(AgentStart(), entry("u", None, UserMessage.of("hi")), entry("a", "u", says("", CALL)))
    store = feed(ToolExecutionStart("c1", "edit", CALL.arguments))
    call = store.calls["c1"]
    assert (call.state, call.started, call.args) == ("running", 100.0, {"path": "a.py"})
    feed(ToolExecutionUpdate("c1", "edit", {}, ToolResult("half")))
    version = call.item.version
    result = ToolResultMessage("c1", "edit", "Stopped.", {"code": "aborted"}, is_error=True)
    ends = [
        entry("r", "a", result),
        ToolExecutionEnd("c1", "edit", ToolResult("Stopped.", is_error=True), is_error=True, duration_ms=7),
    ]
    feed(*(ends if entry_first else reversed(ends)))
    assert call.state == "stopped"
    assert call.item.version > version
    assert call.item.ids == ["a", "r"]
    assert kinds(store) == ["welcome", "message", "message"]


@pytest.mark.parametrize(("is_error", "state"), [(False, "done"), (True, "failed")])
def test_a_call_that_is_over_does_not_wait_for_those_in_front_of_it(is_error, state):
    feed = Feed()
    store = feed(entry("a", None, says("two", CALL)), ToolExecutionStart("c1", "edit", {}))
    assert [call.id for call in store.running_calls] == ["c1"]
    feed(ToolExecutionUpdate("c1", "edit", {}, ToolResult("all"), is_error=is_error, duration_ms=7))
    call = store.calls["c1"]
    assert (call.state, call.output, call.duration_ms) == (state, "all", 7)
    assert not store.running_calls
    feed(ToolExecutionEnd("c1", "edit", ToolResult("all"), is_error=is_error, duration_ms=7))
    assert (call.state, call.duration_ms) == (state, 7)


def test_what_a_stopped_call_had_printed_is_kept():
    feed = Feed()
    feed(entry("a", None, says("", CALL)), ToolExecutionStart("c1", "edit", {}))
    store = feed(
        ToolExecutionUpdate("c1", "edit", {}, ToolResult("output")),
        entry("r", "a", ToolResultMessage("c1", "edit", "Stopped.", {"code": "aborted"}, is_error=True)),
    )
    assert store.calls["c1"].output == "output"


@pytest.mark.parametrize(
    ("code", "is_error", "state"),
    [
        (None, False, "done"),
        (None, True, "failed"),
        ("aborted_before_start", True, "not_started"),
        ("outcome_unknown", True, "stopped"),
    ],
)
def test_how_calls_end(code, is_error, state):
    result = ToolResultMessage("c1", "edit", "x", {"code": code} if code else None, is_error=is_error)
    store = Feed()(entry("a", None, says("", CALL)), entry("r", "a", result))
    assert store.calls["c1"].state == state


def test_an_aborted_answer_without_an_entry_leaves_nothing():
    feed = Feed()
    feed(AgentStart(), MessageStart(AssistantMessage(())), MessageUpdate(TextDelta(0, "x"), VIEW))
    assert kinds(feed(AgentEnd(()))) == ["welcome"]


def test_navigating_rebuilds_the_path_and_keeps_bodies():
    feed = Feed()
    feed(entry("u1", None, UserMessage.of("1")), entry("a1", "u1", says("A")))
    store = feed(entry("u2", "a1", UserMessage.of("2")), entry("a2", "u2", says("B")))
    structure = store.structure
    feed(entry("l", "a1", type="leaf", targetId="a1"))
    assert [item.key for item in store.items] == ["u1", "a1"]
    assert all(item.message for item in store.items)
    assert store.structure > structure
    feed(entry("u3", "l", UserMessage.of("3")))
    assert [item.key for item in store.items] == ["u1", "a1", "u3"]
    assert (store.outline.branch(store.leaf_id), store.outline.branches, store.turn_number) == ("B", 2, 2)


def test_a_summary_of_what_was_left_is_there_at_once():
    feed = Feed()
    feed(
        entry("u1", None, UserMessage.of("1")),
        entry("a1", "u1", says("A")),
        entry("u2", "a1", UserMessage.of("2")),
    )
    store = feed(entry("s", "a1", type="branch_summary", fromId="u2", summary="It went nowhere."))
    assert [item.key for item in store.items] == ["u1", "a1", "s"]
    message = store.items[-1].message
    assert isinstance(message, BranchSummaryMessage)
    assert message.summary == "It went nowhere."
    assert store.items.missing_ids(0, 9) == []


def test_calls_of_two_branches_may_have_one_id():
    """Some providers count the calls of each answer anew."""
    feed = Feed()
    read, edit = ToolCall("c1", "read", {"path": "a"}), ToolCall("c1", "edit", {"path": "b"})
    feed(entry("u1", None, UserMessage.of("1")), entry("a1", "u1", says("", read)))
    feed(ToolExecutionStart("c1", "read", read.arguments))
    feed(entry("r1", "a1", ToolResultMessage("c1", "read", "text")))
    feed(entry("u2", None, UserMessage.of("2")), entry("a2", "u2", says("", edit)))
    store = feed(ToolExecutionStart("c1", "edit", edit.arguments))
    assert [(call.name, call.state) for call in store.calls] == [("read", "done"), ("edit", "running")]
    store = feed(entry("r2", "a2", ToolResultMessage("c1", "edit", "changed")))
    assert [(call.name, call.args["path"], call.output) for call in store.calls] == [
        ("read", "a", "text"),
        ("edit", "b", "changed"),
    ]
    assert store.items[-1].calls["c1"].name == "edit"
    store = feed(entry("l", "r1", type="leaf", targetId="r1"))
    assert store.items[-1].calls["c1"].output == "text"


def test_bodies_come_later():
    heads = (EntryHead("u", None, "message", "user"), EntryHead("a", "u", "message", "assistant"))
    feed = Feed(heads=heads, leaf_id="a")
    store = feed.store
    assert store.items.missing_ids(0, 9) == ["u", "a"]
    assert store.cost == (0.0, False)
    assert "$" not in status(store)  # nothing is known, which is not nothing spent
    assert store.items.context_tokens is None
    store.fill([entry("u", None, UserMessage.of("hi")).entry, entry("a", "u", says("ho")).entry])
    assert store.items.missing_ids(0, 9) == []
    assert store.items.prompts == ["hi"]
    assert store.cost == (0.5, True)


def test_an_extensions_entries_are_shown_by_their_templates():
    templates = {"mark": "== {text} ==", "note": "{n}!"}
    call = ToolCall("c1", "edit", {})
    store = SessionStore(snapshot(), templates=templates)
    events = [
        entry("u", None, UserMessage.of("hi")),
        entry("a", "u", says("ho", call)),
        entry("m", "a", type="custom", customType="mark", data={"text": "here"}),
        entry("r", "m", ToolResultMessage("c1", "edit", "done")),
        entry("x", "r", type="custom", customType="other", data={"text": "unseen"}),
        entry("n", "x", type="custom_message", customType="note", content="said", details={"n": 3}),
    ]
    store.apply(Envelope(number, event) for number, event in enumerate(events, 1))
    assert [(item.kind, item_text(item)) for item in store.items if item.key in "mn"] == [
        ("entry", "== here =="),
        ("message", "3!"),
    ]
    assert [item.key for item in store.items] == ["welcome", "u", "a", "m", "n"], "the other has no template"
    assert store.items[2].ids == ["a", "r"], "a result belongs to its answer, whatever stands between them"
    late = SessionStore(
        snapshot(heads=[head_of(each.entry) for each in events], leaf_id="m"), templates=templates
    )
    assert late.items.missing_ids(0, 9) == ["u", "a", "m"]
    assert entry_says(events[2].entry, Query("here"), templates)


@pytest.mark.parametrize(
    ("said", "owed"), [([UserMessage.of("hi")], True), ([UserMessage.of("hi"), says("ho")], False)]
)
def test_an_entry_of_an_extension_does_not_hide_what_is_owed(said, owed):
    store = SessionStore(snapshot(), templates={"mark": "x"})
    events = [entry(str(at), str(at - 1) if at else None, each) for at, each in enumerate(said)]
    events.append(entry("m", str(len(said) - 1), type="custom", customType="mark"))
    store.apply(Envelope(number, event) for number, event in enumerate(events, 1))
    assert store.items[-1].kind == "entry"
    assert store.owed is owed


def test_a_circle_in_the_file_ends_the_walk():
    """TR-01: parents that run in a circle cost nothing but the rest of the path."""
    heads = (EntryHead("a", "b", "message", "user"), EntryHead("b", "a", "message", "user"))
    assert len(Feed(heads=heads, leaf_id="b").store.items) == 2


def test_after_a_gap_events_wait_for_the_new_snapshot():
    feed = Feed()
    store = feed(Gap(), AgentStart(), QueueUpdate(("x",), ()))
    assert store.stale
    assert not store.running
    store.reset(snapshot(seq=2, running=True))
    assert not store.stale
    assert store.running
    assert store.queue.steering == ("x",)


def test_events_that_the_snapshot_holds_already_are_skipped():
    feed = Feed(seq=1)
    store = feed(QueueUpdate(("old",), ()), QueueUpdate(("new",), ()))
    assert store.queue.steering == ("new",)
    store.apply([Envelope(1, QueueUpdate(("again",), ()))])
    assert store.queue.steering == ("new",)


def test_a_stream_met_in_the_middle_goes_on():
    feed = Feed(running=True, streaming=AssistantMessage((TextContent("so "),)))
    store = feed(MessageUpdate(TextDelta(0, "far"), VIEW))
    assert store.live[0].text == "so far"


def test_small_things():
    feed = Feed()
    store = feed(
        SessionInfoChanged("a name"),
        ThinkingLevelChanged("high"),
        InputReturned((UserMessage.of("back"),)),
        AutoRetryStart(1, 3, 2000, "overloaded"),
    )
    assert (store.session.name, store.session.timestamp) == ("a name", "2026-11-30")
    assert store.thinking_level == "high"
    assert store.returned == ["back"]
    assert store.retry is not None
    assert store.retry.due == 102.0
    assert feed(AutoRetryEnd(success=True, attempt=1)).retry is None
    store.say("hello")
    assert store.items[-1].text == "hello"


def test_findings_are_said():
    store = Feed(findings=("line 3 is no JSON",)).store
    assert [item.text for item in store.items] == ["", "line 3 is no JSON"]


def test_questions_wait_until_they_are_answered_or_withdrawn():
    first, second = (Question(id=id_, tool_name="bash", args={}, reason="why") for id_ in "ab")
    store = Feed(questions=(first,)).store
    assert list(store.questions) == ["a"]
    feed = Feed()
    store = feed(ApprovalRequested(first), ApprovalRequested(second))
    assert list(store.questions.values()) == [first, second]
    assert list(feed(ApprovalResolved("a")).questions) == ["b"]


@pytest.mark.parametrize("entry_first", [True, False])
def test_a_command_of_the_user_is_shown_once(entry_first):
    """During a run its entry comes long after its end."""
    feed = Feed()
    feed(entry("u", None, UserMessage.of("hi")), AgentStart())
    shell = feed.store.start_shell("make")
    store = feed(BashExecutionUpdate("one\n"), BashExecutionUpdate("two\n"), entry("a", "u", says("yes")))
    assert shell.output == "one\ntwo\n"
    assert kinds(store) == ["welcome", "message", "shell", "message"]
    message = BashExecutionMessage("make", "one\ntwo\n", exit_code=0)
    if entry_first:
        feed(entry("b", "a", message))
    shell.message = message
    if not entry_first:
        assert store.shell is shell
        feed(entry("b", "a", message))
    assert store.shell is None
    assert kinds(store) == ["welcome", "message", "message", "message"]


def test_a_command_that_somebody_else_began_is_shown_and_survives_a_move():
    feed = Feed(shell_running=True)
    feed(entry("u", None, UserMessage.of("hi")), BashExecutionUpdate("x" * 100_000))
    store = feed(entry("l", "u", type="leaf", targetId="u"))
    assert kinds(store) == ["message", "shell"]
    assert len(store.shell.output) == SHELL_CHARACTERS


def test_compaction_is_told_with_its_failure():
    feed = Feed()
    store = feed(CompactionStart("threshold"))
    assert store.compacting_since == 100.0
    feed(CompactionEnd("threshold", error_message="no room"))
    assert not store.summarising
    assert store.items[-1].text == "✗ not compacted: no room"
    asked = feed(CompactionStart("manual"), CompactionEnd("manual", error_message="too little"))
    assert "too little" not in asked.items[-1].text  # the command that asked for it says so


@pytest.mark.parametrize(
    ("events", "owed"),
    [
        ([], False),
        ([entry("u", None, UserMessage.of("hi"))], True),
        ([entry("u", None, UserMessage.of("hi")), AgentStart()], False),
        ([entry("u", None, UserMessage.of("hi")), entry("a", "u", says("ho"))], False),
        ([entry("a", None, attrs.evolve(says("ho"), stop_reason="aborted"))], True),
        ([entry("a", None, says("", CALL)), entry("r", "a", ToolResultMessage("c1", "edit", "x"))], True),
    ],
)
def test_whether_an_answer_is_owed(events, owed):
    assert Feed()(*events).owed is owed


def test_a_turn_that_was_cut_off_is_owed_until_something_is_written():
    feed = Feed(interrupted=True)
    assert feed.store.owed
    assert not feed(entry("a", None, says("ho"))).owed


def turn_with_output(number: int, parent: str | None, output: str) -> list[EntryAppended]:
    """A prompt, an answer with a call, and what the call printed."""
    call = ToolCall(f"c{number}", "dump", {})
    return [
        entry(f"u{number}", parent, UserMessage.of(f"go {number}", ())),
        entry(f"a{number}", f"u{number}", says("", call)),
        entry(f"r{number}", f"a{number}", ToolResultMessage(f"c{number}", "dump", output)),
    ]


def held(store: SessionStore) -> int:
    """The letters that a store holds of what tools printed."""
    return len(str(list(store.bodies.values()))) + sum(len(call.output) for call in store.calls)


def test_what_tools_print_does_not_fill_the_memory():
    """ME-01: of 200 turns with a megabyte each little is held, and what is seen again comes back."""
    feed = Feed()
    sizes = []
    for number in range(200):
        parent = f"r{number - 1}" if number else None
        feed(*turn_with_output(number, parent, f"first {number}\n" + "x" * 1_000_000 + f"\nlast {number}"))
        sizes.append(held(feed.store))
    assert max(sizes) < 9_000_000
    assert sizes[-1] < 1.1 * sizes[150]
    early = next(item for item in feed.store.items if item.key == "a0")
    assert early.missing
    assert feed.store.calls["c0"].dropped
    assert feed.store.cost == (100.0, True)
    feed.store.in_sight = range(0, 10)
    again = [event.entry for event in turn_with_output(0, None, "read again")]
    assert feed.store.items.missing_ids(0, 4)[:2] == ["a0", "r0"]
    feed.store.fill(again)
    assert not early.missing
    assert feed.store.calls["c0"].output == "read again"
    assert feed.store.cost == (100.0, True)


def test_the_end_of_a_huge_output_is_held_and_what_is_missing_is_known():
    feed = Feed()
    store = feed(*turn_with_output(0, None, "begin" + "y" * 100_000 + "end"))
    call = store.calls["c0"]
    assert call.output.endswith("end")
    assert call.cut + len(call.output) == 100_008
    assert not call.dropped


def test_the_turns_cost_is_told_beside_the_sessions():
    feed = Feed()
    feed(entry("u1", None, UserMessage.of("one")), entry("a1", "u1", says("ho", cost=0.5)))
    assert "$0.50" in status(feed.store)
    assert " of $" not in status(feed.store)
    feed(entry("u2", "a1", UserMessage.of("two")), entry("a2", "u2", says("ho", cost=0.25)))
    assert "$0.25 of $0.75" in status(feed.store)


def test_a_long_answer_gets_complete_while_a_call_of_it_runs():
    """Each slice of time is for one block; the spinner turns and output comes between them."""
    blocks = [f"Paragraph **{number}** of it." for number in range(20)]
    feed, theme = Feed(), load_theme("dark", [bundled_folder()])
    feed(AgentStart(), entry("u", None, UserMessage.of("hi")))
    feed(entry("a", "u", says("\n\n".join(blocks), CALL)))
    store = feed(ToolExecutionStart("c1", "edit", CALL.arguments))
    item, drawing = store.items[-1], Drawing(store)
    forget_colours()
    for tick in range(len(blocks) + 2):
        feed(ToolExecutionUpdate("c1", "edit", {}, ToolResult(f"line {tick}")))
        budget = Budget(0)
        strips = drawing.strips(item, Look(60, theme, tick=tick), budget)
    whole = Drawing(store).strips(item, Look(60, theme, tick=tick), Budget(60))
    assert not budget.exceeded
    assert [strip.text for strip in strips] == [strip.text for strip in whole]


def test_what_was_said_stays_behind_what_is_still_there():
    """An Escape takes the last prompt back: what a command told before it is not lost."""
    feed = Feed()
    feed.store.say("hello")
    feed(entry("u1", None, UserMessage.of("hi")), entry("a1", "u1", says("Hello")))
    feed.store.say("one")
    feed.store.say("two")
    feed(entry("u2", "a1", UserMessage.of("on")))
    feed.store.say("gone")
    store = feed(entry("p1", "a1", type="leaf", targetId="a1"))
    assert [item.text or item.key for item in store.items] == ["hello", "u1", "a1", "one", "two"]
    store = feed(entry("p2", None, type="leaf", targetId=None))
    assert [item.text or item.key for item in store.items] == ["welcome", "hello"]
    store.reset(snapshot())
    assert kinds(store) == ["welcome"]
