"""Event fan-out: listeners that are awaited, and outboxes that never make anybody wait.

`Hub.emit` awaits the listeners in subscription order, then fills the outboxes. A subscriber
that must not slow the agent (a screen, a network client) takes an `Outbox`: deltas of one
stream merge in it while it is not read, committed events are never merged, and when it
overflows its content is replaced by one `Gap`.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

import trio
from attrs import define, frozen

from pi_trio.events import AgentEvent, AgentSettled, Gap, MessageUpdate, ToolExecutionUpdate
from pi_trio.llm.partial import PartialView
from pi_trio.llm.protocol import StreamEvent, TextDelta, ThinkingDelta, ToolCallDelta

__all__ = ["Envelope", "EventChannel", "Hub", "Listener", "Outbox"]

Listener: TypeAlias = Callable[[AgentEvent], Awaitable[None] | None]


@frozen
class Envelope:
    """An event with its place in the order. A merged one carries the last number it stands for."""

    seq: int
    event: AgentEvent


_DELTAS = (TextDelta, ThinkingDelta, ToolCallDelta)


@define
class _Merged:
    """Consecutive pieces of one block, joined only when they are taken."""

    kind: type[TextDelta] | type[ThinkingDelta] | type[ToolCallDelta]
    index: int
    pieces: list[str]
    view: PartialView
    seq: int
    place: int = 0

    def envelope(self) -> Envelope:
        delta: StreamEvent = self.kind(self.index, "".join(self.pieces))
        return Envelope(self.seq, MessageUpdate(delta, self.view))


@define
class _Plain:
    """Any other event; a tool's progress is replaced by newer progress."""

    event: AgentEvent
    seq: int
    place: int = 0

    def envelope(self) -> Envelope:
        return Envelope(self.seq, self.event)


class Outbox:
    """A bounded, coalescing mailbox between the agent and one reader, in any thread.

    `notify` is called in the agent's thread when the outbox stops being empty; it must
    return at once and must not raise. `limit` counts items, `limit_characters` the text of
    merged deltas.
    """

    def __init__(
        self, notify: Callable[[], None], *, limit: int = 4096, limit_characters: int = 8_000_000
    ) -> None:
        self._notify = notify
        self._limit = limit
        self._limit_characters = limit_characters
        self._lock = threading.Lock()
        self._items: dict[int, _Merged | _Plain] = {}  # in order: what merges moves to the end
        self._last_place = 0
        self._last_delta: _Merged | None = None
        self._progress: dict[str, _Plain] = {}
        self._characters = 0
        self.closed: bool = False

    def put(self, seq: int, event: AgentEvent) -> None:
        """Take in an event. Called in the agent's thread; never waits."""
        with self._lock:
            if self.closed:
                return
            was_empty = not self._items
            if isinstance(event, MessageUpdate):
                self._put_update(seq, event)
            else:
                self._put_plain(seq, event)
            if len(self._items) > self._limit or self._characters > self._limit_characters:
                self._reset()
                self._append(_Plain(Gap(), seq))
        if was_empty:
            self._notify()

    def take(self) -> list[Envelope]:
        """All that waits, in order. Empty when nothing does."""
        with self._lock:
            items = self._items
            self._reset()
        return [item.envelope() for item in items.values()]

    def close(self) -> None:
        """No more events. What is in the outbox can still be taken; the reader is notified once."""
        with self._lock:
            if self.closed:
                return
            self.closed = True
        self._notify()

    def _reset(self) -> None:
        self._items = {}
        self._last_delta = None
        self._progress = {}
        self._characters = 0

    def _append(self, item: _Merged | _Plain) -> None:
        self._last_place += 1
        item.place = self._last_place
        self._items[item.place] = item

    def _move_to_end(self, item: _Merged | _Plain) -> None:
        """Numbers rise from item to item, so one that takes a later number goes behind those before it."""
        if item.place != self._last_place:
            del self._items[item.place]
            self._append(item)

    def _put_update(self, seq: int, event: MessageUpdate) -> None:
        piece = event.assistant_message_event
        if not isinstance(piece, _DELTAS):
            self._last_delta = None
            self._append(_Plain(event, seq))
            return
        self._characters += len(piece.delta)
        last = self._last_delta
        if last is not None and last.kind is type(piece) and last.index == piece.content_index:
            last.pieces.append(piece.delta)
            last.view, last.seq = event.view, seq
            self._move_to_end(last)
        else:
            last = _Merged(type(piece), piece.content_index, [piece.delta], event.view, seq)
            self._last_delta = last
            self._append(last)

    def _put_plain(self, seq: int, event: AgentEvent) -> None:
        if not isinstance(event, ToolExecutionUpdate):
            self._last_delta, self._progress = None, {}
            self._append(_Plain(event, seq))
            return
        waiting = self._progress.get(event.tool_call_id)
        if waiting is None:
            waiting = self._progress[event.tool_call_id] = _Plain(event, seq)
            self._append(waiting)
        else:
            waiting.event, waiting.seq = event, seq
            self._move_to_end(waiting)


