"""The lifecycle checklist, row by row (61–70 and 79 are in the tests of the loop).

Here from the queue to the frozen request; what comes back is in `test_lifecycle_answers`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import trio.testing
from harness_bench import in_order, open_bench

from pi_trio import codec
from pi_trio.errors import UsageError
from pi_trio.events import AgentEvent, InboxClaimed, MessageEnd, MessageStart
from pi_trio.harness.inbox import InboxItem
from pi_trio.harness.points import (
    ASSEMBLE,
    PRE_STEP,
    REQUEST,
    Assemble,
    PreStep,
    RequestConfig,
)
from pi_trio.loop.driver import EnterStep, RejectStep
from pi_trio.messages import SystemMessage, UserMessage, text_of
from pi_trio.session.repository import SessionRepository
from pi_trio.session.session import Session
from pi_trio.testing import Call, Hang


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return SessionRepository(tmp_path / "agent", tmp_path).create()


# ------------------------------------------------------------------ queue and wake


async def test_a_prompt_is_recorded_told_and_then_runs(session: Session) -> None:
    """L1"""
    async with open_bench(session, "one") as bench:
        bench.harness.follow_up("a")
        assert bench.harness.running
        await bench.harness.wait_for_idle()
        assert in_order(bench.merged(), "=inbox/spliced", "inbox_inserted", "agent_start", "=turn/start")


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
        assert bench.log()[:3] == ["inbox/spliced", "turn/start", "inbox/spliced"]
        insertion, claim = bench.facts("inbox/spliced")
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
        assert [data["turn"] for data in bench.facts("turn/start")] == [1, 2, 3, 4, 5]
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
        assert bench.log().count("turn/start") == 1
        tail = bench.merged()[bench.merged().index("=step/end") :]
        assert in_order(tail, "=inbox/spliced", "inbox_claimed", "=step/start", "=user")


async def test_an_id_that_waits_already_is_refused(session: Session) -> None:
    """L12"""
    async with open_bench(session) as bench:
        item = InboxItem.new(UserMessage.of("x"))
        bench.harness.inbox.add("next-step", item)
        before = len(bench.log())
        with pytest.raises(UsageError):
            bench.harness.inbox.add("next-turn", item)
        assert len(bench.log()) == before


async def test_editing_what_waits_is_one_splice_and_two_events(session: Session) -> None:
    """L13"""
    async with open_bench(session, Hang()) as bench:
        bench.harness.prompt("a")
        bench.harness.follow_up("b")
        await trio.testing.wait_all_tasks_blocked()
        (item,) = bench.harness.inbox.items("next-turn")
        before = len(bench.facts("inbox/spliced"))
        bench.harness.edit_queued(item.id, "B")
        await trio.testing.wait_all_tasks_blocked()
        (change,) = bench.facts("inbox/spliced")[before:]
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
        assert len(bench.facts("step/start")[0]["dropped"]) == 1


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
        assert "step/start" not in bench.log()
        assert (bench.turn_end(), bench.model.requests) == (reason, [])
        assert bench.harness.inbox.items("next-turn") == ()
        assert [text_of(message.content) for message in bench.harness.take_returned()] == returned  # type: ignore[union-attr]
        assert ("inbox/returned" in bench.log()) is bool(returned)
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
        assert [data["reason"] for data in bench.facts("turn/end")] == ["blocked", "completed"]


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
        reasons = [data["reason"] for data in bench.facts("request/header")]
        assert reasons == (["initial", "series"] if spread else ["initial"])


async def test_a_step_that_owes_results_needs_no_input(session: Session) -> None:
    """L22"""
    async with open_bench(session, Call("echo"), "two") as bench:
        await bench.say("a")
        assert bench.log().count("step/start") == 2
        assert bench.log().count("user") == 1


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
            bench.log(),
            "step/start",
            "system",
            "user",
            "request/header",
            "request/context",
            "assistant",
            "step/end",
        )
        names = bench.merged()
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
        opened = bench.log().index("step/start")
        assert bench.log()[opened:] == [
            "step/start",
            "inbox/returned",
            "assistant/attempt",
            "step/end",
            "turn/end",
        ]
        assert (bench.turn_end(), bench.model.requests) == ("aborted", [])
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
        names = bench.log()
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
        assert "user" in bench.log()
        assert (bench.turn_end(), bench.model.requests) == ("aborted", [])


async def test_the_first_request_declares_the_prompt_even_if_it_is_empty(session: Session) -> None:
    """L29"""
    async with open_bench(session, "one", tools=(), sections=lambda tools: {}) as bench:
        await bench.say("a")
        assert bench.log().count("system") == 1
        assert bench.model.requests[0].context.system_prompt == ""
        assert all(not isinstance(m, SystemMessage) for m in bench.model.requests[0].context.messages)


async def test_headers_are_written_when_they_say_something_new(session: Session) -> None:
    """L32, L33"""
    async with open_bench(session, Call("echo"), "one", "two") as bench:
        await bench.say("a")
        bench.harness.thinking_level = "high"
        await bench.say("b")
        assert [data["reason"] for data in bench.facts("request/header")] == ["initial", "change"]
        assert len(bench.facts("request/context")) == 1
        path = session.path
    assert path is not None
    async with open_bench(Session.open(path), "three", "four") as bench:
        bench.harness.thinking_level = "high"
        await bench.say("c")
        await bench.say("d")
        reasons = [data["reason"] for data in bench.facts("request/header")]
        assert reasons == ["initial", "change", "resume"]
        assert len(bench.facts("request/context")) == 1


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
