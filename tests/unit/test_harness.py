"""The session driver: what a run leaves in the file, and who may do what when."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import trio.testing
from harness_bench import TOOLS, open_bench

from pi_trio.compaction.plan import Plan, make_plan
from pi_trio.compaction.surface import surface_of
from pi_trio.errors import BusyError, ConfigError, StorageError, UsageError
from pi_trio.events import AgentEvent, AutoRetryStart, InputReturned, QueueUpdate
from pi_trio.harness.points import REQUEST
from pi_trio.llm.auth import Credential
from pi_trio.llm.protocol import Failure, Model
from pi_trio.loop.convert import convert_messages
from pi_trio.messages import ImageContent, UserMessage, text_of
from pi_trio.session.entries import CustomEntry
from pi_trio.session.repository import SessionRepository
from pi_trio.session.session import Session
from pi_trio.testing import Call, Hang
from pi_trio.tool import Tool, ToolResult


@pytest.fixture
def repository(tmp_path: Path) -> SessionRepository:
    return SessionRepository(tmp_path / "agent", tmp_path)


async def test_a_turn_leaves_its_entries_in_order(repository: SessionRepository) -> None:
    async with open_bench(repository.create(), Call("echo", {"n": 1}), "done") as bench:
        await bench.say("go")
        assert bench.kinds() == [
            "inbox/spliced",
            "turn/start",
            "inbox/spliced",
            "step/start",
            "model_change",
            "system",
            "user",
            "request/header",
            "request/context",
            "assistant",
            "tool/call",
            "toolResult",
            "step/end",
            "step/start",
            "assistant",
            "step/end",
            "turn/end",
        ]
        assert bench.texts() == ["go", "", "echo 1", "done"]


async def test_the_prompt_is_said_once_and_sent_with_every_request(repository: SessionRepository) -> None:
    """L30"""
    async with open_bench(repository.create(), "one", "two") as bench:
        await bench.say("a")
        await bench.say("b")
        assert bench.kinds().count("system") == 1
        assert [each.context.system_prompt for each in bench.model.requests] == ["Be brief."] * 2
        assert [tool.name for tool in bench.model.requests[0].context.tools] == ["echo", "stuck"]
        assert bench.requested(1) == ["a", "one", "b"]


async def test_a_changed_section_is_recorded_as_a_patch(repository: SessionRepository) -> None:
    """L28, L30: it takes the place of the old one for every model, in the same step."""
    said = {"preamble": "Be brief."}
    async with open_bench(repository.create(), "1", "2", sections=lambda tools: dict(said)) as bench:
        await bench.say("a")
        said["rules"] = "No tables."
        await bench.say("b")
        assert bench.kinds().count("system") == 2
        assert bench.model.requests[1].context.system_prompt == "Be brief.\n\nNo tables."


async def test_a_session_that_is_opened_again_sends_what_it_would_have_sent(
    repository: SessionRepository,
) -> None:
    session = repository.create()
    async with open_bench(session, Call("echo"), "done") as bench:
        await bench.say("go")
        before = bench.texts()
    session.close()
    async with open_bench(repository.open(str(session.path)), "again") as bench:
        assert bench.texts() == before
        await bench.say("more")
        assert bench.requested(0) == [*before, "more"]
        assert bench.kinds().count("turn/start") == 2
        assert bench.harness.turns == 2


async def test_steering_enters_the_next_request_of_the_open_turn(repository: SessionRepository) -> None:
    async with open_bench(repository.create(), Call("echo"), "done") as bench:
        bench.harness.prompt("go")
        bench.harness.steer("and hurry")
        await bench.harness.wait_for_idle()
        assert bench.requested(0) == ["and hurry", "go"]
        assert bench.kinds().count("turn/start") == 1


async def test_a_follow_up_opens_a_turn_of_its_own_in_the_same_run(repository: SessionRepository) -> None:
    async with open_bench(repository.create(), "one", "two") as bench:
        bench.harness.prompt("a")
        bench.harness.follow_up("b")
        await bench.harness.wait_for_idle()
        assert bench.kinds().count("turn/start") == 2
        assert [event.type for event in bench.events].count("agent_start") == 1
        assert bench.texts() == ["a", "one", "b", "two"]


async def test_a_prompt_while_running_is_refused_and_changes_nothing(repository: SessionRepository) -> None:
    async with open_bench(repository.create(), Hang()) as bench:
        bench.harness.prompt("a")
        with pytest.raises(BusyError):
            bench.harness.prompt("b")
        with pytest.raises(BusyError):
            bench.harness.navigate(None)
        await trio.testing.wait_all_tasks_blocked()
        await bench.harness.abort()
        assert bench.texts() == ["a"]


async def test_a_blank_prompt_is_refused(repository: SessionRepository) -> None:
    async with open_bench(repository.create()) as bench:
        with pytest.raises(UsageError):
            bench.harness.prompt(" \n")
        assert not bench.harness.running


async def test_an_abort_during_tools_gives_each_call_one_result(repository: SessionRepository) -> None:
    """AB-01: the next request of the aborted session is whole."""
    calls = [Call("echo"), Call("stuck"), Call("stuck")]
    async with open_bench(repository.create(), calls, "fine") as bench:
        bench.harness.prompt("go")
        await trio.testing.wait_all_tasks_blocked()
        await bench.harness.abort()
        assert bench.kinds().count("toolResult") == 3
        assert bench.kinds()[-3:] == ["toolResult", "step/end", "turn/end"]
        await bench.say("and now?")
        assert bench.requested(1)[-1] == "and now?"
        roles = [message.role for message in bench.model.requests[1].context.messages]
        assert roles == ["user", "assistant", "toolResult", "toolResult", "toolResult", "user"]


async def test_an_abort_before_the_first_word_leaves_no_answer(repository: SessionRepository) -> None:
    """L42"""
    """AB-02"""
    async with open_bench(repository.create(), Hang(), "fine") as bench:
        bench.harness.prompt("go")
        await trio.testing.wait_all_tasks_blocked()
        await bench.harness.abort()
        assert bench.kinds()[-3:] == ["assistant/attempt", "step/end", "turn/end"]
        await bench.say("again")
        assert bench.requested(1) == ["go", "again"]


async def test_what_was_visible_at_an_abort_is_in_the_next_request(repository: SessionRepository) -> None:
    """L42"""
    async with open_bench(repository.create(), ["half an ans", Hang()], "fine") as bench:
        bench.harness.prompt("go")
        await trio.testing.wait_all_tasks_blocked()
        await bench.harness.abort()
        await bench.say("again")
        assert bench.requested(1) == ["go", "half an ans", "again"]


async def test_after_an_abort_the_queue_waits_behind_the_next_prompt(repository: SessionRepository) -> None:
    async with open_bench(repository.create(), Hang(), "1", "2") as bench:
        bench.harness.prompt("a")
        bench.harness.follow_up("queued")
        await trio.testing.wait_all_tasks_blocked()
        await bench.harness.abort()
        assert bench.harness.inbox.summary().follow_up == ("queued",)
        await bench.say("b")
        assert bench.texts() == ["a", "b", "1", "queued", "2"]


async def test_a_missing_key_hands_the_prompt_back(repository: SessionRepository) -> None:
    async def credential(model: Model) -> Credential:
        raise ConfigError("no key")

    async with open_bench(repository.create(), credential=credential) as bench:
        bench.harness.prompt("go")
        with pytest.raises(ConfigError, match="no key"):
            await bench.harness.wait_for_idle()
        (returned,) = [event for event in bench.events if isinstance(event, InputReturned)]
        assert text_of(returned.messages[0].content) == "go"  # type: ignore[union-attr]
        assert not bench.model.requests


async def test_a_passing_failure_is_retried_in_the_open_step(
    repository: SessionRepository, autojump_clock: trio.testing.MockClock
) -> None:
    answers = [Failure("busy", "overloaded"), Failure("slow down", "rate_limit", retry_after=7.0), "fine"]
    async with open_bench(repository.create(), *answers) as bench:
        began = trio.current_time()
        await bench.say("go")
        assert 1.5 + 7.0 <= trio.current_time() - began <= 2.0 + 7.0
        assert bench.kinds().count("step/start") == 1
        assert bench.kinds().count("user") == 1
        assert bench.texts() == ["go", "fine"]
        assert [event.type for event in bench.events if "retry" in event.type] == [
            "auto_retry_start",
            "auto_retry_start",
            "auto_retry_end",
        ]


async def test_a_success_starts_the_count_of_tries_anew(
    repository: SessionRepository, autojump_clock: trio.testing.MockClock
) -> None:
    """RT-03: ten failures in one turn, each passing after one try."""
    busy = Failure("busy", "overloaded")
    answers = [part for n in range(10) for part in (busy, Call("echo", {"n": n}))]
    async with open_bench(repository.create(), *answers, busy, "done") as bench:
        await bench.say("go")
        assert bench.texts()[-1] == "done"
        attempts = [event.attempt for event in bench.events if isinstance(event, AutoRetryStart)]
        assert attempts == [1] * 11


async def test_a_model_that_stays_busy_is_not_changed(
    repository: SessionRepository, autojump_clock: trio.testing.MockClock
) -> None:
    """RT-05: each wait is told once, and the same model is asked every time."""
    busy = Failure("busy", "rate_limit", retry_after=30.0)
    async with open_bench(repository.create(), *[busy] * 4, "late") as bench:
        await bench.say("go")
        assert len({request.model.reference for request in bench.model.requests}) == 1
        assert [each for each in bench.kinds() if each == "model_change"] == ["model_change"]
        told = [event.attempt for event in bench.events if isinstance(event, AutoRetryStart)]
        assert told == [1, 2, 3]


@pytest.mark.parametrize("partial", [["half of "], ["half of ", Call("echo", {"n": 1})]])
async def test_what_a_failed_try_had_said_is_said_once(
    repository: SessionRepository, autojump_clock: trio.testing.MockClock, partial: list[Any]
) -> None:
    """RT-06: also where a whole call had arrived; it runs for the answer that counts, once."""
    broken = [*partial, Failure("connection reset", "transport")]
    whole = ["half of it", Call("echo", {"n": 1})]
    async with open_bench(repository.create(), broken, whole, "done") as bench:
        await bench.say("go")
        assert bench.texts() == ["go", "half of it", "echo 1", "done"]
        assert "half of " not in bench.requested(1)
        assert [event.type for event in bench.events].count("tool_execution_start") == 1


async def test_an_abort_ends_the_wait_for_a_retry(
    repository: SessionRepository, autojump_clock: trio.testing.MockClock
) -> None:
    """RT-04"""
    async with open_bench(repository.create(), Failure("busy", "overloaded"), "never") as bench:
        bench.harness.prompt("go")
        await trio.sleep(1)
        began = trio.current_time()
        await bench.harness.abort()
        assert trio.current_time() == began
        assert len(bench.model.requests) == 1


async def test_an_abort_of_the_second_try_keeps_what_it_had_said(
    repository: SessionRepository, autojump_clock: trio.testing.MockClock
) -> None:
    """RT-04, L42"""
    answers = [Failure("busy", "overloaded"), ["Half", Hang()]]
    async with open_bench(repository.create(), *answers) as bench:
        bench.harness.prompt("go")
        await trio.sleep(5)
        await bench.harness.abort()
        assert bench.texts() == ["go", "Half"]
        assert bench.harness.conversation.transcript[-1].stop_reason == "aborted"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("failure", "retries"),
    [
        (Failure("bad key", "auth"), 0),
        (Failure("come back in an hour", "rate_limit", retry_after=3600.0), 0),
        (Failure("busy", "overloaded"), 3),
    ],
)
async def test_a_failure_that_stays_ends_the_turn(
    repository: SessionRepository,
    autojump_clock: trio.testing.MockClock,
    failure: Failure,
    retries: int,
) -> None:
    """RT-02: a wait that is too long is not waited for."""
    async with open_bench(repository.create(), *[failure] * 5) as bench:
        await bench.say("go")
        assert len(bench.model.requests) == 1 + retries
        last = bench.said()[-1]
        assert (last.role, last.stop_reason) == ("assistant", "error")  # type: ignore[union-attr]
        assert bench.texts() == ["go"]
        assert bench.kinds()[-3:] == ["assistant", "step/end", "turn/end"]


async def test_a_disk_that_refuses_stops_before_the_request(
    repository: SessionRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SF-08: no request goes out and no tool starts unless everything so far is written."""
    session = repository.create()
    async with open_bench(session, "one", "two") as bench:
        await bench.say("a")
        saved = session.path.read_bytes()  # type: ignore[union-attr]

        def full(entry: Any) -> Any:
            raise StorageError("disk full")

        monkeypatch.setattr(session, "append", full)
        with pytest.raises(StorageError, match="disk full"):
            bench.harness.prompt("b")
        assert not bench.harness.running
        assert len(bench.model.requests) == 1
        assert session.path.read_bytes() == saved  # type: ignore[union-attr]
        monkeypatch.undo()
        await bench.say("c")
        assert bench.texts() == ["a", "one", "c", "two"]


