"""The lifecycle checklist from the answer on: streaming, settlement, retries, and how it all ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from harness_bench import in_order, open_bench

from pi_trio import codec
from pi_trio.errors import StorageError, UsageError
from pi_trio.events import InboxInserted, MessageEnd
from pi_trio.harness.points import (
    ASSEMBLE,
    PRE_STEP,
    REQUEST,
    REQUEST_ERROR,
    STREAM,
    TURN_STOPPING,
    RequestError,
    StreamCall,
    TurnStopping,
)
from pi_trio.llm.protocol import Failure
from pi_trio.loop.driver import Retry
from pi_trio.messages import AssistantMessage, SystemMessage, text_of
from pi_trio.session.repository import SessionRepository
from pi_trio.session.session import Session
from pi_trio.testing import Call, Hang, Stop, Text, Think


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return SessionRepository(tmp_path / "agent", tmp_path).create()


# ------------------------------------------------------------------ streaming and settlement


async def test_pieces_are_live_only_and_the_answer_keeps_how_they_came(
    session: Session, autojump_clock: trio.testing.MockClock
) -> None:
    """L37, L38"""
    from pi_trio.testing import Pause

    answer = [Think.of("hm", "m"), Pause(0.5), Text.of("one ", "two"), Pause(0.25), Text.of(" three")]
    async with open_bench(session, answer) as bench:
        await bench.say("a")
        assert not any("delta" in name for name in bench.log())
        message = bench.harness.conversation.transcript[-1]
        assert isinstance(message, AssistantMessage)
        assert message.extra["stream"] == [[0, 0, 3], [500, 1, 7], [250, 1, 6]]
        lengths = [
            len(block.thinking if hasattr(block, "thinking") else block.text) for block in message.content
        ]  # type: ignore[union-attr]
        assert lengths == [3, 13]


async def test_the_end_is_told_after_the_answer_is_written(session: Session) -> None:
    """L39"""
    async with open_bench(session, "one") as bench:
        await bench.say("a")
        assert in_order(bench.merged(), "=assistant", "message_end", "=step/end")
        assert bench.merged().index("=assistant") < len(bench.merged()) - bench.merged()[::-1].index(
            "message_end"
        )


@pytest.mark.parametrize("answer", [Text.of(), ["cut of", Stop("length")]])
async def test_every_answer_is_recorded_also_one_that_says_nothing(session: Session, answer: Any) -> None:
    """L40"""
    async with open_bench(session, answer, "two") as bench:
        await bench.say("a")
        assert bench.log().count("assistant") == 1
        await bench.say("b")
        assert [text for text in bench.requested(1) if not text] == []


async def test_a_failed_attempt_is_written_told_and_then_decided_about(session: Session) -> None:
    """L41, L49"""
    seen: list[int] = []
    async with open_bench(session, ["half", Failure("bad key", "auth")]) as bench:

        async def decide(context: RequestError, following: Any) -> Retry | None:
            seen.append(bench.log().count("assistant/attempt"))
            retry: Retry | None = await following(context)
            return retry

        bench.harness.on(REQUEST_ERROR, decide)
        await bench.say("a")
        assert seen == [1]
        last = bench.said()[-1]
        assert isinstance(last, AssistantMessage)
        assert (last.stop_reason, last.error_message) == ("error", "bad key")
        assert bench.turn_end() == "error"


async def test_a_stream_that_just_ends_is_a_failure(session: Session) -> None:
    """L46"""
    async with open_bench(session) as bench:
        await bench.say("a")
        assert bench.turn_end() == "error"


async def test_a_settlement_that_cannot_be_written_is_the_turns_error(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """L45: nothing follows from an answer that is not in the file."""
    async with open_bench(session, Call("echo"), "never") as bench:
        write = session.append

        def refuse(entry: Any, **options: Any) -> Any:
            if isinstance(getattr(entry, "message", None), AssistantMessage):
                raise StorageError("not for any disk")
            return write(entry, **options)

        monkeypatch.setattr(session, "append", refuse)
        bench.harness.prompt("a")
        with pytest.raises(StorageError):
            await bench.harness.wait_for_idle()
        assert len(bench.model.requests) == 1
        assert "tool/call" not in bench.log()
        assert bench.log()[-2:] == ["step/end", "turn/end"]


# ------------------------------------------------------------------ retry


async def test_a_retry_prepares_again_but_neither_assembles_nor_admits(
    session: Session, autojump_clock: trio.testing.MockClock
) -> None:
    """L47, L48, L51"""
    calls: dict[str, int] = {}

    def count(name: str) -> Any:
        async def handler(context: Any, following: Any) -> Any:
            calls[name] = calls.get(name, 0) + 1
            return await following(context)

        return handler

    async with open_bench(session, Failure("busy", "overloaded"), "fine") as bench:
        for point in (ASSEMBLE, PRE_STEP, REQUEST, STREAM, REQUEST_ERROR):
            bench.harness.on(point, count(point.name))  # type: ignore[arg-type]
        await bench.say("a")
        assert calls == {
            "system-prompt/assemble": 1,
            "agent/pre-step": 1,
            "agent/request": 2,
            "llm/stream": 2,
            "agent/request-error": 1,
        }
        assert (bench.log().count("user"), bench.log().count("step/start")) == (1, 1)
        assert in_order(bench.log(), "assistant/attempt", "retry/scheduled", "retry/started", "assistant")


async def test_an_abort_wins_over_a_retry(session: Session) -> None:
    """L50"""
    async with open_bench(session, Failure("busy", "overloaded"), "never") as bench:

        async def decide(context: RequestError, following: Any) -> Retry | None:
            assert bench.harness._driver is not None
            bench.harness._driver.lifetime.cancel()
            return Retry(delay=0, attempt=1, max_attempts=3)

        bench.harness.on(REQUEST_ERROR, decide)
        await bench.say("a")
        assert (bench.turn_end(), len(bench.model.requests)) == ("aborted", 1)


async def test_what_a_handler_of_the_stream_raises_is_not_offered_for_retry(session: Session) -> None:
    """L52"""
    async with open_bench(session, "never") as bench:

        async def broken(call: StreamCall, following: Any) -> Any:
            raise ValueError("middleware")

        async def decide(context: RequestError, following: Any) -> Retry | None:
            raise AssertionError("not asked")

        bench.harness.on(STREAM, broken)
        bench.harness.on(REQUEST_ERROR, decide)
        bench.harness.prompt("a")
        with pytest.raises(ValueError, match="middleware"):
            await bench.harness.wait_for_idle()
        assert bench.turn_end() == "error"
        assert "assistant/attempt" in bench.log()


# ------------------------------------------------------------------ closing


@pytest.mark.parametrize("answer", ["fine", Failure("bad", "auth"), ValueError("stream"), Hang()])
async def test_brackets_are_closed_however_a_step_ends(session: Session, answer: Any) -> None:
    """L71"""
    async with open_bench(session, answer) as bench:
        bench.harness.prompt("a")
        await trio.testing.wait_all_tasks_blocked()
        await bench.harness.abort()
        if isinstance(answer, ValueError):
            with pytest.raises(ValueError, match="stream"):
                await bench.harness.wait_for_idle()
        names = [name for name in bench.log() if name.startswith(("turn/", "step/"))]
        assert names == ["turn/start", "step/start", "step/end", "turn/end"]


async def test_a_model_that_does_not_learn_ends_its_turn_with_an_error(session: Session) -> None:
    """TA-03: the queue waits, and the next request knows the refusals but not the error."""
    async with open_bench(session, *[Call("unheard of", id="a")] * 3, "fine", "later") as bench:
        bench.harness.prompt("go")
        bench.harness.follow_up("later")
        await bench.harness.wait_for_idle()
        assert (bench.turn_end(), len(bench.model.requests)) == ("error", 3)
        assert "3 times in the same way" in bench.said()[-1].error_message
        await bench.say("again")
        refusal = "There is no tool 'unheard of'. Tools: echo, stuck."
        assert bench.requested(3) == ["go", *["", refusal] * 3, "again"]
        assert bench.requested(4)[-1] == "later"


async def test_the_turn_stops_only_when_nothing_is_owed_or_waits(session: Session) -> None:
    """L72, L73: who objects steers, and the turn goes on."""
    stops: list[int] = []
    async with open_bench(session, Call("echo"), "one", "two") as bench:

        async def object_once(context: TurnStopping) -> None:
            stops.append(len(bench.model.requests))
            if len(stops) == 1:
                bench.harness.steer("one more thing")

        bench.harness.on(TURN_STOPPING, object_once)
        await bench.say("a")
        assert stops == [2, 3]
        assert bench.requested(2)[-1] == "one more thing"
        assert bench.log().count("turn/start") == 1


async def test_nothing_that_replay_needs_is_live_only(session: Session) -> None:
    """L44, L76"""
    async with open_bench(session, Call("echo"), "one") as bench:
        await bench.say("a")
        told = [event.message for event in bench.events if isinstance(event, MessageEnd)]
        live = [codec.to_json(message) for message in told if not isinstance(message, SystemMessage)]
    assert session.path is not None
    again = Session.open(session.path, writable=False).build_context().messages
    assert codec.dumps([codec.to_json(message) for message in again]) == codec.dumps(live)


async def test_a_wake_between_abort_and_idle_is_not_lost(session: Session) -> None:
    """L78: what came before the abort stays parked behind it until somebody wakes the agent."""
    async with open_bench(session, Hang(), "one", "two") as bench:
        bench.harness.prompt("a")
        await trio.testing.wait_all_tasks_blocked()
        assert bench.harness._driver is not None
        bench.harness._driver.lifetime.cancel()
        bench.harness.follow_up("late")
        await bench.harness.wait_for_idle()
        await trio.testing.wait_all_tasks_blocked()
        await bench.harness.wait_for_idle()
        assert bench.requested(1) == ["a", "late"]


async def test_what_waited_before_an_abort_stays(session: Session) -> None:
    """L78"""
    async with open_bench(session, Hang()) as bench:
        bench.harness.prompt("a")
        bench.harness.follow_up("queued")
        await trio.testing.wait_all_tasks_blocked()
        await bench.harness.abort()
        await trio.testing.wait_all_tasks_blocked()
        assert not bench.harness.running
        assert [text_of(i.message.content) for i in bench.harness.inbox.items("next-turn")] == ["queued"]  # type: ignore[union-attr]


async def test_going_on_after_an_abort_says_so_to_the_model(session: Session) -> None:
    async with open_bench(session, ["half", Hang()], "and the rest") as bench:
        bench.harness.prompt("a")
        await trio.testing.wait_all_tasks_blocked()
        await bench.harness.abort()
        bench.harness.continue_()
        await bench.harness.wait_for_idle()
        assert bench.requested(1) == ["a", "half", "Continue."]
        with pytest.raises(UsageError):
            bench.harness.continue_()


async def test_going_on_after_tool_results_needs_no_new_message(session: Session) -> None:
    async with open_bench(session, Call("stuck"), "fine") as bench:
        bench.harness.prompt("a")
        await trio.testing.wait_all_tasks_blocked()
        await bench.harness.abort()
        bench.harness.continue_()
        await bench.harness.wait_for_idle()
        assert [message.role for message in bench.model.requests[1].context.messages] == [
            "user",
            "assistant",
            "toolResult",
        ]


async def test_inserted_input_is_told_with_its_id(session: Session) -> None:
    async with open_bench(session, "one") as bench:
        await bench.say("a")
        (inserted,) = [event for event in bench.events if isinstance(event, InboxInserted)]
        entry = next(bench.session.raw(h.id) for h in bench.session.heads if h.detail == "user")
        assert entry["inboxId"] == inserted.id
