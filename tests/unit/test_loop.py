"""The loop: the order of events, input between steps, and what goes into a request."""

from __future__ import annotations

from itertools import pairwise

import attrs
import pytest

from pi_trio.agent_driver import AgentDriver, FirstTurn, Transcript
from pi_trio.agent_queue import AgentQueues
from pi_trio.errors import ConfigError, UsageError
from pi_trio.events import AgentEnd, MessageStart, MessageUpdate, TurnEnd
from pi_trio.llm.playback import Playback
from pi_trio.llm.protocol import Done, Failure, Model, StreamOptions, StreamStart
from pi_trio.loop.convert import convert_message
from pi_trio.loop.hooks import AgentContext, FinishTurnResult, Hooks, RequestContext, TurnUpdate
from pi_trio.loop.run import run_agent_loop_continue
from pi_trio.messages import (
    AssistantMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    CustomMessage,
    TextContent,
    ThinkingContent,
    ToolCall,
    UserMessage,
)
from pi_trio.testing import Call, Recorded, Stop, Text, Think
from pi_trio.tool import ToolResult

ANSWER = ["message_start", "message_update", "message_end"]
INPUT = ["message_start", "message_end"]


def returning(value):
    """A hook that always says the same."""

    async def hook(*_context):
        return value

    return hook


def once(*values, then=()):
    """A hook that says these in order, and then always the same."""
    left = list(values)

    async def hook(*_context):
        return left.pop(0) if left else then

    return hook


# ------------------------------------------------------------------ order


async def test_a_run_begins_with_its_prompts(stage) -> None:
    """A17, F11: `agent_start`, `turn_start`, then each prompt, then the answer."""
    play = stage("Hi")
    await play.agent.prompt([UserMessage.of("one"), UserMessage.of("two")])
    assert play.heard.word == [
        *["agent_start", "turn_start", *INPUT, *INPUT, *ANSWER],
        *["turn_end", "agent_end", "agent_settled"],
    ]


async def test_each_model_call_has_one_turn_start(stage) -> None:
    """A18: also the first one."""
    play = stage(Call("work"), Call("work"), "Done")
    await play.agent.prompt("Go")
    assert play.heard.word.count("turn_start") == play.heard.word.count("turn_end") == 3
    assert [len(each.tool_results) for each in play.heard.of(TurnEnd)] == [1, 1, 0]


async def test_the_end_carries_the_new_messages_in_order(stage) -> None:
    """A30: not those that were there before."""
    play = stage(Call("work"), "Done", messages=[UserMessage.of("old")])
    play.agent.follow_up("And?")
    play.model.add("So.")
    await play.agent.prompt("Go")
    (end,) = play.heard.of(AgentEnd)
    assert end.messages == play.agent.messages[1:]
    assert [each.role for each in end.messages] == [
        *["user", "assistant", "toolResult", "assistant"],
        *["user", "assistant"],
    ]


async def test_an_update_never_changes_once_it_was_told(stage) -> None:
    """A29: whoever keeps an event may read it later."""
    play = stage([Text.of("a", "b", "c"), Think.of("x", "y"), Call("work")], "Done")
    seen: list[AssistantMessage] = []

    def look(event) -> None:
        if isinstance(event, MessageUpdate):
            seen.append(event.message)

    play.agent.subscribe(look)
    await play.agent.prompt("Go")
    assert [each.message for each in play.heard.of(MessageUpdate)] == seen
    assert seen[1].content == (TextContent("a"),)


@pytest.mark.parametrize("events", [[], [StreamStart()]])
async def test_an_answer_without_pieces_still_has_both_ends(stage, events) -> None:
    """A28: whether or not the stream says that it starts."""
    play = stage()
    play.agent.stream_fn = lambda *_request: Playback([[*events, Done(AssistantMessage(()))]])
    await play.agent.prompt("Go")
    assert play.heard.word == [
        *["agent_start", "turn_start", *INPUT, *INPUT],
        *["turn_end", "agent_end", "agent_settled"],
    ]


async def test_the_whole_answer_replaces_what_streamed(stage) -> None:
    """A28: start, updates, end; the last update is not the authority."""
    play = stage([Think.of("hm"), Text.of("Hel", "lo")])
    await play.agent.prompt("Go")
    assert play.agent.messages[-1].content == (ThinkingContent("hm"), TextContent("Hello"))
    assert play.agent.messages[-1].stop_reason == "stop"
    assert {each.message.stop_reason for each in play.heard.of(MessageUpdate)} == {"pending"}


