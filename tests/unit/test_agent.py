"""The agent in memory: input, state, listeners, and what it refuses."""

from __future__ import annotations

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from pi_trio.errors import BusyError, UsageError
from pi_trio.events import AgentEnd, Gap, MessageUpdate
from pi_trio.llm.protocol import Failure
from pi_trio.messages import (
    AssistantMessage,
    BashExecutionMessage,
    ImageContent,
    SystemMessage,
    TextContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    now_ms,
)
from pi_trio.testing import Call, Hang, Pause, Text

HELLO = UserMessage.of("Hello")
PICTURE = ImageContent("aGk=", "image/png")


# ------------------------------------------------------------------ input


async def test_text_becomes_one_user_message(stage) -> None:
    """A1: one text block, and the time."""
    play, began = stage("Hi"), now_ms()
    await play.agent.prompt("Hello")
    (message, _) = play.agent.messages
    assert message.content == (TextContent("Hello"),)
    assert began <= message.timestamp <= now_ms()


@pytest.mark.parametrize("given", [HELLO, [HELLO], (HELLO, UserMessage.of("there"))])
async def test_messages_pass_as_they_are(stage, given) -> None:
    """A1: one message or several."""
    play = stage("Hi")
    await play.agent.prompt(given)
    expected = [given] if isinstance(given, UserMessage) else list(given)
    entered = play.agent.messages[:-1]
    assert len(entered) == len(expected)
    assert all(one is other for one, other in zip(entered, expected, strict=True))


async def test_images_come_after_the_text(stage) -> None:
    """A2, QS-08: of a prompt, and of queued input just the same."""
    play = stage("One", "Two")
    play.agent.follow_up("And this?", [PICTURE])
    await play.agent.prompt("What is it?", [PICTURE])
    contents = [each.content for each in play.agent.messages if each.role == "user"]
    assert contents == [(TextContent("What is it?"), PICTURE), (TextContent("And this?"), PICTURE)]


async def test_only_one_run_at_a_time(stage) -> None:
    """A3: whatever would disturb the run is refused, and the run goes on."""
    play, refused = stage("Hi"), []

    async def intrude(event) -> None:
        agent = play.agent
        if event.type == "agent_settled":  # by then the agent is free again
            return
        for call in (lambda: agent.prompt("x"), agent.continue_):
            with pytest.raises(BusyError, match="already processing"):
                await call()
        with pytest.raises(BusyError):
            agent.reset()
        with pytest.raises(BusyError):
            agent.messages = ()
        refused.append(event.type)

    play.agent.subscribe(intrude)
    await play.agent.prompt("Hello")
    assert refused == [each.type for each in play.heard.events if each.type != "agent_settled"]
    assert play.said("assistant") == ["Hi"]


@pytest.mark.parametrize(
    "tail",
    [
        [HELLO],
        [HELLO, AssistantMessage((ToolCall("c", "work"),)), ToolResultMessage("c", "work", "done")],
    ],
)
async def test_continue_needs_no_new_message(stage, tail) -> None:
    """A4: after a user message or a tool result."""
    play = stage("Hi", messages=tail)
    await play.agent.continue_()
    assert play.agent.messages[:-1] == tuple(tail)
    assert len(play.model.requests[0].context.messages) == len(tail)
    assert len(play.heard.of(AgentEnd)[0].messages) == 1


async def test_continue_after_an_answer_takes_steering_then_follow_ups(stage) -> None:
    """A5: and refuses when nothing is queued."""
    play = stage("Hi", "one", "two", messages=[HELLO, AssistantMessage((TextContent("Hi"),))])
    play.agent.follow_up("later")
    play.agent.steer("now")
    await play.agent.continue_()
    assert play.said() == ["Hello", "now", "later"]
    assert [len(each.context.messages) for each in play.model.requests] == [3, 5]
    with pytest.raises(UsageError, match="nothing is queued"):
        await play.agent.continue_()


async def test_continue_with_steering_does_not_poll_it_again_at_once(stage) -> None:
    """A6: the second steering message waits for the second request."""
    play = stage("one", "two", messages=[HELLO, AssistantMessage((TextContent("Hi"),))])
    play.agent.steer("first")
    play.agent.steer("second")
    await play.agent.continue_()
    assert play.request(0) == ["Hello", "Hi", "first"]
    assert play.request(1) == ["Hello", "Hi", "first", "one", "second"]


