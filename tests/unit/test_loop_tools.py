"""Tool calls: the order of their steps, the pool and its barriers, and one result for each."""

from __future__ import annotations

from itertools import cycle

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from pi_trio.events import ToolExecutionEnd, ToolExecutionStart, ToolExecutionUpdate
from pi_trio.loop.hooks import AfterToolCallResult, BeforeToolCallResult, Hooks
from pi_trio.messages import TextContent, ToolCall, Usage, text_of
from pi_trio.testing import Call, Stop, Text
from pi_trio.tool import ToolResult


def calls(*seconds: float, **more) -> list[Call]:
    """Calls of `work` with the ids 0, 1, 2, …"""
    return [Call("work", {"seconds": each, **more}, id=str(number)) for number, each in enumerate(seconds)]


def alone(*ids: str):
    """An `execution_mode` that makes the calls with these texts barriers."""
    return lambda args: "sequential" if args.get("text") in ids else "parallel"


# ------------------------------------------------------------------ one call


async def test_a_call_goes_through_its_steps_in_order(stage, tool) -> None:
    """C31: lookup, preparation, validation, pre hook, body, post hook, result."""
    trace = []

    def prepare(args):
        trace.append(("prepare", dict(args)))
        return {"number": "3"}

    async def before(context):
        trace.append(("before", context.args))

    async def after(context):
        trace.append(("after", text_of(context.result.content)))

    async def body(call_id, args, on_update):
        trace.append(("body", args))
        return ToolResult("done")

    schema = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}
    add = tool("add", body, parameters=schema, prepare_arguments=prepare)
    hooks = Hooks(before_tool_call=before, after_tool_call=after)
    play = stage(Call("add", {"raw": 1}), "Done", tools=[add], hooks=hooks)
    await play.agent.prompt("Go")
    number = {"number": 3}
    assert trace == [("prepare", {"raw": 1}), ("before", number), ("body", number), ("after", "done")]
    assert play.heard.of(ToolExecutionStart)[0].args == {"raw": 1}  # the model's own


async def test_a_call_is_told_from_start_to_result(stage, tool) -> None:
    """C37: start, updates, end, then the message."""

    async def body(call_id, args, on_update):
        for part in ("10 %", "90 %"):
            await on_update(ToolResult(part))
        return ToolResult("done", details={"lines": 3})

    play = stage(Call("count"), "Done", tools=[tool("count", body)])
    await play.agent.prompt("Go")
    start = play.heard.word.index("tool_execution_start")
    assert play.heard.word[start : start + 5] == [
        *["tool_execution_start", "tool_execution_update", "tool_execution_end"],
        *["message_start", "message_end"],
    ]
    assert [text_of(each.partial_result.content) for each in play.heard.of(ToolExecutionUpdate)] == [
        "10 %",
        "90 %",
    ]
    (result,) = play.results
    assert (text_of(result.content), result.details, result.is_error) == ("done", {"lines": 3}, False)


@pytest.mark.parametrize("same", [True, False])
async def test_prepared_arguments_are_taken_as_they_are(stage, tool, same) -> None:
    """C34: the same object, or another one; the stored call stays the model's."""
    given = []

    async def body(call_id, args, on_update):
        given.append(args)
        return ToolResult("done")

    prepare = (lambda args: args) if same else (lambda args: {"b": 2})
    play = stage(Call("add", {"a": 1}), "Done", tools=[tool("add", body, prepare_arguments=prepare)])
    await play.agent.prompt("Go")
    (call,) = play.agent.messages[1].tool_calls
    assert (given[0] is call.arguments) == same
    assert call.arguments == {"a": 1}