# ------------------------------------------------------------------ steering and follow-ups


async def test_steering_is_polled_before_the_first_call_and_after_each_turn(stage) -> None:
    """A19: by its hook as well as from the queue."""
    polls = []

    async def poll():
        polls.append(len(play.model.requests))
        return ()

    play = stage(Call("work"), "Done", hooks=Hooks(get_steering_messages=poll))
    await play.agent.prompt("Go")
    assert polls[:2] == [0, 1]
    assert set(polls) == {0, 1, 2}


async def test_steering_enters_before_the_next_call_in_queue_order(stage) -> None:
    """A20, F14: at the step boundary; the running call is not interrupted."""
    play = stage(Call("work", {"text": "done"}), "Done", steering_mode="all")

    def steer(event) -> None:
        if event.type == "tool_execution_start":
            play.agent.steer("one")
            play.agent.steer("two")

    play.agent.subscribe(steer)
    await play.agent.prompt("Go")
    assert play.request(1) == ["Go", "", "done", "one", "two"]


@pytest.mark.parametrize(("mode", "sizes"), [("one-at-a-time", [2, 4, 6]), ("all", [4])])
async def test_steering_comes_one_at_a_time_or_all_at_once(stage, mode, sizes) -> None:
    """A21, QS-04."""
    play = stage("1", "2", "3", steering_mode=mode)
    for text in "abc":
        play.agent.steer(text)
    await play.agent.prompt("Go")
    assert [len(each.context.messages) for each in play.model.requests] == sizes


@pytest.mark.parametrize(("mode", "sizes"), [("one-at-a-time", [1, 3, 5, 7]), ("all", [1, 5])])
async def test_follow_ups_come_one_at_a_time_or_all_at_once(stage, mode, sizes) -> None:
    """A21, QS-04."""
    play = stage("1", "2", "3", "4", follow_up_mode=mode)
    for text in "abc":
        play.agent.follow_up(text)
    await play.agent.prompt("Go")
    assert [len(each.context.messages) for each in play.model.requests] == sizes


async def test_the_mode_of_a_queue_may_change_in_a_run(stage) -> None:
    """A21: it holds from the next poll on."""
    play = stage("1", "2", "3")
    for text in "abc":
        play.agent.steer(text)
    play.on("turn_end", lambda: setattr(play.agent, "steering_mode", "all"))
    await play.agent.prompt("Go")
    assert [len(each.context.messages) for each in play.model.requests] == [2, 5]


async def test_both_queues_give_one_at_a_time_by_default(stage) -> None:
    """A21."""
    play = stage("1", "2", "3")
    play.agent.follow_up("x")
    play.agent.follow_up("y")
    await play.agent.prompt("Go")
    assert len(play.model.requests) == 3


async def test_follow_ups_wait_for_calls_and_steering(stage) -> None:
    """A22: polled only when nothing is owed; then the loop goes on."""
    play = stage(Call("work"), "1", "2", "3")
    play.agent.follow_up("last")
    play.on("tool_execution_start", lambda: play.agent.steer("mid"))
    await play.agent.prompt("Go")
    assert play.said() == ["Go", "mid", "last"]
    assert len(play.model.requests) == 3


async def test_hooks_may_bring_input_of_their_own(stage) -> None:
    hooks = Hooks(
        get_steering_messages=once((), [UserMessage.of("steered")]),
        get_follow_up_messages=once([UserMessage.of("followed")]),
    )
    play = stage("1", "2", "3", hooks=hooks)
    await play.agent.prompt("Go")
    assert play.said() == ["Go", "steered", "followed"]


async def test_a_failed_answer_ends_the_run_and_leaves_the_queues(stage) -> None:
    """A23: `turn_end` without results, then `agent_end`."""
    play = stage([Call("work"), Failure("broken")], "Hi")
    play.agent.follow_up("later")
    play.on("turn_end", lambda: play.agent.steer("now"))
    await play.agent.prompt("Go")
    assert play.heard.of(TurnEnd)[0].tool_results == ()
    assert play.heard.word[-3:] == ["turn_end", "agent_end", "agent_settled"]
    assert (len(play.agent.steering_queue), len(play.agent.follow_up_queue)) == (1, 1)


