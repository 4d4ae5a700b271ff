"""The hub and the outbox: order, merging, overflow, and nobody left waiting."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from pi_trio.events import (
    AgentEnd,
    AgentEvent,
    AgentStart,
    Gap,
    MessageUpdate,
    ToolExecutionUpdate,
    TurnStart,
)
from pi_trio.hub import Hub, Outbox
from pi_trio.llm.partial import PartialMessage
from pi_trio.llm.protocol import TextDelta, ThinkingDelta
from pi_trio.messages import AssistantMessage, TextContent
from pi_trio.tool import ToolResult


class Reader:
    """An outbox with what its notify function was called for."""

    def __init__(self, **limits: int) -> None:
        self.notified = 0
        self.outbox = Outbox(self._notify, **limits)

    def _notify(self) -> None:
        self.notified += 1

    def types(self) -> list[str]:
        return [envelope.event.type for envelope in self.outbox.take()]


class Deltas:
    """Makes the updates of one streaming answer."""

    def __init__(self) -> None:
        self.partial = PartialMessage(AssistantMessage(()))

    def text(self, delta: str, index: int = 0) -> MessageUpdate:
        return self._update(TextDelta(index, delta))

    def thinking(self, delta: str, index: int = 0) -> MessageUpdate:
        return self._update(ThinkingDelta(index, delta))

    def _update(self, event: TextDelta | ThinkingDelta) -> MessageUpdate:
        self.partial.apply(event)
        return MessageUpdate(event, self.partial.view())


def new_hub() -> Hub:
    return Hub(lambda event: None)


async def test_deltas_of_one_block_merge_and_keep_the_last_number() -> None:
    hub, reader, deltas = new_hub(), Reader(), Deltas()
    hub.attach(reader.outbox)
    await hub.emit(AgentStart())
    for word in ("one ", "two ", "three"):
        await hub.emit(deltas.text(word))
    start, update = reader.outbox.take()
    assert (start.seq, update.seq) == (1, 4)
    assert isinstance(update.event, MessageUpdate)
    assert update.event.assistant_message_event == TextDelta(0, "one two three")
    assert update.event.message.content == (TextContent("one two three"),)


async def test_deltas_of_other_blocks_and_kinds_do_not_merge() -> None:
    hub, reader, deltas = new_hub(), Reader(), Deltas()
    hub.attach(reader.outbox)
    for update in (deltas.thinking("a"), deltas.text("b", 1), deltas.text("c", 2), deltas.text("d", 2)):
        await hub.emit(update)
    taken = [envelope.event.assistant_message_event for envelope in reader.outbox.take()]  # type: ignore[union-attr]
    assert taken == [ThinkingDelta(0, "a"), TextDelta(1, "b"), TextDelta(2, "cd")]


async def test_a_committed_event_between_deltas_keeps_its_place() -> None:
    hub, reader, deltas = new_hub(), Reader(), Deltas()
    hub.attach(reader.outbox)
    await hub.emit(deltas.text("a"), TurnStart(), deltas.text("b"))
    assert reader.types() == ["message_update", "turn_start", "message_update"]


async def test_progress_of_a_call_is_replaced_by_newer_progress() -> None:
    hub, reader = new_hub(), Reader()
    hub.attach(reader.outbox)
    for text in ("10 %", "20 %"):
        await hub.emit(ToolExecutionUpdate("a", "t", {}, ToolResult(text)))
        await hub.emit(ToolExecutionUpdate("b", "t", {}, ToolResult(text)))
    events = [envelope.event for envelope in reader.outbox.take()]
    assert [(e.tool_call_id, e.partial_result) for e in events if isinstance(e, ToolExecutionUpdate)] == [
        ("a", ToolResult("20 %")),
        ("b", ToolResult("20 %")),
    ]


async def test_numbers_rise_also_where_progress_was_replaced() -> None:
    """A reader passes over what has a number that it has seen, so an older one must not come later."""
    hub, reader, deltas = new_hub(), Reader(), Deltas()
    hub.attach(reader.outbox)
    progress = [ToolExecutionUpdate(each, "t", {}, ToolResult("")) for each in "aba"]
    await hub.emit(progress[0], deltas.text("x"), progress[1], progress[2], deltas.text("y"))
    told = [(envelope.seq, envelope.event.type) for envelope in reader.outbox.take()]
    assert told == [(3, "tool_execution_update"), (4, "tool_execution_update"), (5, "message_update")]


async def test_an_overflow_leaves_one_gap_and_goes_on_from_there() -> None:
    hub, reader = new_hub(), Reader(limit=3)
    hub.attach(reader.outbox)
    for _ in range(4):
        await hub.emit(TurnStart())
    await hub.emit(AgentStart())
    envelopes = reader.outbox.take()
    assert [type(envelope.event) for envelope in envelopes] == [Gap, AgentStart]
    assert [envelope.seq for envelope in envelopes] == [4, 5]


async def test_a_flood_of_text_that_nobody_reads_is_bounded() -> None:
    hub, reader, deltas = new_hub(), Reader(limit_characters=100), Deltas()
    hub.attach(reader.outbox)
    for _ in range(11):
        await hub.emit(deltas.text("0123456789"))
    assert reader.types() == ["gap"]


async def test_a_reader_that_never_takes_neither_delays_nor_fills_anything() -> None:
    """CC-03: the other reader misses nothing, and what waits for the slow one is bounded."""
    hub, slow, quick, deltas = new_hub(), Reader(limit_characters=1_000), Reader(), Deltas()
    hub.attach(slow.outbox)
    hub.attach(quick.outbox)
    got: list[str] = []
    for _ in range(5_000):
        await hub.emit(deltas.text("0123456789"))
        got += quick.types()
    assert got == ["message_update"] * 5_000
    assert slow.types() == ["gap", "message_update"]  # what came last, merged, within the limit


async def test_the_reader_is_woken_once_until_it_takes() -> None:
    hub, reader = new_hub(), Reader()
    hub.attach(reader.outbox)
    await hub.emit(TurnStart(), TurnStart())
    assert reader.notified == 1
    reader.outbox.take()
    await hub.emit(TurnStart())
    assert reader.notified == 2


async def test_a_detached_outbox_is_closed_and_gets_nothing_more() -> None:
    hub, reader = new_hub(), Reader()
    hub.attach(reader.outbox)
    await hub.emit(TurnStart())
    hub.detach(reader.outbox)
    await hub.emit(AgentStart())
    assert reader.outbox.closed
    assert reader.types() == ["turn_start"]


async def test_listeners_are_awaited_in_order_before_outboxes_are_filled() -> None:
    hub, reader, trace = new_hub(), Reader(), []
    hub.attach(reader.outbox)

    async def slow(event: AgentEvent) -> None:
        await trio.testing.wait_all_tasks_blocked()
        trace.append(("slow", event.type, len(reader.outbox.take())))

    hub.subscribe(slow)
    unsubscribe = hub.subscribe(lambda event: trace.append(("quick", event.type, 0)))
    await hub.emit(AgentStart())
    unsubscribe()
    await hub.emit(TurnStart())
    assert trace == [("slow", "agent_start", 0), ("quick", "agent_start", 0), ("slow", "turn_start", 1)]


async def test_a_failing_listener_is_raised_after_everybody_was_told() -> None:
    hub, reader, told = new_hub(), Reader(), []
    hub.attach(reader.outbox)

    def failing(event: AgentEvent) -> None:
        raise ValueError("listener")

    hub.subscribe(failing)
    hub.subscribe(lambda event: told.append(event.type))
    with pytest.raises(ValueError, match="listener"):
        await hub.emit(AgentStart(), TurnStart())
    assert told == ["agent_start", "turn_start"]
    assert reader.types() == ["agent_start", "turn_start"]


async def test_a_cancelled_emission_still_fills_the_outboxes() -> None:
    hub, reader = new_hub(), Reader()
    hub.attach(reader.outbox)

    async def stuck(event: AgentEvent) -> None:
        await trio.sleep_forever()

    hub.subscribe(stuck)
    with trio.CancelScope() as scope:
        scope.cancel()
        await hub.emit(AgentStart(), TurnStart())
    assert scope.cancelled_caught
    assert reader.types() == ["agent_start", "turn_start"]


async def test_events_posted_by_a_listener_come_after_the_event_that_it_heard(nursery: trio.Nursery) -> None:
    hub, reader = new_hub(), Reader()
    hub.attach(reader.outbox)
    nursery.start_soon(hub.pump)

    def answers(event: AgentEvent) -> None:
        if isinstance(event, AgentStart):
            hub.post(TurnStart())

    hub.subscribe(answers)
    await hub.emit(AgentStart(), AgentEnd(()))
    assert reader.types() == ["agent_start", "agent_end", "turn_start"]


async def test_events_posted_while_nothing_is_emitted_reach_the_listeners(nursery: trio.Nursery) -> None:
    hub, told = new_hub(), []
    nursery.start_soon(hub.pump)
    hub.subscribe(lambda event: told.append(event.type))
    hub.post(TurnStart())
    await trio.testing.wait_all_tasks_blocked()
    assert told == ["turn_start"]


async def test_events_from_two_tasks_reach_every_listener_in_one_order(nursery: trio.Nursery) -> None:
    hub, first, second = new_hub(), [], []

    async def slow(event: AgentEvent) -> None:
        first.append(event.type)
        await trio.testing.wait_all_tasks_blocked()

    hub.subscribe(slow)
    hub.subscribe(lambda event: second.append(event.type))
    async with trio.open_nursery() as tasks:
        tasks.start_soon(hub.emit, AgentStart(), TurnStart())
        tasks.start_soon(hub.emit, AgentEnd(()))
    assert first == second
    assert len(first) == 3


async def test_the_state_is_reduced_before_anybody_hears_of_an_event() -> None:
    state: list[str] = []
    hub = Hub(lambda event: state.append(event.type))
    heard: list[tuple[str, int]] = []
    hub.subscribe(lambda event: heard.append((event.type, len(state))))
    await hub.emit(AgentStart(), TurnStart())
    assert heard == [("agent_start", 1), ("turn_start", 2)]