@pytest.mark.parametrize("messages", [[], [SystemMessage("Be kind.")]])
async def test_there_must_be_something_to_continue_from(stage, messages) -> None:
    """A5: the queues are not touched by the refusal."""
    play = stage(messages=messages)
    play.agent.steer("wait")
    with pytest.raises(UsageError, match="No messages"):
        await play.agent.continue_()
    assert len(play.agent.steering_queue) == 1


async def test_an_empty_prompt_asks_nothing(stage) -> None:
    play = stage()
    await play.agent.prompt([])
    assert play.model.requests == []
    assert play.heard.word == ["agent_start", "agent_end", "agent_settled"]


async def test_parked_input_goes_in_before_the_next_prompt(stage) -> None:
    """F20: it wakes nobody, and is claimed with a prompt or a follow-up."""
    play = stage("one", "two")
    play.agent.next_turn("by the way")
    play.agent.follow_up("and")
    await play.agent.prompt("Hello")
    assert play.said() == ["by the way", "Hello", "and"]


async def test_parked_input_waits_while_steering_runs(stage) -> None:
    """F20: a step that only steering caused leaves it."""
    play = stage("one", messages=[HELLO, AssistantMessage((TextContent("Hi"),))])
    play.agent.next_turn("by the way")
    play.agent.steer("now")
    await play.agent.continue_()
    assert play.said() == ["Hello", "now"]


# ------------------------------------------------------------------ what is queued


async def test_what_waits_can_be_seen_edited_moved_and_removed(stage) -> None:
    """Until it is claimed; an id stays the same for as long as its message waits."""
    play = stage("1", "2", "3", "4")
    agent = play.agent
    for add in (agent.steer, agent.follow_up, agent.next_turn):
        add("one")
        add("two")
    for queue in ("steering_queue", "follow_up_queue", "next_turn_queue"):
        one, two = getattr(agent, queue)
        agent.edit_queued(one.id, "other", [PICTURE])
        agent.move_queued(two.id, 0)
        agent.remove_queued(one.id) if queue == "follow_up_queue" else None
    assert len({each.id for each in (*agent.steering_queue, *agent.next_turn_queue)}) == 4
    await agent.prompt("Go")
    assert play.said() == ["two", "two", "other", "Go", "other", "two"]
    assert play.agent.messages[2].content[1] == PICTURE
    assert agent.steering_queue == agent.follow_up_queue == agent.next_turn_queue == ()


@pytest.mark.parametrize("act", ["edit", "remove", "move"])
async def test_what_was_claimed_cannot_be_edited(stage, act) -> None:
    play = stage("Hi")
    play.agent.steer("now")
    (item,) = play.agent.steering_queue
    await play.agent.prompt("Hello")
    actions = {
        "edit": lambda: play.agent.edit_queued(item.id, "later"),
        "remove": lambda: play.agent.remove_queued(item.id),
        "move": lambda: play.agent.move_queued(item.id, 0),
    }
    with pytest.raises(UsageError, match=f"Nothing with the id {item.id} waits"):
        actions[act]()
    assert play.said() == ["now", "Hello"]


async def test_what_was_taken_back_is_still_what_it_was(stage) -> None:
    """QS-06: a command of the user does not become a prompt; QS-08: images stay."""
    play = stage("Hi", steering_mode="all")
    command = BashExecutionMessage("ls", "a.txt", 0)
    play.agent.steer(command)
    play.agent.steer("And this?", [PICTURE])
    waiting = play.agent.steering_queue
    play.agent.clear_all_queues()
    for item in waiting:
        play.agent.steer(item.message)
    await play.agent.prompt("Go")
    assert play.agent.messages[0] is command
    assert play.agent.messages[1].content == (TextContent("And this?"), PICTURE)


# ------------------------------------------------------------------ state


async def test_reset_forgets_everything(stage) -> None:
    """A7: transcript, every queue, and the error."""
    play = stage(Failure("broken"), "Hi")
    await play.agent.prompt("Hello")
    play.agent.steer("a")
    play.agent.follow_up("b")
    play.agent.next_turn("c")
    assert play.agent.error_message == "broken"
    play.agent.reset()
    assert (play.agent.messages, play.agent.error_message) == ((), None)
    await play.agent.prompt("again")
    assert play.request(1) == ["again"]


