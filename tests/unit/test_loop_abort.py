"""Stopping a run, from anywhere and at any moment: over at once, and whole afterwards."""

from __future__ import annotations

import threading
from contextlib import asynccontextmanager
from itertools import count

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from pi_trio.events import InputReturned, TurnEnd
from pi_trio.loop.abandon import abandoned
from pi_trio.loop.hooks import Hooks
from pi_trio.messages import ThinkingContent, UserMessage, text_of
from pi_trio.testing import Call, Hang, Pause, Recorder, Text, Think
from pi_trio.tool import ToolResult

HOOKS = [
    *["transform_context", "convert_to_llm", "before_tool_call", "after_tool_call", "prepare_request"],
    *["finish_turn", "prepare_next_turn", "should_stop_after_turn"],
    *["get_steering_messages", "get_follow_up_messages"],
]
EVENTS = [
    *["agent_start", "turn_start", "message_start", "message_update", "message_end", "turn_end", "agent_end"],
    *["tool_execution_start", "tool_execution_update", "tool_execution_end"],
]
NO_HOOKS = Hooks()
UNDECIDED = {"transform_context": list, "convert_to_llm": list, "should_stop_after_turn": lambda *_: False}
INPUT = {"get_steering_messages": lambda: (), "get_follow_up_messages": lambda: ()}


def hook_that(acts, name: str) -> Hooks:
    """Hooks of which one acts, and then decides nothing."""

    async def hook(*context):
        await acts()
        return (UNDECIDED | INPUT).get(name, lambda *_: None)(*context)

    return Hooks(**{name: hook})


def three(seconds: float = 1.0) -> list[Call]:
    return [Call("work", {"seconds": seconds}, id=name) for name in "abc"]


# ------------------------------------------------------------------ in the middle of tools


@pytest.mark.parametrize("outside", [False, True])
async def test_three_tools_stop_when_told_to(stage, autojump_clock, outside) -> None:
    """AB-01, L69: by `abort`, or by the scope around the call; over at that moment."""
    play = stage(three(), "never asked for")
    play.agent.follow_up("later")
    began = trio.current_time()
    with trio.CancelScope() as scope:
        if outside:
            scope.deadline = began + 0.3
        async with trio.open_nursery() as nursery:
            nursery.start_soon(play.agent.prompt, "Go")
            if not outside:
                await trio.sleep(0.3)
                play.agent.abort()
    assert trio.current_time() - began == 0.3
    assert scope.cancelled_caught == outside
    assert play.codes == ["aborted"] * 3
    assert len(play.model.requests) == 1
    assert len(play.agent.follow_up_queue) == 1
    assert play.heard.word[-3:] == ["turn_end", "agent_end", "agent_settled"]
    assert play.heard.events[-1].aborted
    play.agent.clear_all_queues()
    await play.agent.prompt("again")
    assert len(play.request(1)) == 6


async def test_calls_that_waited_for_a_worker_never_start(stage, autojump_clock) -> None:
    """L69, F28: each has a result all the same, and its own start and end."""
    play = stage([*three(), Call("unheard of", id="d")], max_parallel_tool_calls=1)
    with trio.move_on_after(1.5):
        await play.agent.prompt("Go")
    assert play.codes == [None, "aborted", *["aborted_before_start"] * 2]
    assert play.trace == ["begin a", "end a", "begin b", "cancelled b"]
    assert play.heard.word.count("tool_execution_start") == 4


async def test_a_call_at_the_gate_was_never_started(stage, autojump_clock) -> None:
    """The user says no by stopping: nothing was done."""
    play = stage(three(), hooks=hook_that(trio.sleep_forever, "before_tool_call"))
    with trio.move_on_after(1):
        await play.agent.prompt("Go")
    assert play.codes == ["aborted_before_start"] * 3
    assert play.trace == []


async def test_post_hooks_still_see_what_was_stopped(stage, autojump_clock) -> None:
    seen = []

    async def after(context):
        await trio.sleep(0.1)
        seen.append(context.tool_call.id)

    play = stage(three(), hooks=Hooks(after_tool_call=after))
    with trio.move_on_after(0.5):
        await play.agent.prompt("Go")
    assert seen == ["a", "b", "c"]
    assert play.codes == ["aborted"] * 3