async def test_a_stream_without_an_end_is_a_failure(stage) -> None:
    """F15: a transport error, never a success."""
    play = stage()

    class Cut:
        async def __aenter__(self):
            return self

        async def __aexit__(self, *_error):
            return None

        async def __aiter__(self):
            return
            yield

    play.agent.stream_fn = lambda *_request: Cut()
    await play.agent.prompt("Go")
    last = play.agent.messages[-1]
    assert (last.stop_reason, last.error_message) == (
        "error",
        "The stream ended before the answer was complete.",
    )


async def test_a_configuration_error_is_told_like_a_failed_request(stage) -> None:
    """Before anything was sent; it is not an exception of `prompt`."""
    play = stage(ConfigError("No key for scripted."))
    await play.agent.prompt("Go")
    assert play.agent.error_message == "No key for scripted."


async def test_a_failed_answer_is_not_sent_again(stage) -> None:
    """F16, F17: kept for the screen, left out of requests, with one `agent_end`."""
    play = stage([Text.of("Half"), Failure("broken")], "Hi")
    await play.agent.prompt("Go")
    assert len(play.heard.of(AgentEnd)) == 1
    await play.agent.prompt("again")
    assert play.request(1) == ["Go", "again"]


async def test_the_output_limit_does_not_swallow_owed_results(stage) -> None:
    """L79: max tokens, steering and a call: three requests."""
    play = stage([Text.of("cut"), Stop("length")], Call("work"), "Done")
    play.on("message_update", lambda: play.agent.steer("on"))
    await play.agent.prompt("Go")
    assert len(play.model.requests) == 3
    assert play.said() == ["Go", "on"]


# ------------------------------------------------------------------ a model that does not learn


async def test_three_equal_refusals_in_a_row_end_the_run(stage) -> None:
    """TA-03: told like a failed answer, with the queues untouched; a new prompt starts afresh."""
    broken = [Call("work", "{", id="a"), Call("unheard of", id="b")]
    play = stage(*[broken] * 5)
    play.agent.follow_up("later")
    await play.agent.prompt("Go")
    assert len(play.model.requests) == 3
    assert play.agent.error_message == (
        "Stopped: the model called work, unheard of 3 times in the same way, which was refused each time."
    )
    assert play.heard.word[-6:] == [*["turn_start", *INPUT, "turn_end"], "agent_end", "agent_settled"]
    assert len(play.agent.follow_up_queue) == 1
    await play.agent.prompt("Again")
    assert len(play.model.requests) == 5 + 1  # two of the script, and one that finds its end


@pytest.mark.parametrize(
    "between",
    [
        pytest.param([Call("work", '{"seconds": 0}')], id="a call that works"),
        pytest.param([Call("work", "[")], id="another refusal"),
        pytest.param([Call("work", "{"), Call("work")], id="one of two works"),
    ],
)
async def test_what_comes_between_equal_refusals_breaks_the_row(stage, between) -> None:
    """TA-03."""
    broken = Call("work", "{")
    play = stage(broken, broken, between, broken, broken, "Done")
    await play.agent.prompt("Go")
    assert play.agent.messages[-1].text == "Done"


async def test_a_body_may_fail_in_the_same_way_for_long(stage, tool) -> None:
    """TA-03: as when it waits for a server; only calls that cannot run are pointless to repeat."""

    async def body(call_id, args, on_update):
        raise ConnectionError("refused")

    play = stage(*[Call("ping")] * 5, "Done", tools=[tool("ping", body)])
    await play.agent.prompt("Go")
    assert play.agent.messages[-1].text == "Done"


@pytest.mark.parametrize("after", [1, 2, 3])
async def test_input_between_equal_refusals_breaks_the_row(stage, after) -> None:
    """TA-03: the model has heard something new, also if it comes with the last refusal."""
    broken = Call("work", "{")
    play = stage(*[broken] * (after + 2), "Done")

    def steer() -> None:
        if len(play.model.requests) == after:
            play.agent.steer("Close the brace.")

    play.on("turn_end", steer, often=True)
    await play.agent.prompt("Go")
    assert play.agent.messages[-1].text == "Done"


# ------------------------------------------------------------------ a loop of one's own