async def test_clearing_the_queues_leaves_parked_input(stage) -> None:
    play = stage("Hi")
    play.agent.steer("a")
    play.agent.follow_up("b")
    play.agent.next_turn("c")
    play.agent.clear_all_queues()
    assert play.agent.steering_queue == play.agent.follow_up_queue == ()
    await play.agent.prompt("Hello")
    assert play.said() == ["c", "Hello"]


async def test_a_run_is_streaming_and_starts_without_error(stage) -> None:
    """A8, A11: `turn_end` with a failure sets the error, the next start clears it."""
    play, seen = stage(Failure("broken"), "Hi"), []
    play.agent.subscribe(
        lambda event: seen.append((event.type, play.agent.is_streaming, play.agent.error_message))
    )
    await play.agent.prompt("Hello")
    assert ("turn_end", True, "broken") in seen
    assert ("message_end", True, "broken") not in seen
    seen.clear()
    await play.agent.prompt("Hello")
    assert {state[1:] for state in seen if state[0] != "agent_settled"} == {(True, None)}
    assert seen[-1] == ("agent_settled", False, None)


async def test_the_streaming_message_grows_and_becomes_the_last_one(stage) -> None:
    """A9: state after each event of the answer."""
    play, seen = stage(Text.of("Hel", "lo")), []

    def look(event) -> None:
        if event.type.startswith("message") and len(play.heard.events) > 3:
            streaming = play.agent.streaming_message
            seen.append((event.type, streaming and streaming.text, len(play.agent.messages)))

    play.agent.subscribe(look)
    await play.agent.prompt("Hi")
    updates = [("message_update", text, 1) for text in ("", "Hel", "Hello", "Hello")]
    assert seen == [("message_end", None, 1), ("message_start", "", 1), *updates, ("message_end", None, 2)]


async def test_pending_calls_are_a_new_set_at_every_change(stage, autojump_clock) -> None:
    """A10: an old snapshot is never changed."""
    play = stage([Call("work", {"seconds": 1}, id="a"), Call("work", {"seconds": 2}, id="b")], "Hi")
    snapshots = []
    play.agent.subscribe(lambda event: snapshots.append(play.agent.pending_tool_calls))
    await play.agent.prompt("Hello")
    changes = [each for each, last in zip(snapshots[1:], snapshots, strict=False) if each != last]
    assert changes == [{"a"}, {"a", "b"}, {"b"}, set()]


async def test_settings_changed_between_runs_hold_from_the_next_request(stage) -> None:
    play = stage("one", "two")
    await play.agent.prompt("Hello")
    play.agent.system_prompt, play.agent.thinking_level = "Be brief.", "high"
    play.agent.messages = [HELLO]
    await play.agent.prompt("again")
    request = play.model.requests[1]
    assert (request.context.system_prompt, request.options.thinking_level) == ("Be brief.", "high")
    assert play.request(1) == ["Hello", "again"]


# ------------------------------------------------------------------ listeners and channels


async def test_listeners_are_awaited_in_order(stage) -> None:
    """A12, F13: nothing of the run goes on before the slowest is done."""
    trace = []

    async def slow(event) -> None:
        await wait_all_tasks_blocked()
        trace.append(("slow", event.type))

    play = stage("Hi", listener=slow)
    play.agent.subscribe(lambda event: trace.append(("quick", event.type)))
    await play.agent.prompt("Hello")
    assert trace == [(who, event.type) for event in play.heard.events for who in ("slow", "quick")]


async def test_idle_means_that_the_listeners_of_the_end_are_done(stage, autojump_clock) -> None:
    """A13: and `agent_settled` says so."""
    ended = []

    async def slow(event) -> None:
        if isinstance(event, AgentEnd):
            await trio.sleep(5)
            ended.append(trio.current_time())

    play = stage("Hi", listener=slow)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(play.agent.prompt, "Hello")
        await wait_all_tasks_blocked()
        assert play.agent.is_streaming
        await play.agent.wait_for_idle()
        assert ended == [trio.current_time()]