async def test_moving_the_leaf_changes_what_the_next_request_sees(repository: SessionRepository) -> None:
    async with open_bench(repository.create(), "one", "two", "other") as bench:
        await bench.say("a")
        await bench.say("b")
        first_answer = next(head.id for head in bench.session.heads if head.detail == "assistant")
        bench.harness.navigate(first_answer)
        assert bench.texts() == ["a", "one"]
        await bench.say("c")
        assert bench.requested(2) == ["a", "one", "c"]


async def test_listeners_may_answer_the_settled_event_with_a_prompt(repository: SessionRepository) -> None:
    async with open_bench(repository.create(), "one", "two") as bench:
        prompts = iter(["b"])

        def go_on(event: AgentEvent) -> None:
            if event.type == "agent_settled":
                for text in prompts:
                    bench.harness.prompt(text)

        bench.harness.hub.subscribe(go_on)
        await bench.say("a")
        await bench.harness.wait_for_idle()
        assert bench.texts() == ["a", "one", "b", "two"]


async def test_what_is_sent_is_what_a_reopened_session_would_send(repository: SessionRepository) -> None:
    """Custom entries with a projector, images that nobody takes, answers that failed."""
    session = repository.create()
    broken = ImageContent("AAAA", "image/png")

    def project(opened: Session) -> None:
        opened.project("todo", lambda entry: [UserMessage(f"to do: {entry.data}", timestamp=1)] * 2)

    project(session)
    failure = Failure("bad key", "auth")
    async with open_bench(session, Call("record"), "one", failure, "two", tools=[]) as bench:

        async def record(call_id: str, args: Any, on_update: Any) -> ToolResult:
            bench.harness.record(CustomEntry("todo", "milk"))
            return ToolResult("recorded")

        tool = Tool(name="record", description="record", parameters={"type": "object"}, execute=record)
        bench.harness.options = attrs.evolve(bench.harness.options, tools=(tool,))
        bench.harness.prompt("a", [broken])
        await bench.harness.wait_for_idle()
        assert bench.requested(1)[2:] == ["recorded", "to do: milk", "to do: milk"]
        await bench.say("b")
        bench.harness.record(CustomEntry("todo", "eggs"))
        await bench.say("c")
        sent = bench.model.requests[-1].context.messages
    reopened = repository.open(str(session.path))
    project(reopened)
    messages = reopened.build_context().messages
    assert convert_messages(messages[:-1]) == list(sent)
    assert "[An image was left out here: its data is damaged]" in text_of(sent[0].content)
    shown = [node.message for node in surface_of(reopened).nodes if node.message is not None]
    assert sorted(map(str, shown)) == sorted(map(str, messages)), "in the order of the file"
    plan = make_plan(reopened, keep=1, size=100)
    assert isinstance(plan, Plan)
    assert text_of(plan.covered[3].content) == "to do: milk"
    reopened.close()