@pytest.mark.parametrize(
    ("messages", "refusal"),
    [
        ([], "No messages to continue from."),
        ([UserMessage.of("Go"), AssistantMessage((TextContent("Hi"),))], "Cannot continue from an assistant"),
    ],
)
async def test_the_loop_continues_only_what_owes_an_answer(stage, messages, refusal) -> None:
    """A4, A5: nothing has happened by then."""
    play = stage("Hi", messages=messages)
    driver = AgentDriver(
        play.agent, play.agent._hub, AgentQueues(), Transcript(messages), FirstTurn(owed=True)
    )
    with pytest.raises(UsageError, match=refusal):
        await run_agent_loop_continue(driver)
    assert play.heard.events == []


# ------------------------------------------------------------------ hooks between steps


async def test_the_next_turn_is_prepared_after_its_end_and_before_stopping(stage) -> None:
    """A24, F24."""
    trace = []

    def traced(name, value):
        async def hook(*_context):
            trace.append((name, play.heard.events[-1].type))
            return value

        return hook

    hooks = Hooks(
        finish_turn=traced("finish", None),
        prepare_next_turn=traced("prepare", None),
        should_stop_after_turn=traced("stop", False),
    )
    play = stage("Hi", hooks=hooks)
    await play.agent.prompt("Go")
    assert trace == [("finish", "message_end"), ("prepare", "turn_end"), ("stop", "turn_end")]


async def test_the_next_turn_may_have_other_context_model_and_level(stage) -> None:
    """A24, F19: for this run only."""
    other = Model("other", provider="scripted")
    update = TurnUpdate(
        context=AgentContext("Be brief.", (UserMessage.of("All before, in short."),)),
        model=other,
        thinking_level="high",
    )
    play = stage(Call("work"), "Done", "Hi", hooks=Hooks(prepare_next_turn=once(update, then=None)))
    await play.agent.prompt("Go")
    changed = play.model.requests[1]
    assert (changed.model, changed.options.thinking_level) == (other, "high")
    assert (changed.context.system_prompt, changed.context.tools) == ("Be brief.", ())
    assert play.request(1) == ["All before, in short."]
    assert play.agent.messages[-1].thinking_level == "high"
    await play.agent.prompt("again")
    assert (play.model.requests[2].model, play.request(2)[0]) == (play.model.model, "Go")


async def test_the_hook_with_context_wins_and_sees_the_step(stage) -> None:
    seen = []

    async def hook(context):
        seen.append((context.message.text, len(context.tool_results), len(context.new_messages)))

    async def unused():
        raise AssertionError

    play = stage("Hi", hooks=Hooks(prepare_next_turn_with_context=hook, prepare_next_turn=unused))
    await play.agent.prompt("Go")
    assert seen == [("Hi", 0, 2)]


async def test_stopping_after_a_turn_leaves_the_queues(stage) -> None:
    """A25: at once, although results are owed."""
    play = stage(Call("work"), hooks=Hooks(should_stop_after_turn=returning(True)))
    play.agent.follow_up("later")
    play.on("tool_execution_start", lambda: play.agent.steer("x"))
    await play.agent.prompt("Go")
    assert len(play.model.requests) == 1
    assert (len(play.agent.steering_queue), len(play.agent.follow_up_queue)) == (1, 1)


@pytest.mark.parametrize(("action", "requests"), [("end", 1), ("continue", 2), (None, 1)])
async def test_finish_turn_may_end_the_run_or_owe_one_request(stage, action, requests) -> None:
    decision = action and FinishTurnResult(action)
    play = stage("one", "two", "three", hooks=Hooks(finish_turn=once(decision, then=None)))
    if action == "end":
        play.agent.follow_up("later")
    await play.agent.prompt("Go")
    assert len(play.model.requests) == requests
    assert len(play.agent.follow_up_queue) == (action == "end")


async def test_prepare_request_sees_every_request_and_may_change_it(stage) -> None:
    seen: list[RequestContext] = []

    async def prepare(context):
        seen.append(context)
        return TurnUpdate(thinking_level="low")

    play = stage(Call("work"), "Done", hooks=Hooks(prepare_request=prepare))
    await play.agent.prompt("Go")
    assert [each.thinking_level for each in seen] == ["off", "low"]
    assert [len(each.context.messages) for each in seen] == [0, 3]
    assert [each.options.thinking_level for each in play.model.requests] == ["low", "low"]


# ------------------------------------------------------------------ the request


