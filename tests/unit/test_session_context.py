"""What a request is made of: compactions, edits, settings, and repairs in memory."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from pi_trio import codec
from pi_trio.errors import StorageError
from pi_trio.messages import (
    AgentMessage,
    AssistantMessage,
    CustomMessage,
    ImageContent,
    StopReason,
    SystemMessage,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    ToolSchema,
    UserMessage,
    text_of,
)
from pi_trio.session import facts
from pi_trio.session.context import fold_system
from pi_trio.session.entries import (
    ActiveToolsChangeEntry,
    BranchSummaryEntry,
    CompactionEntry,
    ContextEditEntry,
    CustomEntry,
    CustomMessageEntry,
    Entry,
    LabelEntry,
    MessageEntry,
    ModelChangeEntry,
    ThinkingLevelChangeEntry,
)
from pi_trio.session.session import Session


def user(text: str) -> MessageEntry:
    return MessageEntry(UserMessage.of(text))


def answer(*content: str | ToolCall | ThinkingContent, stop: StopReason = "stop") -> MessageEntry:
    blocks = [TextContent(each) if isinstance(each, str) else each for each in content]
    return MessageEntry(AssistantMessage(blocks, provider="p", model="m", stop_reason=stop))


def result(call_id: str, text: str = "done") -> MessageEntry:
    return MessageEntry(ToolResultMessage(call_id, "read", (TextContent(text),)))


def call(call_id: str) -> ToolCall:
    return ToolCall(call_id, "read")


def fact(name: str, **data: Any) -> CustomEntry:
    return facts.fact(name, "s", **data)


def session_of(entries: Iterable[Entry]) -> tuple[Session, list[str]]:
    session = Session.in_memory("/p")
    return session, [session.append(each).id for each in entries]


def shape(messages: Iterable[AgentMessage]) -> list[str]:
    return [_shape(each) for each in messages]


def _shape(message: AgentMessage) -> str:
    match message:
        case ToolResultMessage(tool_call_id=call_id, details={"code": code}):
            return f"{call_id}!{code}"
        case ToolResultMessage(tool_call_id=call_id):
            return f"{call_id}={text_of(message.content)}"
        case AssistantMessage():
            return f"a:{message.text}" + "".join(f"+{each.id}" for each in message.tool_calls)
        case UserMessage():
            return f"u:{text_of(message.content)}"
        case _:
            return message.role


def context_of(*entries: Entry) -> list[str]:
    return shape(session_of(entries)[0].build_context().messages)


# ------------------------------------------------------------------ what counts


def test_records_between_messages_do_not_matter() -> None:
    """TR-05: 30 turns with facts, labels and failed attempts between them are 30 turns again."""
    session = Session.in_memory("/p")
    sent: list[str] = []
    for turn in range(30):
        session.append(fact(facts.TURN_START, turn=turn))
        session.append(fact(facts.STEP_START, turn=turn))
        asked = session.append(user(f"q{turn}"))
        session.append(CustomEntry("progress", turn))
        session.append(answer("broken", stop="error"))
        session.append(fact(facts.ASSISTANT_ATTEMPT))
        session.append(LabelEntry(asked.id, f"l{turn}"))
        session.append(answer(f"r{turn}"))
        session.append(fact(facts.STEP_END, turn=turn))
        session.append(fact(facts.TURN_END, turn=turn))
        sent += [f"u:q{turn}", f"a:r{turn}"]
        assert shape(session.build_context().messages) == sent
    session.set_leaf_id(None)
    assert session.build_context().messages == ()


def test_custom_messages_and_summaries_speak() -> None:
    session, _ = session_of(
        [user("q"), BranchSummaryEntry("x", "was there"), BranchSummaryEntry("x", ""), CustomEntry("silent")]
    )
    session.append(CustomMessageEntry("note", "psst", False, {"n": 1}))
    messages = session.build_context().messages
    assert [each.role for each in messages] == ["user", "branchSummary", "custom"]
    assert isinstance(messages[-1], CustomMessage)
    assert (messages[-1].content, messages[-1].display, messages[-1].details) == ("psst", False, {"n": 1})
    assert messages[-1].timestamp > 1_000_000_000_000


def test_a_compaction_stands_for_what_is_before_it() -> None:
    session, ids = session_of([user("1"), answer("2"), user("3"), answer("4")])
    session.append(CompactionEntry("sum", ids[2], 1234))
    session.append(user("5"))
    context = session.build_context()
    assert shape(context.messages) == ["compactionSummary", "u:3", "a:4", "u:5"]
    assert context.model == ("p", "m")
    compaction = session.append(CompactionEntry("all", "nothing"))
    assert shape(session.build_context().messages) == ["compactionSummary"]
    session.set_leaf_id(ids[3])
    assert shape(session.build_context().messages) == ["u:1", "a:2", "u:3", "a:4"]
    session.set_leaf_id(compaction.id)
    session.append(CompactionEntry("kept from before the last", ids[3]))
    assert shape(session.build_context().messages) == ["compactionSummary", "a:4", "u:5"]


def test_an_older_context_is_what_it_was() -> None:
    """TR-10: going back to between two compactions gives the first one's context."""
    session, ids = session_of([user("1"), answer("2")])
    session.append(CompactionEntry("first", ids[1]))
    between = session.append(user("3"))
    then = session.build_context()
    session.append(CompactionEntry("second", between.id))
    session.append(user("4"))
    session.set_leaf_id(between.id)
    assert session.build_context() == then


