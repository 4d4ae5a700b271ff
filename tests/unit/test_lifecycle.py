"""The lifecycle checklist, row by row (61–70 and 79 are in the tests of the loop).

`log` is what the file got, `bus` what was told live; `merged` has both in one order, since
an entry is told the moment it is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import trio.testing
from harness_bench import Bench, open_bench

from pi_trio import codec
from pi_trio.errors import StorageError, UsageError
from pi_trio.events import AgentEvent, EntryAppended, InboxClaimed, InboxInserted, MessageEnd, MessageStart
from pi_trio.harness.inbox import InboxItem
from pi_trio.harness.points import (
    ASSEMBLE,
    PRE_STEP,
    REQUEST,
    REQUEST_ERROR,
    STREAM,
    TURN_STOPPING,
    Assemble,
    PreStep,
    RequestConfig,
    RequestError,
    StreamCall,
    TurnStopping,
)
from pi_trio.llm.protocol import Failure
from pi_trio.loop.driver import EnterStep, RejectStep, Retry
from pi_trio.messages import AssistantMessage, SystemMessage, UserMessage, text_of
from pi_trio.session.repository import SessionRepository
from pi_trio.session.session import Session
from pi_trio.testing import Call, Hang, Stop, Text, Think


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return SessionRepository(tmp_path / "agent", tmp_path).create()


def log(bench: Bench) -> list[str]:
    """The entries in file order, named by role, fact or type."""
    return [head.detail or head.type for head in bench.session.heads]


def facts_named(bench: Bench, name: str) -> list[Mapping[str, Any]]:
    ids = [head.id for head in bench.session.heads if head.detail == name]
    return [bench.session.raw(each)["data"] for each in ids]


def merged(bench: Bench) -> list[str]:
    """Everything in one order: entries as `=name`, live events by type."""
    return [
        f"={_entry_name(event)}" if isinstance(event, EntryAppended) else event.type for event in bench.events
    ]


def _entry_name(event: EntryAppended) -> str:
    entry = event.entry
    name = entry.get("customType") or entry.get("message", {}).get("role") or entry["type"]
    return str(name)


def in_order(sequence: list[str], *wanted: str) -> bool:
    """Whether `wanted` is a subsequence."""
    rest = iter(sequence)
    return all(any(each == name for each in rest) for name in wanted)


def turn_end(bench: Bench) -> str:
    return str(facts_named(bench, "turn/end")[-1]["reason"])


# ------------------------------------------------------------------ queue and wake


async def test_a_prompt_is_recorded_told_and_then_runs(session: Session) -> None:
    """L1"""
    async with open_bench(session, "one") as bench:
        bench.harness.follow_up("a")
        assert bench.harness.running
        await bench.harness.wait_for_idle()
        assert in_order(merged(bench), "=inbox/spliced", "inbox_inserted", "agent_start", "=turn/start")


async def test_the_agent_is_running_before_the_call_returns(session: Session) -> None:
    """L3"""
    async with open_bench(session, "one") as bench:
        assert not bench.harness.running
        bench.harness.steer("a")
        assert bench.harness.running


async def test_a_turn_is_opened_before_anything_is_claimed(session: Session) -> None:
    """L4, L7"""
    async with open_bench(session, "one") as bench:
        await bench.say("a")
        assert log(bench)[:3] == ["inbox/spliced", "turn/start", "inbox/spliced"]
        insertion, claim = facts_named(bench, "inbox/spliced")
        assert "removedCount" not in insertion
        assert (claim["removedCount"], claim["inserted"], claim.get("outcome")) == (1, [], None)


async def test_the_first_claim_takes_what_was_injected_and_one_prompt(session: Session) -> None:
    """L5, L6"""
    async with open_bench(session, "one", "two", "three") as bench:
        bench.harness.inject(UserMessage.of("x"))
        bench.harness.inject(UserMessage.of("y"))
        for text in ("a", "b", "c"):
            bench.harness.follow_up(text)
        await bench.harness.wait_for_idle()
        assert bench.requested(0) == ["x", "y", "a"]


async def test_claims_are_told_one_by_one_with_the_turn(session: Session) -> None:
    """L8"""
    async with open_bench(session, "one") as bench:
        bench.harness.inject(UserMessage.of("x"))
        await bench.say("a")
        claims = [event for event in bench.events if isinstance(event, InboxClaimed)]
        assert [(text_of(each.message.content), each.turn) for each in claims] == [("x", 1), ("a", 1)]  # type: ignore[union-attr]


async def test_a_burst_of_prompts_is_as_many_turns_in_one_run(session: Session) -> None:
    """L9, L75, L77"""
    async with open_bench(session, *["fine"] * 5) as bench:
        for number in range(5):
            bench.harness.follow_up(str(number))
        await bench.harness.wait_for_idle()
        assert [data["turn"] for data in facts_named(bench, "turn/start")] == [1, 2, 3, 4, 5]
        assert [text for text in bench.texts() if text != "fine"] == ["0", "1", "2", "3", "4"]
        statuses = [event.type for event in bench.events if event.type in ("agent_start", "agent_settled")]
        assert statuses == ["agent_start", "agent_settled"]


async def test_an_inject_wakes_nobody(session: Session) -> None:
    """L10"""
    async with open_bench(session) as bench:
        bench.harness.inject(UserMessage.of("x"))
        await trio.testing.wait_all_tasks_blocked()
        assert not bench.harness.running


async def test_steering_is_claimed_at_the_next_step_of_the_same_turn(session: Session) -> None:
    """L11, L74"""
    async with open_bench(session, Call("echo"), "two") as bench:

        def steer(event: AgentEvent) -> None:
            if event.type == "tool_execution_start":
                bench.harness.steer("hurry")

        bench.harness.hub.subscribe(steer)
        await bench.say("a")
        assert bench.requested(1)[-1] == "hurry"
        assert log(bench).count("turn/start") == 1
        tail = merged(bench)[merged(bench).index("=step/end") :]
        assert in_order(tail, "=inbox/spliced", "inbox_claimed", "=step/start", "=user")


async def test_an_id_that_waits_already_is_refused(session: Session) -> None:
    """L12"""
    async with open_bench(session) as bench:
        item = InboxItem.new(UserMessage.of("x"))
        bench.harness.inbox.add("next-step", item)
        before = len(log(bench))
        with pytest.raises(UsageError):
            bench.harness.inbox.add("next-turn", item)
        assert len(log(bench)) == before


async def test_editing_what_waits_is_one_splice_and_two_events(session: Session) -> None:
    """L13"""
    async with open_bench(session, Hang()) as bench:
        bench.harness.prompt("a")
        bench.harness.follow_up("b")
        await trio.testing.wait_all_tasks_blocked()
        (item,) = bench.harness.inbox.items("next-turn")
        before = len(facts_named(bench, "inbox/spliced"))
        bench.harness.edit_queued(item.id, "B")
        await trio.testing.wait_all_tasks_blocked()
        (change,) = facts_named(bench, "inbox/spliced")[before:]
        assert (change["outcome"], change["removedCount"]) == ("canceled", 1)
        tail = [event for event in bench.events if event.type.startswith("inbox_")][-2:]
        assert [event.type for event in tail] == ["inbox_discarded", "inbox_inserted"]


# ------------------------------------------------------------------ assembly and pre-step


async def test_the_prompt_is_assembled_after_the_claim_and_before_the_decision(session: Session) -> None:
    """L14, L21: for every step, steering included."""
    trace: list[str] = []
    async with open_bench(session, Call("echo"), "two") as bench:

        async def assemble(context: Assemble, following: Any) -> Mapping[str, str]:
            trace.append(f"assemble {context.step.number} {len(bench.harness.inbox.items('next-turn'))}")
            sections: Mapping[str, str] = await following(context)
            return sections

        async def pre_step(context: PreStep, following: Any) -> EnterStep:
            texts = [text_of(message.content) for message in context.messages]  # type: ignore[union-attr]
            trace.append(f"pre-step {context.step.turn} {context.step.number} {texts}")
            decision: EnterStep = await following(context)
            return decision

        bench.harness.on(ASSEMBLE, assemble)
        bench.harness.on(PRE_STEP, pre_step)
        await bench.say("a")
    assert trace == ["assemble 1 0", "pre-step 1 1 ['a']", "assemble 2 0", "pre-step 1 2 []"]


async def test_what_pre_step_returns_is_exactly_what_enters(session: Session) -> None:
    """L15"""
    async with open_bench(session, "one") as bench:

        async def replace(context: PreStep, following: Any) -> EnterStep:
            return EnterStep((UserMessage.of("instead"), UserMessage.of("and this")))

        bench.harness.on(PRE_STEP, replace)
        await bench.say("a")
        assert bench.requested(0) == ["instead", "and this"]
        assert bench.harness.returned == []
        assert len(facts_named(bench, "step/start")[0]["dropped"]) == 1


@pytest.mark.parametrize(
    ("outcome", "reason", "returned"),
    [("reject", "blocked", ["a"]), ("empty", "completed", []), ("raise", "error", ["a"])],
)
async def test_a_batch_that_does_not_enter_spends_no_step(
    session: Session, outcome: str, reason: str, returned: list[str]
) -> None:
    """L16, L17, L18: what was claimed leaves the inbox, and is handed back unless it was used."""
    async with open_bench(session, "fine") as bench:

        async def decide(context: PreStep, following: Any) -> EnterStep | RejectStep:
            if outcome == "raise":
                raise ValueError("no")
            return RejectStep("no") if outcome == "reject" else EnterStep(())

        remove = bench.harness.on(PRE_STEP, decide)
        bench.harness.prompt("a")
        if outcome == "raise":
            with pytest.raises(ValueError, match="no"):
                await bench.harness.wait_for_idle()
        await bench.harness.wait_for_idle()
        assert "step/start" not in log(bench)
        assert (turn_end(bench), bench.model.requests) == (reason, [])
        assert bench.harness.inbox.items("next-turn") == ()
        assert [text_of(message.content) for message in bench.harness.take_returned()] == returned  # type: ignore[union-attr]
        assert ("inbox/returned" in log(bench)) is bool(returned)
        remove()
        await bench.say("b")
        assert bench.requested(0) == ["b"]


async def test_the_next_prompt_runs_after_a_rejected_one(session: Session) -> None:
    """L19, as the design decides it."""
    async with open_bench(session, "fine") as bench:

        async def decide(context: PreStep, following: Any) -> EnterStep | RejectStep:
            if text_of(context.messages[0].content) == "a":  # type: ignore[union-attr]
                return RejectStep("no")
            decision: EnterStep = await following(context)
            return decision

        bench.harness.on(PRE_STEP, decide)
        bench.harness.follow_up("a")
        bench.harness.follow_up("b")
        await bench.harness.wait_for_idle()
        assert bench.requested(0) == ["b"]
        assert [data["reason"] for data in facts_named(bench, "turn/end")] == ["blocked", "completed"]


@pytest.mark.parametrize("spread", [True, False])
async def test_a_new_series_is_kept_by_who_spreads_the_inner_decision(session: Session, spread: bool) -> None:
    """L20, L32 (`series`)"""
    async with open_bench(session, "one", "two") as bench:
        await bench.say("a")

        async def outer(context: PreStep, following: Any) -> EnterStep:
            decision: EnterStep = await following(context)
            return (
                attrs.evolve(decision, messages=context.messages) if spread else EnterStep(context.messages)
            )

        async def inner(context: PreStep, following: Any) -> EnterStep:
            return EnterStep(context.messages, starts_request_series=True)

        bench.harness.on(PRE_STEP, outer)
        bench.harness.on(PRE_STEP, inner)
        await bench.say("b")
        reasons = [data["reason"] for data in facts_named(bench, "request/header")]
        assert reasons == (["initial", "series"] if spread else ["initial"])


async def test_a_step_that_owes_results_needs_no_input(session: Session) -> None:
    """L22"""
    async with open_bench(session, Call("echo"), "two") as bench:
        await bench.say("a")
        assert log(bench).count("step/start") == 2
        assert log(bench).count("user") == 1


# ------------------------------------------------------------------ admission


async def test_the_order_inside_a_step(session: Session) -> None:
    """L23"""
    async with open_bench(session, "one") as bench:

        async def request(config: RequestConfig, following: Any) -> RequestConfig:
            bench.events.append(MessageStart(UserMessage.of("request waterfall")))
            bench.events.append(MessageEnd(UserMessage.of("request waterfall")))
            decided: RequestConfig = await following(config)
            return decided

        bench.harness.on(REQUEST, request)
        await bench.say("a")
        assert in_order(
            log(bench),
            "step/start",
            "system",
            "user",
            "request/header",
            "request/context",
            "assistant",
            "step/end",
        )
        names = merged(bench)
        assert names.index("=step/start") < names.index("message_start") < names.index("=system")
        bench.events = [event for event in bench.events if "waterfall" not in str(event)]


@pytest.mark.parametrize("where", ["waterfall", "credential"])
async def test_cancelling_before_admission_commits_neither_system_nor_users(
    session: Session, where: str
) -> None:
    """L24, L25"""

    async def stuck(*_: Any) -> Any:
        await trio.sleep_forever()

    options = {"credential": stuck} if where == "credential" else {}
    async with open_bench(session, "one", **options) as bench:
        if where == "waterfall":
            bench.harness.on(REQUEST, stuck)
        bench.harness.prompt("a")
        await trio.testing.wait_all_tasks_blocked()
        await bench.harness.abort()
        opened = log(bench).index("step/start")
        assert log(bench)[opened:] == [
            "step/start",
            "inbox/returned",
            "assistant/attempt",
            "step/end",
            "turn/end",
        ]
        assert (turn_end(bench), bench.model.requests) == ("aborted", [])
        assert [text_of(m.content) for m in bench.harness.returned] == ["a"]  # type: ignore[union-attr]


async def test_no_other_task_comes_into_admission(session: Session) -> None:
    """L26"""
    async with open_bench(session, *["fine"] * 3) as bench, trio.open_nursery() as nursery:

        async def busy() -> None:
            for _ in range(200):
                bench.harness.next_turn("noise")
                bench.harness.clear_queue()
                await trio.lowlevel.checkpoint()

        nursery.start_soon(busy)
        for text in ("a", "b", "c"):
            bench.harness.follow_up(text)
        await bench.harness.wait_for_idle()
        names = log(bench)
        for place, name in enumerate(names):
            if name == "user" and names[place - 1] == "system":
                assert names[place - 2] in ("model_change", "step/start")
                assert names[place + 1] == "request/header"


async def test_an_observer_that_cancels_at_admission_stops_the_request(session: Session) -> None:
    """L27"""
    async with open_bench(session, "one") as bench:

        def observe(entry: Mapping[str, Any]) -> None:
            if entry.get("message", {}).get("role") == "user" and bench.harness._driver is not None:
                bench.harness._driver.lifetime.cancel()

        tell = session.on_append
        assert tell is not None
        session.on_append = lambda entry: (tell(entry), observe(entry))[0]  # type: ignore[func-returns-value]
        await bench.say("a")
        assert "user" in log(bench)
        assert (turn_end(bench), bench.model.requests) == ("aborted", [])


async def test_the_first_request_declares_the_prompt_even_if_it_is_empty(session: Session) -> None:
    """L29"""
    async with open_bench(session, "one", tools=(), sections=lambda tools: {}) as bench:
        await bench.say("a")
        assert log(bench).count("system") == 1
        assert bench.model.requests[0].context.system_prompt == ""
        assert all(not isinstance(m, SystemMessage) for m in bench.model.requests[0].context.messages)


async def test_headers_are_written_when_they_say_something_new(session: Session) -> None:
    """L32, L33"""
    async with open_bench(session, Call("echo"), "one", "two") as bench:
        await bench.say("a")
        bench.harness.thinking_level = "high"
        await bench.say("b")
        assert [data["reason"] for data in facts_named(bench, "request/header")] == ["initial", "change"]
        assert len(facts_named(bench, "request/context")) == 1
        path = session.path
    assert path is not None
    async with open_bench(Session.open(path), "three", "four") as bench:
        bench.harness.thinking_level = "high"
        await bench.say("c")
        await bench.say("d")
        reasons = [data["reason"] for data in facts_named(bench, "request/header")]
        assert reasons == ["initial", "change", "resume"]
        assert len(facts_named(bench, "request/context")) == 1


async def test_what_was_sent_can_be_derived_from_the_file(session: Session) -> None:
    """L34, L35: byte for byte, and each request of a series extends the one before."""
    async with open_bench(session, Call("echo"), Call("echo"), "one", "two") as bench:
        await bench.say("a")
        await bench.say("b")
        sent = [[codec.to_json(m) for m in each.context.messages] for each in bench.model.requests]
        prompts = [each.context.system_prompt for each in bench.model.requests]
    assert session.path is not None
    again = Session.open(session.path, writable=False)
    context = again.build_context()
    derived = [codec.to_json(message) for message in context.messages]
    for number, messages in enumerate(sent):
        assert codec.dumps(derived[: len(messages)]) == codec.dumps(messages)
        assert number == 0 or messages[: len(sent[number - 1])] == sent[number - 1]
    assert set(prompts) == {(context.system_message.sections or {})["preamble"]}  # type: ignore[union-attr]


# ------------------------------------------------------------------ streaming and settlement


async def test_pieces_are_live_only_and_the_answer_keeps_how_they_came(
    session: Session, autojump_clock: trio.testing.MockClock
) -> None:
    """L37, L38"""
    from pi_trio.testing import Pause

    answer = [Think.of("hm", "m"), Pause(0.5), Text.of("one ", "two"), Pause(0.25), Text.of(" three")]
    async with open_bench(session, answer) as bench:
        await bench.say("a")
        assert not any("delta" in name for name in log(bench))
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
        assert in_order(merged(bench), "=assistant", "message_end", "=step/end")
        assert merged(bench).index("=assistant") < len(merged(bench)) - merged(bench)[::-1].index(
            "message_end"
        )


@pytest.mark.parametrize("answer", [Text.of(), ["cut of", Stop("length")]])
async def test_every_answer_is_recorded_also_one_that_says_nothing(session: Session, answer: Any) -> None:
    """L40"""
    async with open_bench(session, answer, "two") as bench:
        await bench.say("a")
        assert log(bench).count("assistant") == 1
        await bench.say("b")
        assert [text for text in bench.requested(1) if not text] == []


async def test_a_failed_attempt_is_written_told_and_then_decided_about(session: Session) -> None:
    """L41, L49"""
    seen: list[int] = []
    async with open_bench(session, ["half", Failure("bad key", "auth")]) as bench:

        async def decide(context: RequestError, following: Any) -> Retry | None:
            seen.append(log(bench).count("assistant/attempt"))
            retry: Retry | None = await following(context)
            return retry

        bench.harness.on(REQUEST_ERROR, decide)
        await bench.say("a")
        assert seen == [1]
        last = bench.said()[-1]
        assert isinstance(last, AssistantMessage)
        assert (last.stop_reason, last.error_message) == ("error", "bad key")
        assert turn_end(bench) == "error"


async def test_a_stream_that_just_ends_is_a_failure(session: Session) -> None:
    """L46"""
    async with open_bench(session) as bench:
        await bench.say("a")
        assert turn_end(bench) == "error"


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
        assert "tool/call" not in log(bench)
        assert log(bench)[-2:] == ["step/end", "turn/end"]


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
        assert (log(bench).count("user"), log(bench).count("step/start")) == (1, 1)
        assert in_order(log(bench), "assistant/attempt", "retry/scheduled", "retry/started", "assistant")


async def test_an_abort_wins_over_a_retry(session: Session) -> None:
    """L50"""
    async with open_bench(session, Failure("busy", "overloaded"), "never") as bench:

        async def decide(context: RequestError, following: Any) -> Retry | None:
            assert bench.harness._driver is not None
            bench.harness._driver.lifetime.cancel()
            return Retry(delay=0, attempt=1, max_attempts=3)

        bench.harness.on(REQUEST_ERROR, decide)
        await bench.say("a")
        assert (turn_end(bench), len(bench.model.requests)) == ("aborted", 1)


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
        assert turn_end(bench) == "error"
        assert "assistant/attempt" in log(bench)


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
        names = [name for name in log(bench) if name.startswith(("turn/", "step/"))]
        assert names == ["turn/start", "step/start", "step/end", "turn/end"]


async def test_a_model_that_does_not_learn_ends_its_turn_with_an_error(session: Session) -> None:
    """TA-03: the queue waits, and the next request knows the refusals but not the error."""
    async with open_bench(session, *[Call("unheard of", id="a")] * 3, "fine", "later") as bench:
        bench.harness.prompt("go")
        bench.harness.follow_up("later")
        await bench.harness.wait_for_idle()
        assert (turn_end(bench), len(bench.model.requests)) == ("error", 3)
        last = [event.message for event in bench.events if isinstance(event, MessageEnd)][-1]
        assert "3 times in the same way" in last.error_message  # type: ignore[union-attr, operator]
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
        assert log(bench).count("turn/start") == 1


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