async def test_what_goes_wrong_is_a_result(stage, tool) -> None:
    """C32, L68, F29: and never an exception; the siblings run."""

    async def raising(call_id, args, on_update):
        raise ValueError(f"no {args.get('what', '')}".strip())

    async def silent(call_id, args, on_update):
        raise ValueError

    async def nothing(call_id, args, on_update):
        return None

    async def grouped(call_id, args, on_update):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(raising, call_id, {"what": "network"}, on_update)

    def broken(args):
        raise KeyError("path")

    tools = [
        tool("raising", raising),
        tool("silent", silent),
        tool("grouped", grouped),
        tool("nothing", nothing),
        tool("strict", raising, parameters={"type": "object", "required": ["path"]}),
        tool("unprepared", raising, prepare_arguments=broken),
        tool("bad_schema", raising, parameters={"type": "no such type"}),
    ]
    names = [*[each.name for each in tools], "unheard of", "work"]
    play = stage([Call(name, id=name) for name in names], "Done", tools=tools)
    await play.agent.prompt("Go")
    told = {
        each.tool_name: (text_of(each.content), (each.details or {}).get("code")) for each in play.results
    }
    assert [each.is_error for each in play.results] == [True] * 8 + [False]
    assert told["raising"] == ("no", None)
    assert told["silent"] == ("ValueError", None)
    assert told["grouped"] == ("no network", None)
    assert told["nothing"][0].startswith("The tool returned NoneType")
    assert told["strict"][1] == told["unprepared"][1] == told["bad_schema"][1] == "invalid_arguments"
    assert told["unheard of"][1] == "unknown_tool"
    assert "Tools: work, raising" in told["unheard of"][0]
    assert play.agent.messages[-1].text == "Done"


@pytest.mark.parametrize("name", ["bash وسرعت", "", "Work ", "x" * 300])
async def test_a_garbled_tool_name_is_answered_with_the_real_ones(stage, name) -> None:
    """TA-10."""
    play = stage(Call(name), "Done")
    await play.agent.prompt("Go")
    assert play.codes == ["unknown_tool"]
    assert "Tools: work." in text_of(play.results[0].content)


async def test_a_blocked_call_does_not_run(stage) -> None:
    """C33, F18: the reason is the result; a hook can only block, and one that fails does."""

    async def before(context):
        match context.tool_call.id:
            case "0":
                return BeforeToolCallResult(block=True, reason="Not here.")
            case "1":
                return BeforeToolCallResult(block=True)
            case "2":
                raise ValueError("no rule")
        return BeforeToolCallResult()

    play = stage(calls(0, 0, 0, 0), "Done", hooks=Hooks(before_tool_call=before))
    await play.agent.prompt("Go")
    assert [text_of(each.content) for each in play.results] == [
        *["Not here.", "The call was blocked.", "no rule", "3"]
    ]
    assert play.codes == ["blocked", "blocked", "blocked", None]
    assert play.trace == ["begin 3", "end 3"]
    assert [each.duration_ms is None for each in play.heard.of(ToolExecutionEnd)] == [True, True, True, False]


async def test_the_post_hook_changes_field_by_field(stage, tool) -> None:
    """C39: what it does not name stays; new content drops the structured one."""
    usage = Usage(input=7)
    changes = {
        "0": AfterToolCallResult(content="changed"),
        "1": AfterToolCallResult(details={"a": 1}, usage=usage),
        "2": AfterToolCallResult(is_error=True),
        "3": None,
        "4": ValueError("post"),
    }

    async def after(context):
        change = changes[context.tool_call.id]
        if isinstance(change, Exception):
            raise change
        return change

    async def body(call_id, args, on_update):
        return ToolResult("done", details={"kept": True}, structured_content={"n": 1})

    asked = [Call("count", id=each) for each in changes]
    play = stage(asked, "Done", tools=[tool("count", body)], hooks=Hooks(after_tool_call=after))
    await play.agent.prompt("Go")
    assert [text_of(each.content) for each in play.results] == ["changed", "done", "done", "done", "post"]
    assert [each.details for each in play.results[:4]] == [{"kept": True}, {"a": 1}, *[{"kept": True}] * 2]
    assert [each.is_error for each in play.results] == [False, False, True, False, True]
    assert play.results[1].usage == usage
    structured = [each.result.structured_content for each in play.heard.of(ToolExecutionEnd)]
    assert structured == [None, {"n": 1}, {"n": 1}, {"n": 1}, None]


async def test_late_progress_is_dropped(stage, tool, nursery) -> None:
    """C38: what a task left behind by the body still reports; what came in time is told before the end."""

    async def later(on_update):
        await released.wait()
        await on_update(ToolResult("too late"))
        done.set()

    async def body(call_id, args, on_update):
        await on_update(ToolResult("in time"))
        nursery.start_soon(later, on_update)
        return ToolResult("done")

    released, done = trio.Event(), trio.Event()
    play = stage(Call("count"), "Done", tools=[tool("count", body)])
    play.on("tool_execution_end", released.set)
    await play.agent.prompt("Go")
    await done.wait()
    assert [text_of(each.partial_result.content) for each in play.heard.of(ToolExecutionUpdate)] == [
        "in time"
    ]