async def test_transforming_the_context_changes_this_request_only(stage) -> None:
    """A26: on the application's messages, before conversion."""
    seen = []

    async def transform(messages):
        seen.append([each.role for each in messages])
        return [UserMessage.of("instead"), *messages]

    play = stage("Hi", hooks=Hooks(transform_context=transform), messages=[CustomMessage("note", "known")])
    await play.agent.prompt("Go")
    assert seen == [["custom", "user"]]
    assert play.request(0) == ["instead", "known", "Go"]
    assert [each.role for each in play.agent.messages] == ["custom", "user", "assistant"]


async def test_conversion_may_be_the_applications_own(stage) -> None:
    async def convert(messages):
        return [UserMessage.of(f"{len(messages)} messages")]

    play = stage("Hi", hooks=Hooks(convert_to_llm=convert))
    await play.agent.prompt("Go")
    assert play.request(0) == ["1 messages"]


async def test_the_key_is_asked_for_each_request_and_wins(stage) -> None:
    """A27: hook first, static key second."""
    asked = []

    async def key(provider):
        asked.append(provider)
        return "fresh" if len(asked) == 1 else None

    play = stage(Call("work"), "Done", options=StreamOptions(api_key="static"), get_api_key=key)
    await play.agent.prompt("Go")
    assert asked == ["scripted", "scripted"]
    assert [each.options.api_key for each in play.model.requests] == ["fresh", "static"]


async def test_the_options_go_with_every_request(stage) -> None:
    """All of them; only key and level are the agent's to fill in."""

    async def on_payload(payload, model):
        return payload

    async def on_response(status, headers, model):
        return None

    options = StreamOptions(
        session_id="s1",
        thinking_budgets={"high": 4000},
        transport="sse",
        on_payload=on_payload,
        on_response=on_response,
    )
    play = stage(Call("work"), "Done", options=options, thinking_level="high")
    await play.agent.prompt("Go")
    expected = attrs.evolve(options, thinking_level="high")
    assert [each.options for each in play.model.requests] == [expected, expected]


async def test_an_answer_knows_how_it_was_asked_for(stage) -> None:
    play = stage("Hi", thinking_level="medium")
    await play.agent.prompt("Go")
    answer = play.agent.messages[-1]
    assert (answer.provider, answer.model, answer.thinking_level) == ("scripted", "scripted", "medium")
    assert answer.duration_ms is not None
    (start,) = [each for each in play.heard.of(MessageStart) if each.message.role == "assistant"]
    assert start.message.timestamp == answer.timestamp


async def test_every_request_extends_the_one_before(stage) -> None:
    play = stage(Call("work"), Call("work"), "Done")
    play.agent.follow_up("And?")
    play.model.add("So.")
    await play.agent.prompt("Go")
    requests: list[Recorded] = play.model.requests
    for shorter, longer in pairwise(requests):
        before, after = shorter.context.messages, longer.context.messages
        assert after[: len(before)] == before
        assert len(after) > len(before)


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (BranchSummaryMessage("left"), "left"),
        (CompactionSummaryMessage("old"), "old"),
        (CustomMessage("note", "known"), "known"),
    ],
)
def test_summaries_and_custom_messages_reach_the_model(message, text) -> None:
    """F10: as user messages."""
    converted = convert_message(message)
    assert isinstance(converted, UserMessage)
    assert text in str(converted.content)
    assert converted.timestamp == message.timestamp


@pytest.mark.parametrize(
    ("content", "kept"),
    [
        ((TextContent("Half"), ToolCall("c", "work")), (TextContent("Half"),)),
        ((ThinkingContent("hm"), TextContent("Half")), (ThinkingContent("hm"), TextContent("Half"))),
        ((ThinkingContent("hm"),), None),
        ((TextContent(" \n"), ToolCall("c", "work")), None),
        ((), None),
    ],
)
def test_an_aborted_answer_goes_on_as_its_text(content, kept) -> None:
    """F16, AB-02: without calls; nothing at all where no text was visible."""
    converted = convert_message(AssistantMessage(content, stop_reason="aborted"))
    assert (converted and converted.content) == kept


async def test_context_of_a_result_enters_the_next_step_after_all_results(stage, tool) -> None:
    """L70: before what was steered."""

    async def body(call_id, args, on_update):
        return ToolResult("done", context=[UserMessage.of(f"about {call_id}")])

    play = stage([Call("note", id="a"), Call("note", id="b")], "Hi", tools=[tool("note", body)])
    play.on("tool_execution_start", lambda: play.agent.steer("steered"))
    await play.agent.prompt("Go")
    assert play.request(1) == ["Go", "", "done", "done", "about a", "about b", "steered"]
