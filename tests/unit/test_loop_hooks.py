"""What breaks: a hook, a listener, a stream or a tool that raises never leaves half a run."""

from __future__ import annotations

from contextlib import asynccontextmanager
from itertools import count, product

import pytest
import trio
import trio.testing

from pi_trio.agent_driver import AgentDriver
from pi_trio.errors import BusyError, StorageError, UsageError
from pi_trio.events import InputReturned
from pi_trio.loop.hooks import Hooks
from pi_trio.messages import text_of
from pi_trio.testing import Call, Text
from pi_trio.tool import ToolResult

RUN_HOOKS = [
    *["transform_context", "convert_to_llm", "prepare_request", "finish_turn"],
    *["prepare_next_turn", "prepare_next_turn_with_context", "should_stop_after_turn"],
    *["get_steering_messages", "get_follow_up_messages"],
]
EVENTS = [
    *["agent_start", "turn_start", "message_start", "message_update", "message_end", "turn_end"],
    *["tool_execution_start", "tool_execution_update", "tool_execution_end", "agent_end", "agent_settled"],
]


class BrokenError(Exception):
    """Raised by what is broken on purpose."""


async def broken(*_anything):
    raise BrokenError("on purpose") from KeyError("the cause")


async def noisy(call_id, args, on_update) -> ToolResult:
    await on_update(ToolResult("half"))
    return ToolResult("done")


async def fails_and_recovers(play, failing: str = "broken") -> None:
    """The subscriber's channel ends, the caller has the exception, and the next prompt works."""
    told = []

    async def read(events) -> None:
        told.extend([event.type async for event in events])

    with trio.fail_after(5):
        async with play.agent.open_events() as events, trio.open_nursery() as nursery:
            nursery.start_soon(read, events)
            with pytest.raises(BrokenError, match="on purpose") as raised:
                await play.agent.prompt("Go")
    assert failing in [each.name for each in raised.traceback]
    assert isinstance(raised.value.__cause__, KeyError)
    assert told[-1] == "agent_settled"
    assert not play.heard.events[-1].aborted
    play.check()
    play.agent.hooks = Hooks()
    play.model.add("Fine")
    before = len(play.model.requests)
    await play.agent.prompt("again")
    assert len(play.model.requests) > before
    assert play.agent.messages[-1].stop_reason == "stop"


# ------------------------------------------------------------------ hooks


@pytest.mark.parametrize("name", RUN_HOOKS)
async def test_a_hook_that_raises_ends_the_run(stage, name) -> None:
    play = stage([Text.of("Hm"), Call("work")], "Done", "Fine", hooks=Hooks(**{name: broken}))
    await fails_and_recovers(play)
    errors = [each for each in play.agent.messages if getattr(each, "stop_reason", "") == "error"]
    assert [each.error_message for each in errors] == ["BrokenError: on purpose"]


@pytest.mark.parametrize("name", ["before_tool_call", "after_tool_call"])
async def test_a_hook_of_a_call_only_fails_its_call(stage, name) -> None:
    """F29."""
    play = stage([Call("work"), Call("work")], "Done", hooks=Hooks(**{name: broken}))
    await play.agent.prompt("Go")
    assert [(each.is_error, text_of(each.content)) for each in play.results] == [(True, "on purpose")] * 2
    assert play.agent.messages[-1].text == "Done"


async def test_a_key_that_cannot_be_found_ends_the_run(stage) -> None:
    play = stage("Done", get_api_key=broken)
    with pytest.raises(BrokenError):
        await play.agent.prompt("Go")
    assert play.model.requests == []


# ------------------------------------------------------------------ listeners


@pytest.mark.parametrize(
    ("kind", "nth"),
    [(kind, nth) for kind, nth in product(EVENTS, (1, 2, 3)) if nth == 1 or "agent" not in kind],
)
async def test_a_listener_that_raises_ends_the_run(stage, tool, kind, nth) -> None:
    """Whichever event it is, and if it is the answer itself."""
    left = [nth]

    async def listener(event) -> None:
        if event.type == kind:
            left[0] -= 1
            if left[0] == 0:
                unsubscribe()
                await broken()

    answers = [[Text.of("Hm"), Call("noisy"), Call("noisy"), Call("noisy")], "Done", "And", "So", "Fine"]
    play = stage(*answers, tools=[tool("noisy", noisy, execution_mode="sequential")])
    play.agent.follow_up("And?")
    play.agent.follow_up("So?")
    unsubscribe = play.agent.subscribe(listener)
    await fails_and_recovers(play)