# ------------------------------------------------------------------ which tools are offered


def offered(bench, number: int) -> list[str]:
    return [tool.name for tool in bench.model.requests[number].context.tools]


async def test_added_tools_are_offered_from_the_next_request_on_and_in_the_next_life(
    repository: SessionRepository,
) -> None:
    """F: the branch keeps the choice, once, and only of tools that there are."""
    session = repository.create()

    async def find(call_id: str, args: Any, on_update: Any) -> ToolResult:
        return ToolResult("found", added_tool_names=["stuck", "unheard of", "find"])

    tool = Tool(name="find", description="", parameters={"type": "object"}, execute=find)
    options = {"tools": (tool, *TOOLS), "active_tool_names": ("find",)}
    async with open_bench(session, Call("find"), Call("find"), "done", **options) as bench:
        await bench.say("go")
        assert [offered(bench, number) for number in range(3)] == [["find"], *[["find", "stuck"]] * 2]
        assert bench.kinds().count("active_tools_change") == 1
    session.close()
    async with open_bench(repository.open(str(session.path)), "again", **options) as bench:
        await bench.say("more")
        assert offered(bench, 0) == ["find", "stuck"]


async def test_a_branch_that_chose_no_tools_goes_by_the_options(repository: SessionRepository) -> None:
    """D: leaving the branch leaves its choice."""
    async with open_bench(repository.create(), *"abcd") as bench:
        await bench.say("first")
        start = bench.harness.session.get_leaf_id()
        bench.harness.set_active_tools(["echo", "echo"])
        await bench.say("second")
        bench.harness.set_active_tools([])
        await bench.say("third")
        bench.harness.navigate(start)
        await bench.say("elsewhere")
        assert [offered(bench, number) for number in range(4)] == [
            ["echo", "stuck"],
            ["echo"],
            [],
            ["echo", "stuck"],
        ]
        with pytest.raises(UsageError, match="there is no tool 'unheard of'; there are: echo, stuck"):
            bench.harness.set_active_tools(["unheard of"])