async def test_progress_under_way_is_told_before_the_end(stage, tool, nursery) -> None:
    """C38: although a slow listener holds it up."""

    async def slow(event) -> None:
        if isinstance(event, ToolExecutionUpdate):
            await wait_all_tasks_blocked()

    async def body(call_id, args, on_update):
        nursery.start_soon(on_update, ToolResult("half"))
        await wait_all_tasks_blocked(0.001)
        return ToolResult("done")

    play = stage(Call("count"), "Done", tools=[tool("count", body)], listener=slow)
    await play.agent.prompt("Go")
    word = play.heard.word
    assert word.index("tool_execution_update") < word.index("tool_execution_end")


async def test_the_start_of_a_call_is_recorded_before_its_pre_hook(stage, facts) -> None:
    """L65: whoever asks for permission finds the call in the log."""
    seen = []

    async def before(context):
        seen.append([each.data["callId"] for each in facts if each.name == "tool/call"])

    play = stage(calls(0, 0), "Done", hooks=Hooks(before_tool_call=before))
    await play.agent.prompt("Go")
    assert seen == [["0"], ["0", "1"]]


# ------------------------------------------------------------------ many calls


async def test_bodies_overlap_and_results_keep_the_models_order(stage, autojump_clock) -> None:
    """C35, L67, F12: a ready later result waits, and shows as progress meanwhile."""
    play = stage(calls(3, 1, 2), "Done")
    began = trio.current_time()
    await play.agent.prompt("Go")
    assert trio.current_time() - began == 3
    assert play.trace[3:] == ["end 1", "end 2", "end 0"]
    assert [each.tool_call_id for each in play.results] == ["0", "1", "2"]
    assert [each.tool_call_id for each in play.heard.of(ToolExecutionEnd)] == ["0", "1", "2"]
    early = [
        (each.tool_call_id, text_of(each.partial_result.content), each.is_error, each.duration_ms)
        for each in play.heard.of(ToolExecutionUpdate)
    ]
    assert early == [("1", "1", False, 1000), ("2", "2", False, 2000)]
    assert [each.duration_ms for each in play.results] == [3000, 1000, 2000]


async def test_hooks_run_in_the_models_order_while_bodies_overlap(stage, autojump_clock) -> None:
    """L66: pre hooks one at a time, post hooks in order whatever finished first."""
    trace = []

    def traced(name):
        async def hook(context):
            trace.append(f"{name} {context.tool_call.id}")
            await trio.sleep(0.1)
            trace.append(f"{name} {context.tool_call.id} done")

        return hook

    hooks = Hooks(before_tool_call=traced("pre"), after_tool_call=traced("post"))
    play = stage(calls(3, 1, 2), "Done", hooks=hooks)
    await play.agent.prompt("Go")
    assert trace == [
        f"{name} {n}{end}" for name in ("pre", "post") for n in range(3) for end in ("", " done")
    ]


async def test_sequential_execution_finishes_each_call_first(stage, autojump_clock) -> None:
    """C36: the result message comes before the next call starts."""
    play = stage(calls(1, 1), "Done", tool_execution="sequential")
    await play.agent.prompt("Go")
    one = ["tool_execution_start", "tool_execution_end", "message_start", "message_end"]
    start = play.heard.word.index("tool_execution_start")
    assert play.heard.word[start : start + 8] == one * 2
    assert play.most == 1


async def test_at_most_the_bound_runs_at_once(stage, autojump_clock) -> None:
    """L63: 200 calls over the default of 10 keep the order of the model."""
    play = stage(calls(*[1 + number % 7 for number in range(200)]), "Done")
    await play.agent.prompt("Go")
    assert play.most == 10
    assert [each.tool_call_id for each in play.results] == [str(number) for number in range(200)]


async def test_the_pool_rolls(stage, autojump_clock) -> None:
    """L63: the next call starts as one finishes, not when all have."""
    play = stage(calls(5, 1, 1, 1, 1), "Done", max_parallel_tool_calls=2)
    began = trio.current_time()
    await play.agent.prompt("Go")
    assert trio.current_time() - began == 5
    assert play.trace[-1] == "end 0"


async def test_the_bound_may_change_between_batches(stage, autojump_clock) -> None:
    play = stage(calls(1, 1, 1, 1), calls(1, 1, 1, 1), "Done", max_parallel_tool_calls=2)
    most = []

    def widen() -> None:
        most.append(play.most)
        play.agent.max_parallel_tool_calls = 3

    play.on("turn_end", widen)
    await play.agent.prompt("Go")
    assert [*most, play.most] == [2, 3]