def test_the_last_edit_on_the_branch_wins() -> None:
    session, ids = session_of([user("1"), answer("2", call("c")), result("c"), user("3")])
    session.append(ContextEditEntry(ids[0], {"content": "one"}))
    session.append(ContextEditEntry(ids[2], {"content": "cut"}))
    assert shape(session.build_context().messages) == ["u:one", "a:2+c", "c=cut", "u:3"]
    edited = session.get_leaf_id()
    session.append(ContextEditEntry(ids[0], None))
    session.append(ContextEditEntry(ids[1], None))
    assert shape(session.build_context().messages) == ["u:3"]  # a result goes with its call
    session.set_leaf_id(edited)
    assert shape(session.build_context().messages)[0] == "u:one"


def test_settings_are_the_last_ones_on_the_branch() -> None:
    session, ids = session_of(
        [
            ModelChangeEntry("p", "first"),
            ThinkingLevelChangeEntry("high"),
            ActiveToolsChangeEntry(["read"]),
            user("1"),
            user("2"),
        ]
    )
    context = session.build_context()
    assert (context.model, context.thinking_level, context.active_tool_names) == (
        ("p", "first"),
        "high",
        ("read",),
    )
    session.append(CompactionEntry("sum", ids[4]))
    assert session.build_context().model == ("p", "first")
    session.append(answer("3"))
    session.append(ThinkingLevelChangeEntry("low"))
    context = session.build_context()
    assert (context.model, context.thinking_level, context.active_tool_names) == (
        ("p", "m"),
        "low",
        ("read",),
    )
    empty = Session.in_memory("/p").build_context()
    assert (empty.model, empty.thinking_level, empty.active_tool_names) == (None, "off", None)


def test_only_new_entries_are_read() -> None:
    session, _ = session_of([user(str(n)) for n in range(50)])
    read: list[str] = []
    inner = session.speech.read

    def noted(entry_id: str) -> Entry:
        read.append(entry_id)
        return inner(entry_id)

    session.speech.read = noted
    session.build_context()
    assert len(read) == 50
    read.clear()
    added = session.append(user("new"))
    assert len(session.build_context().messages) == 51
    assert read == [added.id]
    read.clear()
    session.append(CompactionEntry("sum", added.id))
    assert len(session.build_context().messages) == 2
    assert added.id in read
    assert len(read) == 2


def test_a_read_that_fails_half_way_spoils_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    session, _ = session_of([user("1")])
    session.build_context()
    session.append(user("2"))
    last = session.append(user("3"))
    inner = session.speech.read

    def fail(entry_id: str) -> Entry:
        if entry_id == last.id:
            raise StorageError("cannot read")
        return inner(entry_id)

    with monkeypatch.context() as patched:
        patched.setattr(session.speech, "read", fail)
        with pytest.raises(StorageError):
            session.build_context()
    assert shape(session.build_context().messages) == ["u:1", "u:2", "u:3"]


# ------------------------------------------------------------------ system messages


def tool(name: str, description: str = "") -> ToolSchema:
    return ToolSchema(name, description, {})