class Hub:
    """Tells everybody, in one total order. One hub per agent or session.

    `reduce` takes each event into the owner's state just before anybody hears of it.
    """

    def __init__(self, reduce: Callable[[AgentEvent], None]) -> None:
        self.seq: int = 0
        self._reduce = reduce
        self._listeners: list[Listener] = []
        self._outboxes: list[Outbox] = []
        self._telling = trio.Lock()
        self._posted: deque[AgentEvent] = deque()
        self._wake = trio.Event()

    @property
    def listening(self) -> bool:
        """Whether `emit` may have to wait."""
        return bool(self._listeners or self._posted or self._telling.locked())

    @property
    def telling(self) -> bool:
        """Whether the current task is a listener being told, which cannot wait for further events."""
        return self._telling.statistics().owner is trio.lowlevel.current_task()

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Have `listener` called, and awaited, for every event. Returns the unsubscribe function."""
        self._listeners.append(listener)

        def unsubscribe() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return unsubscribe

    @asynccontextmanager
    async def open_events(self) -> AsyncIterator[trio.abc.ReceiveChannel[AgentEvent]]:
        """The events from now on, as a channel that never slows the agent.

        Deltas merge while they are not read. The channel ends after `agent_settled`, or when
        the block is left.
        """
        channel = EventChannel(self)
        try:
            yield channel
        finally:
            await channel.aclose()

    def attach(self, outbox: Outbox) -> None:
        """Fill `outbox` with every event from now on."""
        self._outboxes.append(outbox)

    def detach(self, outbox: Outbox) -> None:
        """Stop filling `outbox`, and close it."""
        if outbox in self._outboxes:
            self._outboxes.remove(outbox)
        outbox.close()

    def close(self) -> None:
        """Detach every outbox and forget the listeners."""
        for outbox in tuple(self._outboxes):
            self.detach(outbox)
        self._listeners.clear()

    async def emit(self, *events: AgentEvent) -> None:
        """Tell everybody of `events`, with nothing in between.

        A listener's exception is raised after all others have been told. Cancelled, everybody
        is told all the same; a listener that waits sees the cancellation.
        """
        if not self.listening:
            for event in events:
                self._reduce(event)
                self._fill(event)
            return
        self._posted.extend(events)
        await self._tell()

    def post(self, event: AgentEvent) -> None:
        """Tell everybody of `event` soon, in order, without waiting. For synchronous commands."""
        if self.listening:
            self._posted.append(event)
            self._wake.set()
        else:
            self._reduce(event)
            self._fill(event)

    async def pump(self) -> None:
        """Deliver what is posted while no run does it. Runs until it is cancelled."""
        while True:
            await self._wake.wait()
            self._wake = trio.Event()
            await self._tell()

    async def _tell(self) -> None:
        """Deliver all that is posted. Who must wait for another task here may find that it did."""
        if self._telling.locked():
            await self._telling.acquire()
        else:
            self._telling.acquire_nowait()
        try:
            await self._deliver()
        finally:
            self._telling.release()

    async def _deliver(self) -> None:
        """Tell the listeners of each event that waits, then fill the outboxes."""
        failure: BaseException | None = None
        while self._posted:
            event = self._posted.popleft()
            self._reduce(event)
            for listener in tuple(self._listeners):
                try:
                    waiting = listener(event)
                    if waiting is not None:
                        await waiting
                except BaseException as error:  # a cancellation too: nobody hears half of a run
                    if failure is None or isinstance(failure, trio.Cancelled):
                        failure = error
            self._fill(event)
        if failure is not None:
            raise failure

    def _fill(self, event: AgentEvent) -> None:
        self.seq += 1
        for outbox in self._outboxes:
            outbox.put(self.seq, event)


class EventChannel(trio.abc.ReceiveChannel[AgentEvent]):
    """The events of a hub from now on, one at a time, until a run has settled. Never slows the agent."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._wake = trio.Event()
        self._batch: deque[AgentEvent] = deque()
        self._ended = False
        self._outbox = Outbox(lambda: self._wake.set())
        hub.attach(self._outbox)

    async def receive(self) -> AgentEvent:
        while not self._batch:
            if self._outbox.closed or self._ended:
                raise trio.EndOfChannel
            await self._wake.wait()
            self._wake = trio.Event()
            self._batch.extend(envelope.event for envelope in self._outbox.take())
        event = self._batch.popleft()
        self._ended = isinstance(event, AgentSettled)
        return event

    async def aclose(self) -> None:
        self._hub.detach(self._outbox)
        await trio.lowlevel.checkpoint()
