"""Compaction at its moments: pressure before a step, overflow inside one, and on request."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import trio.testing
from harness_bench import Bench, open_bench

from pi_trio import codec
from pi_trio.compaction.plan import CompactionSettings
from pi_trio.errors import ProviderError, SummaryError, UsageError
from pi_trio.events import CompactionEnd, CompactionStart, MessageEnd
from pi_trio.llm.protocol import Failure
from pi_trio.messages import AssistantMessage, Usage, text_of
from pi_trio.session.repository import SessionRepository
from pi_trio.session.session import Session
from pi_trio.testing import Call, Hang
from pi_trio.tool import Tool, ToolResult

WINDOW = 10_000
SETTINGS = CompactionSettings(reserve_tokens=2_000, keep_recent_tokens=500)
OVERFLOW = Failure("prompt is too long: 10400 > 10000", "context_overflow")
LONG = "word " * 6_000


async def _long(call_id: str, args: Any, on_update: Any) -> ToolResult:
    return ToolResult(LONG)


TOOLS = (Tool(name="long", description="Says a lot.", parameters={"type": "object"}, execute=_long),)


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return SessionRepository(tmp_path / "agent", tmp_path).create()


def bench_of(session: Session, *answers: Any, window: int = WINDOW) -> Any:
    return open_bench(session, *answers, tools=TOOLS, compaction=SETTINGS)


def narrow(bench: Bench, window: int = WINDOW) -> None:
    bench.harness.model = attrs.evolve(bench.harness.model, context_window=window)


def names(bench: Bench) -> list[str]:
    return [head.detail or head.type for head in bench.session.heads]


def ends(bench: Bench) -> list[CompactionEnd]:
    return [event for event in bench.events if isinstance(event, CompactionEnd)]


def used(tokens: int) -> Usage:
    return Usage(input=tokens, total_tokens=tokens)


async def test_pressure_is_answered_before_the_prompt_enters(session: Session) -> None:
    """L53, E54: the request for a summary does not have the new prompt in it."""
    answers = ["x " * 2_000, ["y " * 2_000, used(8_001)], "## Goal\nTo count.", "three"]
    async with bench_of(session, *answers) as bench:
        narrow(bench)
        await bench.say("one")
        await bench.say("two")
        await bench.say("three")
        assert "three" not in str(bench.model.requests[2].context)
        assert names(bench).count("compaction") == 1
        sent = bench.requested(3)
        assert "To count." in sent[0]
        assert sent[-1] == "three"
        assert [event.reason for event in bench.events if isinstance(event, CompactionStart)] == ["threshold"]
        (end,) = ends(bench)
        assert end.result is not None
        assert end.result.tokens_before >= 8_001


async def test_below_the_threshold_nothing_happens(session: Session) -> None:
    """L56, E54"""
    async with bench_of(session, ["x", used(8_000)], "two") as bench:
        narrow(bench)
        await bench.say("one")
        await bench.say("two")
        assert ends(bench) == []
        assert not {"prune", "compaction", "context_edit"} & set(names(bench))


async def test_a_model_may_have_sizes_of_its_own(session: Session) -> None:
    """The reserve of the others would press at 8,000 tokens; that of this one presses at 7,000."""
    other = CompactionSettings(reserve_tokens=0)
    own = CompactionSettings(reserve_tokens=3_000, keep_recent_tokens=500)
    sizes = attrs.evolve(SETTINGS, overrides={"scripted/other": other, "scripted/scripted": own})
    answers = ["x " * 2_000, ["y " * 2_000, used(7_001)], "## Goal\nTo count.", "three"]
    async with open_bench(session, *answers, tools=TOOLS, compaction=sizes) as bench:
        narrow(bench)
        await bench.say("one")
        await bench.say("two")
        await bench.say("three")
        assert names(bench).count("compaction") == 1


async def test_what_is_switched_off_is_not_done_unasked(session: Session) -> None:
    """F30"""
    answers = ["x " * 2_000, ["y " * 2_000, used(8_001)], "three", "## Goal\nTo count.", "four"]
    async with bench_of(session, *answers) as bench:
        narrow(bench)
        bench.harness.compactor.enabled = False
        refused = await bench.harness.compactor.after_failure(OVERFLOW)
        assert refused == OVERFLOW  # an overflow is left to the person, too
        await bench.say("one")
        await bench.say("two")
        await bench.say("three")
        assert ends(bench) == []
        bench.harness.compactor.enabled = True
        await bench.say("four")
        assert [event.reason for event in bench.events if isinstance(event, CompactionStart)] == ["threshold"]
        assert not bench.harness.compacting


async def test_where_pruning_is_enough_nothing_is_summarised(session: Session) -> None:
    """L55"""
    answers = [Call("long"), "seen", ["short " * 800, used(8_500)], "three"]
    async with bench_of(session, *answers) as bench:
        narrow(bench)
        await bench.say("one")
        await bench.say("two")
        await bench.say("three")
        assert "prune" in names(bench)
        assert "compaction" not in names(bench)
        (end,) = ends(bench)
        assert end.error_message is None


async def test_an_overflow_is_answered_once_inside_the_step(session: Session) -> None:
    """L54, L57, L58: room is made, and the same step asks again."""
    answers = ["x " * 3_000, "y " * 2_000, OVERFLOW, *["## Goal\nShort."] * 3, "fine"]
    async with bench_of(session, *answers) as bench:
        for text in ("one", "two", "three"):
            await bench.say(text)
        assert bench.requested(-1)[-1] == "three"
        assert names(bench).count("step/start") == 3
        assert names(bench).count("user") == 3
        assert [event.reason for event in bench.events if isinstance(event, CompactionStart)] == ["overflow"]
        assert bench.texts()[-1] == "fine"


async def test_where_nothing_shrinks_the_failure_stands_with_what_was_tried(session: Session) -> None:
    """L57, CP-01: one try, then a clear end."""
    async with bench_of(session, OVERFLOW) as bench:
        await bench.say("one")
        last = bench.said()[-1]
        assert isinstance(last, AssistantMessage)
        assert last.stop_reason == "error"
        assert str(last.error_message).startswith(OVERFLOW.message)
        assert "Tried" in str(last.error_message)
        assert len(bench.model.requests) == 1


async def test_another_refusal_makes_no_room(session: Session) -> None:
    """L54"""
    async with bench_of(session, Failure("bad request", "invalid_request")) as bench:
        await bench.say("one")
        assert ends(bench) == []


async def test_a_failed_summary_under_pressure_leaves_the_turn_running(session: Session) -> None:
    """L59, E60, CP-08: nothing has changed but the two facts."""
    answers = ["x " * 2_000, ["y " * 2_000, used(8_001)], "", "three"]
    async with bench_of(session, *answers) as bench:
        narrow(bench)
        await bench.say("one")
        await bench.say("two")
        before = bench.texts()
        await bench.say("three")
        assert bench.texts() == [*before, "three", "three"]
        assert "compaction" not in names(bench)
        (end,) = ends(bench)
        assert end.error_message


async def test_a_full_window_ends_the_turn_before_a_request(session: Session) -> None:
    """CP-01: with the numbers, and the prompt is handed back."""
    async with bench_of(session, ["x", used(30_000)], ["y", used(30_000)], "never") as bench:
        narrow(bench)
        await bench.say("one")
        for text in ("two", "three", "four"):
            bench.harness.prompt(text)
            with suppress(ProviderError):
                await bench.harness.wait_for_idle()
        assert len(bench.model.requests) <= 3
        complaint = [m for m in bench.events if isinstance(m, MessageEnd) and "30,0" in str(m.message)]
        assert complaint
        assert text_of(bench.harness.returned[-1].content) == "four"  # type: ignore[union-attr]


async def test_compacting_on_request_takes_instructions(session: Session) -> None:
    async with bench_of(session, "x " * 2_000, "y " * 2_000, "## Goal\nKeys.", "three") as bench:
        await bench.say("one")
        await bench.say("two")
        result = await bench.harness.compact("the names of the keys")
        assert result is not None
        assert "the names of the keys" in str(bench.model.requests[2].context)
        await bench.say("three")
        assert "Keys." in bench.requested(3)[0]


async def test_there_may_be_nothing_to_compact(session: Session) -> None:
    async with bench_of(session, "x") as bench:
        await bench.say("one")
        with pytest.raises(UsageError):
            await bench.harness.compact()
        assert not bench.harness.busy


async def test_a_summary_that_cannot_be_had_is_an_error_and_changes_nothing(session: Session) -> None:
    """E60, CP-08"""
    async with bench_of(session, "x " * 2_000, "y " * 2_000, Failure("no", "auth"), "three") as bench:
        await bench.say("one")
        await bench.say("two")
        before = bench.texts()
        with pytest.raises(SummaryError):
            await bench.harness.compact()
        assert bench.texts() == before
        await bench.say("three")


async def test_an_abort_ends_a_compaction_and_changes_nothing(session: Session) -> None:
    """CP-07"""
    async with (
        bench_of(session, "x " * 2_000, "y " * 2_000, Hang(), "three") as bench,
        trio.open_nursery() as nursery,
    ):
        await bench.say("one")
        await bench.say("two")
        before = bench.texts()
        nursery.start_soon(bench.harness.compact)
        await trio.testing.wait_all_tasks_blocked()
        assert bench.harness.busy
        await bench.harness.abort()
        assert not bench.harness.busy
        (end,) = ends(bench)
        assert end.aborted
        assert bench.texts() == before
        await bench.say("three")
        assert bench.texts()[-1] == "three"


async def test_what_is_said_during_a_compaction_is_answered_after_it(session: Session) -> None:
    """QS-05"""
    answers = ["x " * 2_000, "y " * 2_000, [Hang()], "three"]
    async with bench_of(session, *answers) as bench, trio.open_nursery() as nursery:
        await bench.say("one")
        await bench.say("two")
        nursery.start_soon(bench.harness.compact)
        await trio.testing.wait_all_tasks_blocked()
        bench.harness.prompt("meanwhile")
        assert not bench.harness.running
        await trio.testing.wait_all_tasks_blocked()
        assert bench.events[-1].follow_up == ("meanwhile",)  # a screen lists what waits
        await bench.harness.abort()
        await bench.harness.wait_for_idle()
        await trio.testing.wait_all_tasks_blocked()
        assert bench.texts()[-2:] == ["meanwhile", "three"]


async def test_compacting_stops_a_run_and_does_not_go_on_with_it(session: Session) -> None:
    """CP-02"""
    answers = ["x " * 2_000, "y " * 2_000, ["half", Hang()], "## Goal\nShort."]
    async with bench_of(session, *answers) as bench:
        await bench.say("one")
        await bench.say("two")
        bench.harness.prompt("three")
        await trio.testing.wait_all_tasks_blocked()
        assert await bench.harness.compact() is not None
        assert not bench.harness.busy
        assert names(bench).count("compaction") == 1


async def test_leaving_a_branch_with_a_summary(session: Session) -> None:
    """D53"""
    async with bench_of(session, "one", "two", "What was tried.", "three") as bench:
        await bench.say("a")
        await bench.say("b")
        target = next(head.id for head in bench.session.heads if head.detail == "assistant")
        await bench.harness.navigate_with_summary(target, focus="keys")
        assert "keys" in str(bench.model.requests[2].context)
        await bench.say("c")
        sent = bench.requested(3)
        assert sent[:2] == ["a", "one"]
        assert "What was tried." in sent[2]
        assert sent[3] == "c"
        assert "leaf" not in names(bench)


async def test_after_an_aborted_branch_summary_nothing_has_moved(session: Session) -> None:
    async with bench_of(session, "one", "two", Hang()) as bench, trio.open_nursery() as nursery:
        await bench.say("a")
        await bench.say("b")
        leaf = bench.session.get_leaf_id()
        target = next(head.id for head in bench.session.heads if head.detail == "assistant")
        nursery.start_soon(bench.harness.navigate_with_summary, target)
        await trio.testing.wait_all_tasks_blocked()
        await bench.harness.abort()
        assert bench.session.get_leaf_id() == leaf


async def test_the_context_after_a_compaction_is_the_same_when_read_again(session: Session) -> None:
    """RS-01"""
    async with bench_of(session, "x " * 2_000, "y " * 2_000, "## Goal\nShort.", "three") as bench:
        await bench.say("one")
        await bench.say("two")
        await bench.harness.compact()
        await bench.say("three")
        told = [codec.to_json(message) for message in bench.harness.conversation.transcript]
    assert session.path is not None
    again = Session.open(session.path, writable=False).build_context().messages
    assert [codec.to_json(message) for message in again] == told
