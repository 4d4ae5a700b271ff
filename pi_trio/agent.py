"""`Agent`: a conversation in memory, with tools, queues, listeners and abort.

The stateful shell around the loop, for programs that embed an agent and need no file. One
run at a time; everything happens on the trio thread of the caller. No global state, no
signal handlers, nothing read from the environment.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import TypeAlias

import attrs
import trio
from attrs import frozen

from pi_trio.errors import BusyError, UsageError
from pi_trio.events import (
    AgentEvent,
    AgentSettled,
    AgentStart,
    InputReturned,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    ToolExecutionEnd,
    ToolExecutionStart,
    TurnEnd,
)
from pi_trio.hub import Hub, Listener, Outbox
from pi_trio.llm.partial import PartialView
from pi_trio.llm.protocol import Failure, Model, StreamFunction, StreamOptions, ThinkingLevel
from pi_trio.loop.convert import LlmView
from pi_trio.loop.driver import (
    Admission,
    EnterStep,
    Fact,
    QueueMode,
    RejectStep,
    Request,
    Retry,
    Step,
    Turn,
    TurnEndReason,
)
from pi_trio.loop.hooks import AgentContext, GetMessages, Hooks, RequestContext, TurnUpdate
from pi_trio.loop.lifetime import Lifetime
from pi_trio.loop.run import run_agent_loop
from pi_trio.messages import (
    AgentMessage,
    AssistantMessage,
    ImageContent,
    UserMessage,
)
from pi_trio.tool import ExecutionMode, Tool

__all__ = ["Agent", "AgentInput", "QueueMode"]

AgentInput: TypeAlias = str | AgentMessage | Sequence[AgentMessage]


def input_messages(message: AgentInput, images: Iterable[ImageContent] = ()) -> list[AgentMessage]:
    """What a prompt means: text is one user message, with images after it; messages pass as they are."""
    if isinstance(message, str):
        return [UserMessage.of(message, images)]
    return list(message) if isinstance(message, (list, tuple)) else [message]  # type: ignore[list-item]


class _Queue:
    """Messages that wait to be claimed, all at once or one at a time."""

    def __init__(self, mode: QueueMode) -> None:
        self.mode = mode
        self.items: deque[AgentMessage] = deque()
        self._claimed: list[AgentMessage] = []

    def claim(self) -> list[AgentMessage]:
        """Take out what may be used now."""
        count = min(1, len(self.items)) if self.mode == "one-at-a-time" else len(self.items)
        self._claimed = [self.items.popleft() for _ in range(count)]
        return self._claimed

    def restore(self, messages: Sequence[AgentMessage]) -> list[AgentMessage]:
        """Put back what the last claim took out. Gives those that came from elsewhere."""
        mine = {id(message) for message in self._claimed}
        self.items.extendleft(message for message in reversed(messages) if id(message) in mine)
        self._claimed = []
        return [message for message in messages if id(message) not in mine]


@frozen
class _FirstTurn:
    """How a run begins. A batch that is `steering` is not joined by more of it, nor by parked input."""

    batch: Sequence[AgentMessage]
    owed: bool = False
    steering: bool = False


class Agent:
    """An agent in memory.

    Of the registered `tools`, those in `active_tool_names` are offered to the model (None:
    all); a tool result may activate others. `stream_fn` talks to the model; `hooks` and
    `options` go into every run and request.
    `get_api_key` is asked before each request and wins over the key in `options`.
    `abort_grace` is how long, in seconds, hooks and listeners may still take after an abort.
    """

    def __init__(
        self,
        *,
        model: Model,
        stream_fn: StreamFunction,
        system_prompt: str = "",
        tools: Iterable[Tool] = (),
        active_tool_names: Iterable[str] | None = None,
        messages: Iterable[AgentMessage] = (),
        thinking_level: ThinkingLevel = "off",
        hooks: Hooks | None = None,
        options: StreamOptions | None = None,
        get_api_key: Callable[[str], Awaitable[str | None]] | None = None,
        steering_mode: QueueMode = "one-at-a-time",
        follow_up_mode: QueueMode = "one-at-a-time",
        tool_execution: ExecutionMode = "parallel",
        max_parallel_tool_calls: int = 10,
        abort_grace: float = 2.0,
    ) -> None:
        self.model = model
        self.thinking_level = thinking_level
        self.system_prompt = system_prompt
        self.tools: tuple[Tool, ...] = tuple(tools)
        self.active_tool_names = None if active_tool_names is None else tuple(active_tool_names)
        self.stream_fn = stream_fn
        self.hooks = hooks or Hooks()
        self.options = options or StreamOptions()
        self.get_api_key = get_api_key
        self.tool_execution: ExecutionMode = tool_execution
        self.max_parallel_tool_calls = max_parallel_tool_calls
        self.abort_grace = abort_grace
        self.error_message: str | None = None
        self._hub = Hub(self._reduce)
        self._messages: list[AgentMessage] = list(messages)
        self._view = LlmView()
        self._steering = _Queue(steering_mode)
        self._follow_up = _Queue(follow_up_mode)
        self._parked = _Queue("all")
        self._carried = _Queue("all")  # contexts of tool results, for the next step
        self._run: _AgentDriver | None = None
        self._idle = trio.Event()
        self._idle.set()
        self._streaming: AssistantMessage | PartialView | None = None
        self._pending: frozenset[str] = frozenset()

    # ------------------------------------------------------------------ state

    @property
    def messages(self) -> tuple[AgentMessage, ...]:
        """The transcript. Assign to replace it; not while a run is in progress."""
        return tuple(self._messages)

    @messages.setter
    def messages(self, messages: Iterable[AgentMessage]) -> None:
        self._refuse_while_running("replace the messages")
        self._messages = list(messages)
        self._view = LlmView()

    @property
    def active_tools(self) -> tuple[Tool, ...]:
        """The tools that the next request offers."""
        names = self.active_tool_names
        return self.tools if names is None else tuple(tool for tool in self.tools if tool.name in names)

    @property
    def is_streaming(self) -> bool:
        """Whether a run is in progress, until every listener of its end is done."""
        return self._run is not None

    @property
    def streaming_message(self) -> AssistantMessage | None:
        """The answer that is streaming, so far."""
        streaming = self._streaming
        return streaming.message if isinstance(streaming, PartialView) else streaming

    @property
    def pending_tool_calls(self) -> frozenset[str]:
        """The ids of the calls that have started and not ended; a new set at every change."""
        return self._pending

    # ------------------------------------------------------------------ listening

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Have `listener` called, and awaited, for every event in order. Returns unsubscribe.

        A listener's exception ends the run and is raised by the call that started it. A
        listener cannot wait for a run; it may start one in a task.
        """
        return self._hub.subscribe(listener)

    @asynccontextmanager
    async def open_events(self) -> AsyncIterator[trio.abc.ReceiveChannel[AgentEvent]]:
        """The events from now on, as a channel that never slows the agent.

        Deltas merge while they are not read. The channel ends after `agent_settled`, or when
        the block is left.
        """
        channel = _EventChannel(self._hub)
        try:
            yield channel
        finally:
            await channel.aclose()

    # ------------------------------------------------------------------ running

    async def prompt(self, message: AgentInput, images: Iterable[ImageContent] = ()) -> None:
        """Run until the agent stops. Raises `BusyError` while a run is in progress.

        A failing provider is not an exception: see `error_message` and the last message.
        What a hook or listener raises is raised here when the run is closed. Cancelled, the
        run is closed first; the visible part of the answer is kept.
        """
        await self._start(_FirstTurn(input_messages(message, images)))

    async def continue_(self) -> None:
        """Run from the transcript as it is: after a user message or a tool result.

        After an answer the queues are taken first. Raises `UsageError` if there is nothing
        to continue from.
        """
        self._refuse_to_start("continue")
        last = self._messages[-1] if self._messages else None
        if last is None or last.role == "system":
            raise UsageError("No messages to continue from.")
        if not isinstance(last, AssistantMessage):
            await self._start(_FirstTurn((), owed=True))
            return
        steering = self._steering.claim()
        queued = steering or self._follow_up.claim()
        if not queued:
            raise UsageError("Cannot continue from an assistant message: nothing is queued.")
        await self._start(_FirstTurn(queued, steering=bool(steering)))

    def abort(self) -> None:
        """Stop the run at its next checkpoint; queues stay. Use `wait_for_idle` to await the end."""
        if self._run is not None:
            self._run.lifetime.cancel()

    def abort_call(self, call_id: str) -> bool:
        """Stop one running tool call; the run goes on. False if it is not running."""
        scope = self._run.calls.get(call_id) if self._run is not None else None
        if scope is None:
            return False
        scope.cancel()
        return True

    async def wait_for_idle(self) -> None:
        """Wait until no run is in progress and every listener is done."""
        await self._idle.wait()

    def reset(self) -> None:
        """Forget transcript, queues and error. Raises `BusyError` while a run is in progress."""
        self._refuse_while_running("reset")
        self.messages = ()
        self.clear_all_queues()
        self._parked.items.clear()
        self._carried.items.clear()
        self.error_message = None

    # ------------------------------------------------------------------ queues

    def steer(self, message: AgentInput, images: Iterable[ImageContent] = ()) -> None:
        """Queue input for the next request of the run in progress, or of the next run."""
        self._steering.items.extend(input_messages(message, images))

    def follow_up(self, message: AgentInput, images: Iterable[ImageContent] = ()) -> None:
        """Queue input for when the agent would stop."""
        self._follow_up.items.extend(input_messages(message, images))

    def next_turn(self, message: AgentInput, images: Iterable[ImageContent] = ()) -> None:
        """Park input: it goes in before the next prompt or follow-up."""
        self._parked.items.extend(input_messages(message, images))

    @property
    def steering_queue(self) -> tuple[AgentMessage, ...]:
        """What waits for the next request."""
        return tuple(self._steering.items)

    @property
    def follow_up_queue(self) -> tuple[AgentMessage, ...]:
        """What waits for the agent to stop."""
        return tuple(self._follow_up.items)

    def clear_all_queues(self) -> None:
        """Drop what is queued; parked input stays."""
        self._steering.items.clear()
        self._follow_up.items.clear()

    # ------------------------------------------------------------------ inside

    def _refuse_while_running(self, what: str) -> None:
        if self._run is not None:
            raise BusyError(f"The agent is already processing a prompt: wait or abort to {what}.")

    def _refuse_to_start(self, what: str) -> None:
        self._refuse_while_running(what)
        if self._hub.telling:
            raise UsageError("A listener cannot wait for a run: start it in a task of its own.")

    async def _start(self, first: _FirstTurn) -> None:
        self._refuse_to_start("prompt again")
        run = self._run = _AgentDriver(self, first)
        self._idle = trio.Event()
        try:
            await run_agent_loop(run)
        finally:
            run.hand_back_unopened()
            self._run = None
            self._streaming = None
            self._pending = frozenset()
            self._idle.set()
            with run.lifetime.shelter():
                await self._hub.emit(AgentSettled(aborted=run.lifetime.ending))

    def _reduce(self, event: AgentEvent) -> None:
        """Take an event into the state, before anybody hears of it."""
        match event:
            case MessageUpdate():
                self._streaming = event.view
            case MessageStart(message) if isinstance(message, AssistantMessage):
                self._streaming = message
            case MessageEnd(message) if isinstance(message, AssistantMessage):
                self._streaming = None
            case ToolExecutionStart():
                self._pending |= {event.tool_call_id}
            case ToolExecutionEnd():
                self._pending -= {event.tool_call_id}
            case TurnEnd(message) if message.error_message and message.stop_reason == "error":
                self.error_message = message.error_message
            case AgentStart():
                self.error_message = None
            case _:
                pass