def stubborn_tool(tool, seconds=10, **settings):
    """A tool that does not heed its cancellation, as one that blocks in a thread."""

    async def stubborn(call_id, args, on_update):
        with trio.CancelScope(shield=True):
            await trio.sleep(seconds)
        await on_update(ToolResult("far too late"))
        return ToolResult("done after all")

    return tool("stubborn", stubborn, **settings)


@pytest.mark.parametrize("outside", [False, True])
async def test_a_body_that_ignores_the_abort_is_left_behind(stage, tool, autojump_clock, outside) -> None:
    """AB-03: the run is over when the grace is, and the next prompt is taken."""
    play = stage([Call("stubborn"), Call("stubborn")], "Done", tools=[stubborn_tool(tool)])
    await stopped_within(2, play, outside)
    assert play.codes == ["aborted", "aborted"]
    assert all("left behind" in text_of(each.content) for each in play.results)
    assert abandoned() == ("stubborn, stubborn",)
    await play.agent.prompt("And now?")
    assert accounted(play) == ["And now?", "Go"]
    told = len(play.heard.events)
    await trio.sleep(10)
    assert abandoned() == ()
    assert len(play.heard.events) == told, "what is left behind reports to nobody"


async def test_a_thread_that_blocks_does_not_hold_the_run(stage, tool) -> None:
    """AB-03, with a real thread: it is let go only when the run is long over."""
    release = threading.Event()

    def block() -> None:
        trio.from_thread.run_sync(play.agent.abort)
        release.wait()

    async def blocking(call_id, args, on_update):
        await trio.to_thread.run_sync(block)
        return ToolResult("done after all")

    play = stage(Call("block"), tools=[tool("block", blocking)], abort_grace=0.01)
    await play.agent.prompt("Go")
    assert play.codes == ["aborted"]
    assert abandoned() == ("block",)
    release.set()  # or this test's own `trio.run` would wait for it


async def test_a_gate_that_ignores_the_abort_starts_nothing(stage, autojump_clock) -> None:
    """AB-03: not even when it lets the call pass in the end."""

    async def stubborn(context):
        with trio.CancelScope(shield=True):
            await trio.sleep(10)

    play = stage(three(), hooks=Hooks(before_tool_call=stubborn))
    with trio.move_on_after(1):
        await play.agent.prompt("Go")
    assert play.codes == ["aborted_before_start"] * 3
    assert play.trace == []


async def test_a_body_that_finishes_while_it_is_stopped_keeps_its_result(stage, tool, autojump_clock) -> None:
    async def saving(call_id, args, on_update):
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            return ToolResult("saved")

    play = stage(Call("save"), tools=[tool("save", saving)])
    with trio.move_on_after(1):
        await play.agent.prompt("Go")
    assert [text_of(each.content) for each in play.results] == ["saved"]


# ------------------------------------------------------------------ in the middle of an answer


@pytest.mark.parametrize(
    ("shown", "kept"),
    [
        ([], None),
        ([Text.of(" ")], None),
        ([Text.of("Once")], "Once"),
        ([Text.of("Once"), Call("work")], "Once"),
        ([Call("work")], None),
    ],
)
async def test_only_visible_text_of_a_stopped_answer_stays(stage, autojump_clock, shown, kept) -> None:
    """A16, F16, AB-02: no empty answer is stored or sent; its calls never started."""
    play = stage([*shown, Hang()], "Hi")
    with trio.move_on_after(0.05):
        await play.agent.prompt("Go")
    assert play.said("assistant") == ([kept] if kept else [])
    (end,) = play.heard.of(TurnEnd)
    assert (end.message.stop_reason, end.message.tool_calls, end.tool_results) == ("aborted", (), ())
    await play.agent.prompt("again")
    assert play.request(1) == ["Go", *([kept] if kept else []), "again"]