async def test_a_listener_that_always_raises_leaves_a_legal_run(stage, tool) -> None:
    """Every other listener hears all of it; the first failure is in the context of the last."""
    play = stage([Text.of("Hm"), Call("noisy")], tools=[tool("noisy", noisy)], listener=broken)
    with pytest.raises(BrokenError) as raised:
        await play.agent.prompt("Go")
    assert play.heard.word[0] == "agent_start"
    assert play.heard.word[-1] == "agent_settled"
    assert isinstance(raised.value.__context__, BrokenError)


@pytest.mark.parametrize(("kind", "refusal"), [("message_update", BusyError), ("agent_settled", UsageError)])
async def test_a_listener_cannot_wait_for_a_run(stage, kind, refusal) -> None:
    """It would wait for itself. The refusal is raised like any other failure of a listener."""

    async def eager(event) -> None:
        if event.type == kind:
            await play.agent.prompt("And another thing")

    play = stage("Hi", listener=eager)
    with pytest.raises(refusal):
        await play.agent.prompt("Go")
    assert play.said() == ["Go"]


async def test_a_listener_may_start_the_next_run(stage, nursery) -> None:
    play = stage("Hi", "Ho")
    play.on("agent_settled", lambda: nursery.start_soon(play.agent.prompt, "And another thing"))
    await play.agent.prompt("Go")
    await trio.testing.wait_all_tasks_blocked()
    assert play.said("assistant") == ["Hi", "Ho"]


# ------------------------------------------------------------------ streams and tools


@pytest.mark.parametrize("before", [[], [Text.of("Half")], [Call("work")]])
async def test_a_stream_that_raises_ends_the_run(stage, before) -> None:
    """A15: before its first event or after."""
    error = BrokenError("on purpose")
    error.__cause__ = KeyError("the cause")
    await fails_and_recovers(stage([*before, error]), failing="_play")


async def test_a_stream_that_cannot_be_opened_ends_the_run(stage) -> None:
    @asynccontextmanager
    async def closed(*_request):
        await broken()
        yield

    play = stage()
    model, play.agent.stream_fn = play.agent.stream_fn, closed
    play.on("agent_settled", lambda: setattr(play.agent, "stream_fn", model))
    await fails_and_recovers(play)


async def test_a_tool_that_raises_is_a_result(stage, tool) -> None:
    """C32."""
    play = stage([Call("broken"), Call("work", id="ok")], "Done", tools=[tool("broken", broken)])
    await play.agent.prompt("Go")
    assert [text_of(each.content) for each in play.results] == ["on purpose", "ok"]


async def test_more_than_an_exception_passes_through_plainly(stage, tool) -> None:
    """An interrupt in a tool is nobody's result; the log is whole all the same."""

    async def body(call_id, args, on_update):
        raise KeyboardInterrupt

    play = stage([Call("stop"), Call("work")], tools=[tool("stop", body)])
    with pytest.raises(KeyboardInterrupt):
        await play.agent.prompt("Go")
    assert len(play.results) == 2


# ------------------------------------------------------------------ what cannot be written


@pytest.mark.parametrize("later", [False, True])
async def test_a_commit_that_fails_ends_the_run(stage, tool, monkeypatch, later) -> None:
    """Whichever it is, and whether the disk is full for good: legal events, and no input lost."""
    commit = AgentDriver.commit
    for n in count():
        left = [n]

        def failing(driver, *records, left=left) -> None:
            left[0] -= 1
            if left[0] == -1 or (later and left[0] < 0):
                raise StorageError("disk full")
            commit(driver, *records)

        monkeypatch.setattr(AgentDriver, "commit", failing)
        play = stage([Text.of("Hm"), Call("noisy"), Call("work")], "Done", tools=[tool("noisy", noisy)])
        try:
            await play.agent.prompt("Go")
        except StorageError:
            pass
        else:
            assert n > 10
            return
        play.heard.check()
        returned = [
            text_of(each.content) for event in play.heard.of(InputReturned) for each in event.messages
        ]
        assert [*play.said(), *returned] == ["Go"]
        play.agent.messages = ()  # results that were not written are missing in it