class _EventChannel(trio.abc.ReceiveChannel[AgentEvent]):
    """The events of an outbox, one at a time."""

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


class _AgentDriver:
    """One run of an `Agent`: the loop's driver over a list of messages."""

    def __init__(self, agent: Agent, first: _FirstTurn) -> None:
        self.hooks = agent.hooks
        self.lifetime = Lifetime(agent.abort_grace)
        self.tool_execution = agent.tool_execution
        self.new_messages: list[AgentMessage] = []
        self.calls: dict[str, trio.CancelScope] = {}
        self._agent = agent
        self._first: _FirstTurn | None = first
        self._turns = 0
        self._goes_on = True
        self._model = agent.model
        self._thinking_level = agent.thinking_level
        self._system_prompt = agent.system_prompt
        self._messages = agent._messages
        self._view = agent._view
        self._tools: tuple[Tool, ...] | None = None
        self._options = agent.options

    @property
    def records_stream(self) -> bool:
        return False  # in memory nobody could play it back

    @property
    def listening(self) -> bool:
        return self._agent._hub.listening

    @property
    def max_parallel_tool_calls(self) -> int:
        """Read at each group of calls, so that a change takes effect at the next one."""
        return self._agent.max_parallel_tool_calls

    # ------------------------------------------------------------------ input

    async def open_turn(self) -> Turn | None:
        self._turns += 1
        if self._first is not None:
            return await self._open_first(self._first)
        if not self._goes_on:
            return None
        polled = await _poll(self.hooks.get_follow_up_messages)
        prompts = [*self._agent._follow_up.claim(), *polled]
        return Turn(self._turns, (*self._agent._parked.claim(), *prompts)) if prompts else None

    async def _open_first(self, first: _FirstTurn) -> Turn:
        steering = () if first.steering else await self.claim_steering()
        self._first = None
        return Turn(1, (*steering, *self._claim_parked(first), *first.batch), first.owed)

    def _claim_parked(self, first: _FirstTurn) -> Sequence[AgentMessage]:
        """Parked input goes in before a prompt; a run that only goes on leaves it."""
        return () if first.owed or first.steering else self._agent._parked.claim()

    def hand_back_unopened(self) -> None:
        """Hand back the input of a run that ended before its first turn."""
        if self._first is not None:
            self.hand_back(self._first.batch)

    def close_turn(self, turn: Turn, reason: TurnEndReason) -> None:
        self._goes_on = reason in ("completed", "max_tokens")

    async def claim_steering(self) -> Sequence[AgentMessage]:
        polled = await _poll(self.hooks.get_steering_messages)  # first: it may fail or be cancelled
        return [*self._agent._carried.claim(), *self._agent._steering.claim(), *polled]

    def hand_back(self, messages: Sequence[AgentMessage]) -> None:
        for queue in (
            self._agent._carried,
            self._agent._steering,
            self._agent._follow_up,
            self._agent._parked,
        ):
            messages = queue.restore(messages)
        if messages:
            self._agent._hub.post(InputReturned(tuple(messages)))

    def park(self, messages: Sequence[AgentMessage]) -> None:
        self._agent._carried.items.extend(messages)

    async def pre_step(self, step: Step, messages: Sequence[AgentMessage]) -> EnterStep | RejectStep:
        return EnterStep(messages)

    async def turn_stopping(self, turn: Turn) -> None:
        """Nobody objects in memory: steering was polled, follow-ups come next."""

    # ------------------------------------------------------------------ requests

    async def prepare_request(self, step: Step) -> Request:
        if self.hooks.prepare_request is not None:
            context = RequestContext(self.snapshot(), self._model, self._thinking_level)
            update = await self.hooks.prepare_request(context)
            if update is not None:
                self.update(update)
        key = self._agent.options.api_key
        if self._agent.get_api_key is not None:
            key = await self._agent.get_api_key(self._model.provider) or key
        level = self._thinking_level
        if (self._options.api_key, self._options.thinking_level) != (key, level):
            self._options = attrs.evolve(self._agent.options, api_key=key, thinking_level=level)
        return Request(
            model=self._model,
            thinking_level=level,
            stream=self._agent.stream_fn,
            options=self._options,
        )

    def admit(self, step: Step, request: Request, messages: Sequence[AgentMessage]) -> Admission:
        self.commit(*messages)
        return Admission(
            messages, self._system_prompt, self._view.extend(self._messages), self._active_tools()
        )

    async def retry(self, step: Step, failure: Failure, attempt: int) -> Retry | Failure:
        return failure

    # ------------------------------------------------------------------ state

    def snapshot(self) -> AgentContext:
        return AgentContext(self._system_prompt, tuple(self._messages), self._active_tools())

    def commit(self, *records: AgentMessage | Fact) -> None:
        for record in records:
            if isinstance(record, Fact):
                continue  # brackets and attempts are for logs
            self.new_messages.append(record)
            self._agent._messages.append(record)
            if self._messages is not self._agent._messages:
                self._messages.append(record)

    def update(self, update: TurnUpdate) -> None:
        """For the rest of this run only; the agent's own settings stay."""
        self._model = update.model or self._model
        self._thinking_level = update.thinking_level or self._thinking_level
        if update.context is not None:
            self._system_prompt = update.context.system_prompt
            self._messages, self._view = list(update.context.messages), LlmView()
            self._tools = update.context.tools

    def add_tools(self, names: Sequence[str]) -> None:
        active = self._agent.active_tool_names
        if active is not None:
            self._agent.active_tool_names = (*active, *(name for name in names if name not in active))

    def track_call(self, call_id: str, scope: trio.CancelScope | None) -> None:
        if scope is None:
            self.calls.pop(call_id, None)
        else:
            self.calls[call_id] = scope

    async def emit(self, *events: AgentEvent) -> None:
        await self._agent._hub.emit(*events)

    def _active_tools(self) -> tuple[Tool, ...]:
        return self._tools if self._tools is not None else self._agent.active_tools


async def _poll(hook: GetMessages | None) -> Sequence[AgentMessage]:
    return await hook() if hook is not None else ()