async def test_the_stream_is_closed_at_the_abort(stage, autojump_clock) -> None:
    """AB-04: whoever provides it can hang up at once."""
    play, closed = stage([Text.of("Once"), Hang()]), []
    model = play.agent.stream_fn

    @asynccontextmanager
    async def watched(*request):
        try:
            async with model(*request) as events:
                yield events
        finally:
            closed.append(trio.current_time())

    play.agent.stream_fn = watched
    began = trio.current_time()
    with trio.move_on_after(0.3):
        await play.agent.prompt("Go")
    assert [each - began for each in closed] == [0.3]


async def test_an_attempt_that_came_to_nothing_is_recorded(stage, facts, autojump_clock) -> None:
    """A15, AB-02: as a fact, since no message is kept of it; brackets are closed."""
    play = stage(Hang())
    with trio.move_on_after(0.05):
        await play.agent.prompt("Go")
    assert [each.name for each in facts] == ["step/start", "assistant/attempt", "step/end"]
    assert facts[1].data["outcome"] == "aborted"
    assert play.agent.messages[1:] == ()


async def test_stopped_thinking_is_stored_and_not_sent(stage, autojump_clock) -> None:
    """AB-02."""
    play = stage([Think.of("Let me see"), Hang()], "Hi")
    with trio.move_on_after(0.05):
        await play.agent.prompt("Go")
    assert play.agent.messages[-1].content == (ThinkingContent("Let me see"),)
    await play.agent.prompt("again")
    assert play.request(1) == ["Go", "again"]


# ------------------------------------------------------------------ from within


@pytest.mark.parametrize("kind", EVENTS)
async def test_a_listener_may_stop_the_run_at_any_event(stage, kind, tool) -> None:
    """No request follows, no body starts, queues stay as they are."""

    async def noisy(call_id, args, on_update):
        await on_update(ToolResult("half"))
        await trio.lowlevel.checkpoint()
        return ToolResult("done")

    play = stage([Text.of("Hm"), Call("noisy"), Call("work")], "Done", tools=[tool("noisy", noisy)])
    at_abort = []

    def stop() -> None:
        at_abort.append((len(play.model.requests), len(play.trace)))
        play.agent.abort()

    play.agent.follow_up("later")
    play.on(kind, lambda: play.agent.steer("now"))
    play.on(kind, stop)
    await play.agent.prompt("Go")
    requests, _ = at_abort[0]
    assert play.heard.events[-1].aborted
    assert accounted(play) == ["Go", "later", "now"]
    if kind != "agent_end":
        assert len(play.model.requests) == requests
        assert len(play.agent.follow_up_queue) == 1
    if kind in ("message_end", "tool_execution_start"):
        assert play.trace == []


@pytest.mark.parametrize("name", HOOKS)
async def test_a_hook_may_stop_the_run(stage, name) -> None:
    """It is still asked to the end; then nothing more happens."""
    at_abort = []

    async def stop() -> None:
        at_abort.append((len(play.model.requests), list(play.trace)))
        play.agent.abort()

    play = stage(Call("work"), "Done", "More", hooks=hook_that(stop, name))
    play.agent.follow_up("later")
    await play.agent.prompt("Go")
    requests, trace = at_abort[0]
    assert (len(play.model.requests), play.trace) == (requests, trace)
    assert play.heard.events[-1].aborted
    assert accounted(play) == ["Go", "later"]


async def test_a_tool_may_stop_the_run(stage, tool) -> None:
    async def body(call_id, args, on_update):
        play.agent.abort()
        await trio.lowlevel.checkpoint()
        raise AssertionError

    play = stage([Call("stop", id="0"), Call("work", id="1")], tools=[tool("stop", body)])
    await play.agent.prompt("Go")
    assert play.codes[0] == "aborted"
    assert play.codes[1] in ("aborted", "aborted_before_start")


async def test_stopping_often_is_stopping_once(stage, autojump_clock) -> None:
    """AB-06: and an idle agent does not mind."""
    play = stage([Text.of("Once"), Hang()], "Hi")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(play.agent.prompt, "Go")
        await wait_all_tasks_blocked()
        for _ in range(50):
            play.agent.abort()
    for _ in range(50):
        play.agent.abort()
    await play.agent.prompt("again")
    assert play.said("assistant") == ["Once", "Hi"]


# ------------------------------------------------------------------ input that was claimed