def test_system_messages_add_up() -> None:
    first = SystemMessage(
        sections={"preamble": "hi", "cwd": "/p", "old": "x"},
        tools_added=(
            tool("a"),
            tool("b"),
        ),
    )
    patch = SystemMessage(
        "extra",
        sections={"cwd": "/q", "old": None, "new": "n"},
        tools_removed=({"name": "a"},),
        tools_added=(
            tool("b", "again"),
            tool("c"),
        ),
    )
    state = fold_system([first, patch])
    assert state is not None
    assert state.content == "extra"
    assert state.sections is not None
    assert list(state.sections.items()) == [("preamble", "hi"), ("cwd", "/q"), ("new", "n")]
    assert state.tools_added == (tool("b", "again"), tool("c"))
    assert fold_system([]) is None


@pytest.mark.parametrize("stored", [True, False])
def test_the_system_state_survives_compaction(stored: bool) -> None:
    first, patch = SystemMessage(sections={"a": "1", "b": "1"}), SystemMessage(sections={"b": "2"})
    session, ids = session_of([MessageEntry(first), user("1"), MessageEntry(patch), user("2")])
    before = session.build_context().system_message
    assert before is not None
    assert before.sections == {"a": "1", "b": "2"}
    session.append(CompactionEntry("sum", ids[1], system_message=before if stored else None))
    context = session.build_context()
    assert context.system_message is not None
    assert context.system_message.sections == before.sections
    assert "system" not in [each.role for each in context.messages]
    session.append(MessageEntry(SystemMessage(sections={"a": None})))
    after = session.build_context().system_message
    assert after is not None
    assert after.sections == {"b": "2"}


# ------------------------------------------------------------------ repair


def test_every_call_has_one_result_right_after_it() -> None:
    assert context_of(
        result("stray"),
        user("q"),
        answer("go", call("1"), call("2")),
        user("steered in between"),
        result("2", "two"),
        result("1", "one"),
        result("1", "twice"),
        result("other"),
        answer("end"),
        result("2", "too late"),
    ) == ["u:q", "a:go+1+2", "1=one", "2=two", "u:steered in between", "a:end"]


def test_the_same_call_id_in_a_later_answer_is_another_call() -> None:
    assert context_of(answer(call("1")), result("1", "x"), answer(call("1")), result("1", "y")) == [
        "a:+1",
        "1=x",
        "a:+1",
        "1=y",
    ]


def test_a_missing_result_says_what_is_known() -> None:
    step = [
        fact(facts.TURN_START),
        fact(facts.STEP_START),
        user("q"),
        answer(call("1"), call("2"), call("3")),
    ]
    crashed = [*step, fact(facts.TOOL_CALL, callId="1"), result("1"), fact(facts.TOOL_CALL, callId="2")]
    expected = ["u:q", "a:+1+2+3", "1=done", "2!outcome_unknown", "3!not_started"]
    assert context_of(*crashed) == expected
    assert context_of(*crashed, user("next")) == [*expected, "u:next"]
    assert context_of(*crashed, user("next"), answer("ok")) == [*expected, "u:next", "a:ok"]


def test_without_facts_nothing_is_known() -> None:
    assert context_of(user("q"), answer(call("1"))) == ["u:q", "a:+1", "1!outcome_unknown"]
    ended = [fact(facts.STEP_START), answer("a"), fact(facts.STEP_END), answer(call("1"))]
    assert context_of(*ended) == ["a:a", "a:+1", "1!outcome_unknown"]


def test_repair_is_the_same_each_time() -> None:
    session, _ = session_of([user("q"), answer(call("1"))])
    assert session.build_context() == session.build_context()
    assert len(session.heads) == 2


def test_failed_and_aborted_answers() -> None:
    thinking = ThinkingContent("hm")
    assert context_of(
        user("q"),
        answer("failed", stop="error"),
        answer("partly", thinking, call("1"), stop="aborted"),
        result("1"),
        answer(" ", call("2"), stop="aborted"),
        answer(),
        answer("ok"),
    ) == ["u:q", "a:partly", "a:ok"]


def test_lone_surrogates_are_mended_in_contexts_only() -> None:
    session, ids = session_of([user("a\ud83d b \U0001f642"), user("plain")])
    assert shape(session.build_context().messages) == ["u:a\ufffd b \U0001f642", "u:plain"]
    stored = session.raw(ids[0])["message"]["content"][0]["text"]
    assert stored == "a\ud83d b \U0001f642"