async def test_a_sequential_call_is_a_barrier(stage, autojump_clock) -> None:
    """L62, F27: P P X P P gives three groups, however the scheduler likes it."""
    for _ in range(20):
        asked = [
            Call("work", {"seconds": 1, "text": name}, id=f"{n}{name}") for n, name in enumerate("PPXPP")
        ]
        play = stage(asked, "Done", work={"execution_mode": alone("X")})
        await play.agent.prompt("Go")
        groups = [sorted(play.trace[i:j]) for i, j in ((0, 2), (2, 4), (4, 6), (6, 8), (8, 10))]
        assert groups == [
            *[["begin 0P", "begin 1P"], ["end 0P", "end 1P"], ["begin 2X", "end 2X"]],
            *[["begin 3P", "begin 4P"], ["end 3P", "end 4P"]],
        ]


@pytest.mark.parametrize("mode", ["sequential", "nonsense", lambda args: args["missing"], lambda args: None])
async def test_who_cannot_be_classified_runs_alone(stage, autojump_clock, mode) -> None:
    """L61: a function that raises, or an answer that nobody knows."""
    play = stage(calls(1, 1), "Done", work={"execution_mode": mode})
    await play.agent.prompt("Go")
    assert play.trace == ["begin 0", "end 0", "begin 1", "end 1"]


async def test_a_call_is_classified_again_just_before_it_starts(stage, autojump_clock) -> None:
    """L64: it waited for a worker, and became a barrier meanwhile."""
    exclusive = set()
    play = stage(
        [Call("work", {"seconds": s, "text": str(n)}, id=str(n)) for n, s in enumerate((2, 1, 1))],
        "Done",
        max_parallel_tool_calls=2,
        work={"execution_mode": lambda args: "sequential" if args["text"] in exclusive else "parallel"},
    )
    play.on("tool_execution_update", lambda: exclusive.add("2"))  # call 1 is done before call 0
    await play.agent.prompt("Go")
    assert play.trace[2:] == ["end 1", "end 0", "begin 2", "end 2"]


async def test_slow_listeners_do_not_disturb_the_order(stage, autojump_clock) -> None:
    """CC-05: 200 steps of three calls, each event held up for another while."""
    times = cycle([0.0, 0.05, 0.01, 0.03, 0.0, 0.02, 0.04])

    async def slow(event) -> None:
        await trio.sleep(next(times))

    play = stage(*[calls(0.03, 0.01, 0.02)] * 200, "Done", listener=slow)
    await play.agent.prompt("Go")
    assert [each.tool_call_id for each in play.results] == ["0", "1", "2"] * 200


async def test_calls_with_the_same_id_are_not_run_twice(stage) -> None:
    play = stage([Call("work", id="a"), Call("work", id="a"), Call("work", id="b")], "Done")
    await play.agent.prompt("Go")
    assert play.codes == [None, "duplicate_id", None]
    assert play.trace == ["begin a", "end a", "begin b", "end b"]


async def test_no_call_of_a_cut_off_answer_runs(stage) -> None:
    """The model is told, and asked again."""
    play = stage([Call("work"), Call("work"), Stop("length")], "Shorter")
    await play.agent.prompt("Go")
    assert (play.codes, play.trace) == (["truncated", "truncated"], [])
    assert play.agent.messages[-1].text == "Shorter"


# ------------------------------------------------------------------ stopping one call


async def test_a_tools_own_time_limit_ends_its_call_only(stage, autojump_clock) -> None:
    play = stage(calls(9, 1), "Done", work={"timeout": 2.5})
    await play.agent.prompt("Go")
    assert play.codes == ["timeout", None]
    assert text_of(play.results[0].content) == "The tool took longer than 2.5 seconds."
    assert [each.duration_ms for each in play.results] == [2500, 1000]
    assert play.agent.messages[-1].text == "Done"


async def test_one_call_may_be_aborted(stage, autojump_clock, nursery) -> None:
    """`abort_call`: the run goes on; unknown and finished calls are told apart."""
    play = stage(calls(9, 1), "Done")

    async def stop():
        await trio.sleep(0.5)
        assert not play.agent.abort_call("no such call")
        assert play.agent.abort_call("0")

    play.on("agent_start", lambda: nursery.start_soon(stop))
    await play.agent.prompt("Go")
    assert play.codes == ["aborted", None]
    assert not play.agent.abort_call("0")
    assert play.agent.messages[-1].text == "Done"