@pytest.mark.parametrize("name", ["prepare_request", "get_steering_messages"])
async def test_input_that_was_not_used_is_handed_back(stage, autojump_clock, name) -> None:
    """QS-01: a prompt by an event, queued input by standing where it stood."""
    play = stage(hooks=hook_that(trio.sleep_forever, name), steering_mode="all")
    for text in "ab":
        play.agent.steer(text)
    play.agent.next_turn("parked")
    with trio.move_on_after(1):
        await play.agent.prompt([UserMessage.of("one"), UserMessage.of("two")])
    (returned,) = play.heard.of(InputReturned)
    assert [text_of(each.content) for each in returned.messages] == ["one", "two"]
    assert [text_of(each.message.content) for each in play.agent.steering_queue] == ["a", "b"]
    assert play.agent.messages == ()
    play.agent.hooks = Hooks()
    play.model.add("Hi")
    await play.agent.prompt("again")
    assert play.said() == ["a", "b", "parked", "again"]


async def test_input_is_handed_back_when_the_start_itself_hangs(stage, autojump_clock) -> None:
    async def hang(event) -> None:
        if event.type == "agent_start":
            await trio.sleep_forever()

    play = stage(listener=hang)
    with trio.move_on_after(1):
        await play.agent.prompt("Go")
    assert [text_of(each.content) for each in play.heard.of(InputReturned)[0].messages] == ["Go"]


@pytest.mark.parametrize("delay", [0, 0.001, 0.002, 0.003, 0.01])
async def test_steering_just_before_an_abort_is_used_or_kept(stage, autojump_clock, delay) -> None:
    """QS-01, QS-02."""

    async def slow_hook(context):
        await trio.sleep(0.002)

    play = stage(Call("work", {"seconds": 1}), [Pause(0.001), "Done"], hooks=Hooks(prepare_request=slow_hook))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(play.agent.prompt, "Go")
        await trio.sleep(1)
        play.agent.steer("A")
        await trio.sleep(delay)
        play.agent.abort()
    assert accounted(play) == ["A", "Go"]


# ------------------------------------------------------------------ what hangs


@pytest.mark.parametrize("outside", [False, True])
@pytest.mark.parametrize("kind", [*EVENTS, "agent_settled"])
async def test_a_listener_that_hangs_is_cut_off(stage, autojump_clock, kind, outside) -> None:
    """AB-03: after the grace at the latest; listeners behind it, and outboxes, miss nothing."""

    async def hang(event) -> None:
        if event.type == kind:
            await trio.sleep_forever()

    play = stage([Text.of("Hm"), *three()], "Done", listener=hang)
    if kind == "agent_settled" and not outside:
        return  # the run is over: there is nothing left to abort
    await stopped_within(3, play, outside)


@pytest.mark.parametrize("outside", [False, True])
@pytest.mark.parametrize("name", HOOKS)
async def test_a_hook_that_hangs_is_cut_off(stage, autojump_clock, name, outside) -> None:
    """AB-03."""
    play = stage([Text.of("Hm"), *three()], "Done", hooks=hook_that(trio.sleep_forever, name))
    await stopped_within(3, play, outside)


async def test_the_grace_is_the_agents_setting(stage, autojump_clock) -> None:
    hooks = hook_that(trio.sleep_forever, "after_tool_call")
    play = stage(three(0.1), hooks=hooks, abort_grace=0.25)
    began = trio.current_time()
    with trio.move_on_after(1):
        await play.agent.prompt("Go")
    assert trio.current_time() - began == 1.25


async def stopped_within(seconds: float, play, outside: bool) -> None:
    """Stop the run when it has hung for a while: 5 s are more than it needs to get there."""
    began = trio.current_time()
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(play.agent.prompt, "Go")
            await trio.sleep(5)
            scope.cancel() if outside else play.agent.abort()
    assert trio.current_time() - began <= 5 + seconds
    assert accounted(play) == ["Go"]


# ------------------------------------------------------------------ at every moment


class Nth(trio.abc.Instrument):
    """Acts just before step number `n` of all tasks."""

    def __init__(self, n: int, act) -> None:
        self._left = n
        self._act = act

    def before_task_step(self, task) -> None:
        self._left -= 1
        if self._left == 0:
            self._act()