# ------------------------------------------------------------------ what a request is made of


async def test_a_prompt_is_patched_as_a_whole(repository: SessionRepository) -> None:
    """L31: what is emptied and what is rewritten are one entry, so no request sees one without the other."""
    said = {"preamble": "Be brief.", "rules": "No tables."}
    async with open_bench(repository.create(), "1", "2", sections=lambda tools: dict(said)) as bench:
        await bench.say("a")
        said.pop("rules")
        said["preamble"] = "Be thorough."
        await bench.say("b")
        *_, patch = [
            bench.session.entry(head.id).message for head in bench.session.heads if head.detail == "system"
        ]
        assert patch.sections == {"preamble": "Be thorough.", "rules": None}
        assert [each.context.system_prompt for each in bench.model.requests] == [
            "Be brief.\n\nNo tables.",
            "Be thorough.",
        ]


async def test_each_attempt_is_prepared_anew(repository: SessionRepository, autojump_clock) -> None:
    """L36: no prepared request is sent twice, and none changes once it is sent."""
    busy = Failure("busy", "overloaded")
    async with open_bench(repository.create(), busy, busy, "fine") as bench:
        prepared = []

        async def request(context, following):
            decided = attrs.evolve(
                await following(context), thinking_level=("low", "high", "off")[len(prepared)]
            )
            prepared.append(decided)
            return decided

        bench.harness.on(REQUEST, request)
        await bench.say("go")
        assert [each.options.thinking_level for each in bench.model.requests] == ["low", "high", "off"]
        assert len({id(each.options) for each in bench.model.requests}) == len(prepared) == 3


async def test_what_is_done_with_what_waits_is_told_while_nothing_runs(
    repository: SessionRepository,
) -> None:
    """Other screens show the same session."""
    async with open_bench(repository.create(), Hang()) as bench:
        harness = bench.harness

        async def told() -> tuple[str, ...]:
            await trio.testing.wait_all_tasks_blocked()
            return next(event.follow_up for event in reversed(bench.events) if isinstance(event, QueueUpdate))

        harness.prompt("go")
        await trio.testing.wait_all_tasks_blocked()
        for text in ("a", "b", "c"):
            harness.follow_up(text)
        await harness.abort()
        assert await told() == ("a", "b", "c")
        ids = harness.inbox.summary().follow_up_ids
        assert not harness.busy
        harness.remove_queued(ids[0])
        assert await told() == ("b", "c")
        harness.move_queued(ids[1], 1)
        assert await told() == ("c", "b")
        harness.edit_queued(ids[1], "B")
        assert await told() == ("c", "B")
        harness.clear_queue()
        assert await told() == ()