# ------------------------------------------------------------------ projectors, transforms, tails


def test_a_custom_entry_speaks_only_through_a_projector() -> None:
    session, _ = session_of([user("q"), CustomEntry("todo", "milk"), CustomEntry("other", "x")])
    assert shape(session.build_context().messages) == ["u:q"]
    session.project("todo", lambda entry: [UserMessage.of(f"to do: {entry.data}")])
    assert shape(session.build_context().messages) == ["u:q", "u:to do: milk"]
    session.append(CustomEntry("todo", "eggs"))
    assert shape(session.build_context().messages) == ["u:q", "u:to do: milk", "u:to do: eggs"]


def test_transforms_choose_among_the_entries_that_count() -> None:
    session, ids = session_of([user("1"), answer("2"), user("3"), answer("4")])
    session.append(CompactionEntry("sum", ids[2], 10))
    session.append(ContextEditEntry(ids[3], {"content": "four"}))
    session.append(user("5"))
    seen: list[list[str]] = []

    def note(entries: Sequence[Entry]) -> Sequence[Entry]:
        seen.append([each.type for each in entries])
        return entries

    plain = session.build_context()
    assert session.build_context([note]) == plain
    assert seen == [["compaction", "message", "message", "message"]]
    last = session.build_context([note, lambda entries: entries[-2:]])
    assert shape(last.messages) == ["a:four", "u:5"]
    assert session.build_context() == plain


def test_a_tail_in_the_compaction_stands_for_the_kept_range() -> None:
    """F5: honoured where an older writer left it, and never there twice."""
    session, ids = session_of([user("1"), answer("2"), user("3")])
    tail = [
        codec.to_json(UserMessage.of("kept")),
        {"type": "message", "message": codec.to_json(answer("a").message)},
    ]
    session.append(CompactionEntry("sum", ids[2], 10, extra={"retainedTail": tail}))
    session.append(user("4"))
    assert shape(session.build_context().messages) == ["compactionSummary", "u:kept", "a:a", "u:4"]


# ------------------------------------------------------------------ images, empty turns, what was done

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (PIXEL, None),
        (PIXEL[:-8], "damaged"),
        (PIXEL[:-1], "damaged"),
        ("not base64!", "damaged"),
        ("aGVsbG8=", "damaged"),
        ("A" * ((5 << 20) + 4), "too large"),
        (base64.b64encode(base64.b64decode(PIXEL).replace(b"\0\0\0\1", b"\0\0\x40\1", 1)).decode(), "pixels"),
    ],
)
def test_an_image_that_no_provider_takes_becomes_a_note(data: str, fault: str | None) -> None:
    """RD-01: one bad image must not spoil the session for good."""
    image = ImageContent(data, "image/png")
    session, _ = session_of([MessageEntry(UserMessage.of("look", [image]))])
    context = session.build_context()
    (message,) = context.messages
    assert isinstance(message, UserMessage)
    assert message.content[0] == TextContent("look")
    shown = message.content[1]
    if fault is None:
        assert (shown, context.repairs) == (image, ())
    else:
        assert isinstance(shown, TextContent)
        assert fault in shown.text
        assert len(context.repairs) == 1


def test_turns_without_content_are_left_out() -> None:
    session, _ = session_of([user(" \n"), user("q"), CustomMessageEntry("note", ""), answer()])
    context = session.build_context()
    assert shape(context.messages) == ["u:q"]
    assert len(context.repairs) == 2


def test_repairs_are_told_once() -> None:
    session, _ = session_of(
        [user("q"), answer("a", call("1"), call("2")), result("1"), result("1"), result("9")]
    )
    repairs = session.build_context().repairs
    assert sorted(each.split()[1] for each in repairs) == ["call", "result", "second"]
    assert session.build_context().repairs == repairs
    session.append(answer("b"))
    assert sorted(session.build_context().repairs) == sorted(repairs)
    session.append(user("r"))
    assert sorted(session.build_context().repairs) == sorted(repairs)


def test_a_sound_branch_needs_no_repair() -> None:
    session, _ = session_of([user("q"), answer("a", call("1")), result("1"), answer("b")])
    assert session.build_context().repairs == ()