async def alone_body(call_id, args, on_update):
    await on_update(ToolResult("half"))
    await trio.sleep(0.05)
    return ToolResult("done")


async def pausing(*_context):
    await trio.sleep(0.01)


async def pausing_input():
    await trio.sleep(0.01)
    return ()


def sweep(stage, tool, facts, *, outside: bool, listener=None, hooks=NO_HOOKS) -> int:
    """Run one script, stopped at step 1, 2, 3, … until it is over before it could be stopped."""
    alone = tool("alone", alone_body, execution_mode="sequential")
    for n in count(1):
        reached = []
        facts.clear()

        async def run(n: int = n, reached: list = reached) -> None:
            play = stage(
                [Think.of("Hm"), Text.of("Let", " me"), Pause(0.1), *three(0.2), Call("alone", id="d")],
                [Call("work", {"seconds": 0.2}, id="e"), Call("work", "{", id="f")],
                *["Done", "Done", "Done", "Done", "Done"],
                tools=[alone],
                listener=listener,
                hooks=hooks,
            )
            play.on("tool_execution_start", lambda: play.agent.steer("steered"))
            play.agent.follow_up("followed")
            play.agent.next_turn("parked")
            late = Recorder()
            with trio.CancelScope() as scope:

                def stop() -> None:
                    if play.heard.events and play.heard.events[-1].type == "agent_settled":
                        return
                    reached.append(len(play.model.requests))
                    scope.cancel() if outside else play.agent.abort()

                instrument = Nth(n, stop)
                trio.lowlevel.add_instrument(instrument)
                play.agent.subscribe(late)
                await play.agent.prompt("Go")
            trio.lowlevel.remove_instrument(instrument)
            assert late.events == play.heard.events
            if reached:
                assert len(play.model.requests) == reached[0]
            play.check()
            check_facts(play, facts)
            assert accounted(play) == sorted({"Go", "parked", "followed", *steered(play)})
            before = len(play.model.requests)
            play.agent.hooks = Hooks()
            await play.agent.prompt("last")
            assert len(play.model.requests) > before
            assert play.said()[-1] in ("last", "followed", "steered")

        trio.run(run, clock=MockClock(autojump_threshold=0))
        if not reached:
            return n
    raise AssertionError


def check_facts(play, facts) -> None:
    """Steps are closed before the next one opens, and each result has the start of its call."""
    brackets = [each.name for each in facts if each.name.startswith("step/")]
    assert brackets == ["step/start", "step/end"] * (len(brackets) // 2)
    started = [each.data["callId"] for each in facts if each.name == "tool/call"]
    assert started == [each.tool_call_id for each in play.results]


@pytest.mark.parametrize("outside", [False, True])
def test_a_run_may_be_stopped_at_any_step_of_any_task(stage, tool, facts, outside) -> None:
    """QS-01, CC-05: whole afterwards, whichever moment it was."""

    async def slow(event) -> None:
        await trio.lowlevel.checkpoint()

    hooks = Hooks(
        before_tool_call=pausing,
        after_tool_call=pausing,
        prepare_request=pausing,
        finish_turn=pausing,
        prepare_next_turn=pausing,
        get_steering_messages=pausing_input,
        get_follow_up_messages=pausing_input,
    )
    steps = sweep(stage, tool, facts, outside=outside, listener=slow, hooks=hooks)
    assert steps > 100


@pytest.mark.parametrize("outside", [False, True])
def test_a_bare_run_may_be_stopped_at_any_step(stage, tool, facts, outside) -> None:
    steps = sweep(stage, tool, facts, outside=outside)
    assert steps > 40


def accounted(play) -> list[str]:
    """Where all input is: used, queued, or handed back."""
    returned = [each for event in play.heard.of(InputReturned) for each in event.messages]
    agent = play.agent
    queued = (*agent.steering_queue, *agent.follow_up_queue, *agent.next_turn_queue)
    waiting = [each.message for each in queued]
    return sorted([*play.said(), *(text_of(each.content) for each in (*returned, *waiting))])


def steered(play) -> list[str]:
    return ["steered"] * ("tool_execution_start" in play.heard.word)