async def test_unsubscribing_stops_delivery(stage) -> None:
    """A14: at once, also from within; twice is the same as once."""
    play, heard = stage("Hi"), []

    def once(event) -> None:
        heard.append(event)
        unsubscribe()
        unsubscribe()

    unsubscribe = play.agent.subscribe(once)
    await play.agent.prompt("Hello")
    assert len(heard) == 1


async def test_a_channel_merges_what_was_not_read_and_ends(stage) -> None:
    play = stage(Text.of(*"abcdef"))
    async with play.agent.open_events() as events:
        await play.agent.prompt("Hello")
        told = [event async for event in events]
    deltas = [each.assistant_message_event for each in told if isinstance(each, MessageUpdate)]
    assert [each.delta for each in deltas if each.type == "text_delta"] == ["abcdef"]
    assert told[-1].type == "agent_settled"


async def test_a_channel_that_nobody_reads_holds_up_neither_the_run_nor_another(
    stage, autojump_clock
) -> None:
    """CC-03: its text is dropped for a gap, and what comes afterwards is there."""
    megabyte = "x" * 1_000_000
    play = stage([Text.of(megabyte), Pause(1)] * 12)
    async with play.agent.open_events() as unread, play.agent.open_events() as events:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(play.agent.prompt, "Hello")
            updates = [event async for event in events if isinstance(event, MessageUpdate)]
        late = [event async for event in unread]
    deltas = [each.assistant_message_event for each in updates]
    assert sum(len(each.delta) for each in deltas if each.type == "text_delta") == 12 * len(megabyte)
    assert late[0] == Gap()
    assert late[-1].type == "agent_settled"
    assert len(late) < 20


async def test_leaving_a_channel_early_leaves_the_run_alone(stage) -> None:
    play = stage("Hi")
    async with trio.open_nursery() as nursery, play.agent.open_events() as events:
        nursery.start_soon(play.agent.prompt, "Hello")
        assert (await events.receive()).type == "agent_start"
    assert play.said("assistant") == ["Hi"]


async def test_a_reader_is_woken_by_each_event(stage, autojump_clock) -> None:
    play = stage([Text.of("a"), Pause(1), Text.of("b")])
    async with play.agent.open_events() as events, trio.open_nursery() as nursery:
        nursery.start_soon(play.agent.prompt, "Hello")
        heard = [(event, trio.current_time()) async for event in events]
    times = [(event.message.text, at) for event, at in heard if isinstance(event, MessageUpdate)]
    (began, ended) = [next(at for text, at in times if text == wanted) for wanted in ("a", "ab")]
    assert ended - began == 1.0


# ------------------------------------------------------------------ how a run ends


@pytest.mark.parametrize("before", [(), (Text.of("Half an ans"),)])
async def test_a_stream_that_raises_still_closes_the_run(stage, before) -> None:
    """A15: an error message, one `agent_end`, clean state, and the exception for the caller."""
    play = stage([*before, RuntimeError("wire cut")], "Fine")
    with pytest.raises(RuntimeError, match="wire cut"):
        await play.agent.prompt("Hello")
    assert play.heard.word[-4:] == ["message_end", "turn_end", "agent_end", "agent_settled"]
    last = play.agent.messages[-1]
    assert (last.stop_reason, last.error_message) == ("error", "RuntimeError: wire cut")
    assert play.agent.error_message == "RuntimeError: wire cut"
    await play.agent.prompt("again")
    assert play.request(1) == ["Hello", "again"]


async def test_an_abort_while_it_streams_keeps_what_was_visible(stage, autojump_clock) -> None:
    """A16: stop reason `aborted`, then `turn_end`, `agent_end`."""
    play = stage([Text.of("Once upon"), Hang()])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(play.agent.prompt, "Tell me")
        await wait_all_tasks_blocked()
        play.agent.abort()
    last = play.agent.messages[-1]
    assert (last.text, last.stop_reason) == ("Once upon", "aborted")
    assert play.heard.word[-4:] == ["message_end", "turn_end", "agent_end", "agent_settled"]
    assert play.heard.events[-1].aborted


async def test_an_abort_when_nothing_runs_does_nothing(stage) -> None:
    play = stage("Hi")
    play.agent.abort()
    await play.agent.prompt("Hello")
    play.agent.abort()
    assert play.said("assistant") == ["Hi"]
    assert not play.heard.events[-1].aborted
