"""Limits on cost and steps, and what is checked before a run is started: one policy for every mode."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio.testing
from harness_bench import Bench, open_bench

from pi_trio.errors import ConfigError, LimitError
from pi_trio.harness.limits import Limits
from pi_trio.harness.retry import RetryPolicy
from pi_trio.llm.protocol import Failure, Model, ModelCost
from pi_trio.messages import Cost, Usage, text_of
from pi_trio.session.repository import SessionRepository
from pi_trio.session.session import Session
from pi_trio.testing import Call
from pi_trio.tool import Tool, ToolResult


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return SessionRepository(tmp_path / "agent", tmp_path).create()


def costs(dollars: float) -> Usage:
    return Usage(cost=Cost(total=dollars))


def reason(bench: Bench) -> Any:
    """How the last turn ended, as the file says."""
    ends = [head.id for head in bench.session.heads if head.detail == "turn/end"]
    return bench.session.raw(ends[-1])["data"]["reason"]


def error(bench: Bench) -> str | None:
    return getattr(bench.said()[-1], "error_message", None)


# ------------------------------------------------------------------ steps


async def test_a_turn_ends_where_it_would_take_one_step_too_many(session: Session) -> None:
    """HL-02"""
    answers = [Call("echo", {"n": n}) for n in range(5)]
    async with open_bench(session, *answers, limits=Limits(max_steps=2)) as bench:
        await bench.say("go")
        assert bench.model.request_count == 2
        assert error(bench) == "Stopped: the turn has taken 2 steps, which is the limit (maxSteps)."
        assert reason(bench) == "limit"
        assert bench.texts()[-1] == "echo 1"  # nothing of what the calls gave is lost


async def test_the_last_allowed_step_may_end_the_turn(session: Session) -> None:
    async with open_bench(session, Call("echo"), "done", limits=Limits(max_steps=2)) as bench:
        await bench.say("go")
        assert reason(bench) == "completed"
        assert error(bench) is None


async def test_a_stopped_turn_goes_on_with_as_many_steps_again(session: Session) -> None:
    answers = [Call("echo", {"n": 1}), Call("echo", {"n": 2}), "done"]
    async with open_bench(session, *answers, limits=Limits(max_steps=2)) as bench:
        await bench.say("go")
        bench.harness.continue_()
        await bench.harness.wait_for_idle()
        assert bench.texts() == ["go", "", "echo 1", "", "echo 2", "done"]
        assert reason(bench) == "completed"


async def test_what_waits_stays_and_what_was_claimed_comes_back(session: Session) -> None:
    async def talk(call_id: str, args: Any, on_update: Any) -> ToolResult:
        bench.harness.steer("look there")
        bench.harness.follow_up("and then")
        return ToolResult("ok")

    tool = Tool(name="talk", description="talk", parameters={"type": "object"}, execute=talk)
    async with open_bench(session, Call("talk"), tools=(tool,), limits=Limits(max_steps=1)) as bench:
        await bench.say("go")
        assert bench.model.request_count == 1
        assert [text_of(message.content) for message in bench.harness.returned] == ["look there"]
        assert bench.harness.inbox.summary().follow_up == ("and then",)


# ------------------------------------------------------------------ cost


async def test_a_run_ends_after_the_step_that_reached_the_cost(session: Session) -> None:
    """HL-02"""
    answers = [[Call("echo", {"n": n}), costs(0.4)] for n in range(5)]
    async with open_bench(session, *answers, limits=Limits(max_cost=0.75)) as bench:
        await bench.say("go")
        assert bench.model.request_count == 2
        assert error(bench) == (
            "Stopped: the limit of $0.75 (maxCost) is reached. "
            "$0.8000 was spent since the session was opened."
        )
        assert reason(bench) == "limit"


async def test_nothing_is_taken_once_the_cost_is_reached(session: Session) -> None:
    async with open_bench(session, ["done", costs(1)], limits=Limits(max_cost=1)) as bench:
        await bench.say("go")
        assert reason(bench) == "completed"
        before = len(session.heads)
        for say in (bench.harness.prompt, bench.harness.steer, bench.harness.follow_up):
            with pytest.raises(LimitError, match="maxCost"):
                say("more")
        assert len(session.heads) == before
        bench.harness.next_turn("later")  # which starts nothing
        assert bench.model.request_count == 1


async def test_what_failed_is_counted(session: Session, autojump_clock: trio.testing.MockClock) -> None:
    answers = [["half", costs(1), Failure("busy", "overloaded")], "done"]
    policy = RetryPolicy(enabled=True, max_retries=3, base_delay=1, max_delay=1, longest_wish=None)
    async with open_bench(session, *answers, limits=Limits(max_cost=1), retry=policy) as bench:
        await bench.say("go")
        assert bench.model.request_count == 1
        assert "maxCost" in str(error(bench))
        assert reason(bench) == "limit"


async def test_a_summary_is_not_paid_for_beyond_the_limit(session: Session) -> None:
    answers = [["word " * 40_000, costs(0.5)]] * 2
    async with open_bench(session, *answers, limits=Limits(max_cost=1)) as bench:
        await bench.say("go")
        await bench.say("and on")
        with pytest.raises(LimitError):
            await bench.harness.compact()
        assert bench.model.request_count == 2


async def test_an_unknown_price_cannot_be_limited(session: Session) -> None:
    unknown = Model("m", api="scripted", provider="scripted")
    async with open_bench(session, "done", limits=Limits(max_cost=1)) as bench:
        bench.harness.model = unknown
        with pytest.raises(ConfigError, match=r"The price of scripted/m is unknown"):
            bench.harness.prompt("go")
        assert not session.heads
        bench.harness.model = Model("m", api="scripted", provider="scripted", cost=ModelCost())
        await bench.say("go")
        assert bench.texts() == ["go", "done"]


# ------------------------------------------------------------------ what is checked first


async def test_what_cannot_start_leaves_no_trace(session: Session) -> None:
    """HL-01: a key that is not there is told before anything is kept."""

    def refuse(model: Model) -> None:
        raise ConfigError(f"There is no API key for {model.provider}")

    async with open_bench(session, "done", preflight=refuse) as bench:
        for say in (bench.harness.prompt, bench.harness.steer, bench.harness.follow_up):
            with pytest.raises(ConfigError, match="scripted"):
                say("go")
        assert not bench.harness.inbox.wakes
        assert session.path is not None
        assert not session.path.exists()
    assert bench.events == []
