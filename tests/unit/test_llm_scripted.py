"""The scripted model, and the playback under it."""

from __future__ import annotations

import math

import pytest
import trio
import trio.testing

from pi_trio.llm.playback import Playback
from pi_trio.llm.protocol import Context, Done, Failed, Failure, StreamOptions, StreamStart, TextDelta
from pi_trio.messages import Usage, UserMessage
from pi_trio.testing import Call, Hang, Pause, ScriptedModel, Stop, Text, Think


async def ask(model: ScriptedModel, context: Context | None = None, seen: list | None = None) -> list:
    """The events of one answer; `seen` has them even if the stream ends badly."""
    seen = [] if seen is None else seen
    async with model(model.model, context or Context(), StreamOptions()) as events:
        while True:
            try:
                seen.append(await events.receive())
            except trio.EndOfChannel:
                return seen


async def test_answers_come_in_order_and_requests_are_recorded() -> None:
    model = ScriptedModel(["one", [Think.of("h", "m"), Text.of("t", "w", "o"), Call("read", {"path": "a"})]])
    context = Context("", (UserMessage("hi"),))
    [*_, first] = await ask(model, context)
    [*events, second] = await ask(model)
    assert (first.message.text, first.reason) == ("one", "stop")
    assert (second.message.text, second.reason) == ("two", "toolUse")
    assert second.message.tool_calls[0].arguments == {"path": "a"}
    assert [event.delta for event in events if isinstance(event, TextDelta)] == ["t", "w", "o"]
    assert [request.context for request in model.requests] == [context, Context()]
    assert model.requests[0].model is model.model


async def test_ids_of_calls_differ_between_answers() -> None:
    model = ScriptedModel([[Call("a"), Call("b")], Call("c"), Call("d", "{", id="mine")])
    ids = [call.id for _ in range(3) for call in (await ask(model))[-1].message.tool_calls]
    assert len(set(ids)) == 4
    assert ids[-1] == "mine"


async def test_broken_arguments_usage_and_stop_reason() -> None:
    model = ScriptedModel([[Call("a", '{"x'), Usage(input=7), Stop("length")]])
    message = (await ask(model))[-1].message
    assert message.tool_calls[0].arguments_error is not None
    assert (message.usage.input, message.stop_reason) == (7, "length")


async def test_failure_ends_the_answer() -> None:
    failed = (await ask(ScriptedModel([["half", Failure("no", "overloaded"), "never"]])))[-1]
    assert isinstance(failed, Failed)
    assert (failed.failure.code, failed.message.text) == ("overloaded", "half")


async def test_exception_reaches_the_reader() -> None:
    model = ScriptedModel([["half", ValueError("odd")]])
    seen: list = []
    with pytest.raises(ValueError, match="odd"):
        await ask(model, seen=seen)
    assert seen[-1] == TextDelta(0, "half")


async def test_script_that_ran_out_fails() -> None:
    model = ScriptedModel()
    assert (await ask(model))[-1].failure.code == "configuration"
    model.add("more")
    assert (await ask(model))[-1].message.text == "more"


async def test_pauses_pass_on_the_clock_of_trio(autojump_clock: trio.testing.MockClock) -> None:
    model = ScriptedModel([["a", Pause(60), "b"]])
    began = trio.current_time()
    assert (await ask(model))[-1].message.text == "ab"
    assert trio.current_time() - began == pytest.approx(60)


async def test_hang_ends_with_the_reader(autojump_clock: trio.testing.MockClock) -> None:
    model = ScriptedModel([["a", Hang()]])
    seen: list = []
    with trio.move_on_after(5) as scope:
        await ask(model, seen=seen)
    assert scope.cancelled_caught
    assert seen[-1] == TextDelta(0, "a")


async def test_cancelled_pause_loses_no_event(autojump_clock: trio.testing.MockClock) -> None:
    async with Playback([[StreamStart()], 10.0, [TextDelta(0, "x")]]) as events:
        assert await events.receive() == StreamStart()
        with trio.move_on_after(1):
            await events.receive()
        assert await events.receive() == TextDelta(0, "x")
        with pytest.raises(trio.EndOfChannel):
            await events.receive()


async def test_closed_playback_is_over() -> None:
    async with Playback([[StreamStart()], math.inf]) as events:
        await events.aclose()
        assert [event async for event in events] == []


async def test_request_can_be_counted_without_being_kept() -> None:
    model = ScriptedModel(["a", "b"], record=False)
    assert isinstance((await ask(model))[-1], Done)
    assert (model.request_count, model.requests) == (1, [])