async def test_a_call_that_is_aborted_behind_another_says_so_at_once(stage, autojump_clock, nursery) -> None:
    play = stage(calls(9, 9), "Done")

    async def stop():
        await trio.sleep(0.5)
        assert play.agent.abort_call("1")

    play.on("agent_start", lambda: nursery.start_soon(stop))
    await play.agent.prompt("Go")
    (early,) = play.heard.of(ToolExecutionUpdate)
    ends = play.heard.of(ToolExecutionEnd)
    assert (early.tool_call_id, early.partial_result.details) == ("1", {"code": "aborted"})
    assert [each.result.details for each in ends] == [None, {"code": "aborted"}]


async def test_what_a_stopped_body_had_reported_is_in_its_result(stage, tool, autojump_clock) -> None:
    async def body(call_id, args, on_update):
        await on_update(ToolResult("three lines so far", details={"lines": 3}))
        await trio.sleep_forever()

    play = stage(Call("read"), "Done", tools=[tool("read", body, timeout=1)])
    await play.agent.prompt("Go")
    (result,) = play.results
    assert result.content[0] == TextContent("three lines so far")
    assert result.details == {"lines": 3, "code": "timeout"}


async def test_a_tool_that_fails_while_it_is_stopped_only_fails_its_call(stage, tool, autojump_clock) -> None:
    """Its own nursery then raises a group of the cancellation and the error."""

    async def child():
        try:
            await trio.sleep_forever()
        finally:
            raise ValueError("cannot clean up")

    async def body(call_id, args, on_update):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(child)
            await trio.sleep_forever()

    play = stage(Call("messy"), "Done", tools=[tool("messy", body, timeout=1)])
    await play.agent.prompt("Go")
    assert [text_of(each.content) for each in play.results] == ["cannot clean up"]
    assert play.agent.messages[-1].text == "Done"


# ------------------------------------------------------------------ what follows from results


@pytest.mark.parametrize(("wishes", "requests"), [([True, True], 1), ([True, False], 2), ([False, False], 2)])
async def test_a_batch_stops_the_loop_only_if_every_result_says_so(stage, tool, wishes, requests) -> None:
    """C40."""

    async def body(call_id, args, on_update):
        return ToolResult("done", terminate=args["stop"])

    asked = [Call("end", {"stop": each}) for each in wishes]
    play = stage(asked, "Done", tools=[tool("end", body)])
    await play.agent.prompt("Go")
    assert len(play.model.requests) == requests


async def test_a_blocked_call_may_end_the_loop_as_well(stage) -> None:
    """C40: `terminate` of the pre hook."""

    async def before(context):
        return BeforeToolCallResult(block=True, reason="No.", terminate=True)

    play = stage(Call("work"), hooks=Hooks(before_tool_call=before))
    await play.agent.prompt("Go")
    assert len(play.model.requests) == 1


async def test_steering_still_runs_after_a_terminated_batch(stage, tool) -> None:
    """C41."""

    async def body(call_id, args, on_update):
        play.agent.steer("one more thing")
        return ToolResult("done", terminate=True)

    play = stage(Call("end"), "Fine", tools=[tool("end", body)])
    await play.agent.prompt("Go")
    assert play.request(1) == ["Go", "", "done", "one more thing"]


async def test_added_tools_are_usable_in_the_next_call(stage, tool) -> None:
    """C42: registered ones, that were not active yet."""

    async def body(call_id, args, on_update):
        return ToolResult("done", added_tool_names=["late"])

    late = tool("late", body)
    tools = [tool("find", body), late]
    play = stage(Call("find"), Call("late"), "Done", tools=tools, active_tool_names=["find"])
    await play.agent.prompt("Go")
    offered = [[each.name for each in request.context.tools] for request in play.model.requests]
    assert offered == [["find"], ["find", "late"], ["find", "late"]]
    assert play.codes == [None, None]


async def test_text_and_calls_of_one_answer_are_kept_together(stage) -> None:
    play = stage([Text.of("Looking."), Call("work", id="a")], "Done")
    await play.agent.prompt("Go")
    text, call = play.agent.messages[1].content
    assert (text, call) == (TextContent("Looking."), ToolCall("a", "work"))
    assert play.agent.messages[1].stop_reason == "toolUse"
