"""`Agent`: a conversation in memory, with tools, queues, listeners and abort.

The stateful shell around the loop, for programs that embed an agent and need no file. One
run at a time; everything happens on the trio thread of the caller. No global state, no
signal handlers, nothing read from the environment.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TypeAlias

import trio

from pi_trio.agent_driver import AgentDriver, FirstTurn, Transcript
from pi_trio.agent_queue import AgentQueues, QueueItem
from pi_trio.errors import BusyError, UsageError
from pi_trio.events import (
    AgentEvent,
    AgentSettled,
    AgentStart,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    ToolExecutionEnd,
    ToolExecutionStart,
    TurnEnd,
)
from pi_trio.hub import Hub, Listener
from pi_trio.llm.partial import PartialView
from pi_trio.llm.protocol import Model, StreamFunction, StreamOptions, ThinkingLevel, as_model
from pi_trio.loop.driver import QueueMode
from pi_trio.loop.grammar import guarded
from pi_trio.loop.hooks import Hooks
from pi_trio.loop.lifetime import ABORT_GRACE
from pi_trio.loop.run import last_message, run_agent_loop, run_agent_loop_continue
from pi_trio.messages import AgentMessage, AssistantMessage, ImageContent, UserMessage
from pi_trio.tool import ExecutionMode, Tool, named_apart, names_of

__all__ = ["Agent", "AgentInput", "QueueMode"]

AgentInput: TypeAlias = str | AgentMessage | Sequence[AgentMessage]


def input_messages(message: AgentInput, images: Iterable[ImageContent] = ()) -> list[AgentMessage]:
    """What a prompt means: text is one user message, with images after it; messages pass as they are."""
    if isinstance(message, str):
        return [UserMessage.of(message, images)]
    return list(message) if isinstance(message, (list, tuple)) else [message]  # type: ignore[list-item]


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
        abort_grace: float = ABORT_GRACE,
    ) -> None:
        self.model: Model = as_model(model)
        self.thinking_level = thinking_level
        self.system_prompt = system_prompt
        self.tools: tuple[Tool, ...] = named_apart(tools)
        self.active_tool_names: tuple[str, ...] | None = (
            None if active_tool_names is None else names_of(self.tools, active_tool_names)
        )
        self.stream_fn = stream_fn
        self.hooks: Hooks = hooks or Hooks()
        self.options: StreamOptions = options or StreamOptions()
        self.get_api_key = get_api_key
        self.steering_mode: QueueMode = steering_mode
        self.follow_up_mode: QueueMode = follow_up_mode
        self.tool_execution: ExecutionMode = tool_execution
        self.max_parallel_tool_calls = max_parallel_tool_calls
        self.abort_grace = abort_grace
        self.error_message: str | None = None
        self._hub = Hub(guarded(self._reduce))
        self._transcript = Transcript(messages)
        self._queues = AgentQueues()
        self._run: AgentDriver | None = None
        self._idle = trio.Event()
        self._idle.set()
        self._streaming: AssistantMessage | PartialView | None = None
        self._pending: frozenset[str] = frozenset()

    # ------------------------------------------------------------------ state

    @property
    def messages(self) -> tuple[AgentMessage, ...]:
        """The transcript. Assign to replace it; not while a run is in progress."""
        return tuple(self._transcript.messages)

    @messages.setter
    def messages(self, messages: Iterable[AgentMessage]) -> None:
        self._refuse_while_running("replace the messages")
        self._transcript = Transcript(messages)

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

    def open_events(self) -> AbstractAsyncContextManager[trio.abc.ReceiveChannel[AgentEvent]]:
        """The events from now on, as a channel that never slows the agent.

        Deltas merge while they are not read. The channel ends after `agent_settled`, or when
        the block is left.
        """
        return self._hub.open_events()

    # ------------------------------------------------------------------ running

    async def prompt(self, message: AgentInput, images: Iterable[ImageContent] = ()) -> None:
        """Run until the agent stops. Raises `BusyError` while a run is in progress.

        A failing provider is not an exception: see `error_message` and the last message.
        What a hook or listener raises is raised here when the run is closed. Cancelled, the
        run is closed first; the visible part of the answer is kept.
        """
        await self._start(FirstTurn(prompt=input_messages(message, images)))

    async def continue_(self) -> None:
        """Run from the transcript as it is: after a user message or a tool result.

        After an answer the queues are taken first. Raises `UsageError` if there is nothing
        to continue from.
        """
        self._refuse_to_start("continue")
        last = last_message(self._transcript.messages)
        if not isinstance(last, AssistantMessage):
            await self._start(FirstTurn(owed=True))
            return
        queue = next((each for each in (self._queues.steering, self._queues.follow_up) if each.items), None)
        if queue is None:
            raise UsageError("Cannot continue from an assistant message: nothing is queued.")
        await self._start(FirstTurn(queue=queue))

    def abort(self) -> None:
        """Stop the run at its next checkpoint; queues stay. Use `wait_for_idle` to await the end."""
        if self._run is not None:
            self._run.lifetime.cancel()

    def abort_call(self, call_id: str) -> bool:
        """Stop one running tool call; the run goes on. False if it is not running."""
        return self._run is not None and self._run.lifetime.cancel_call(call_id)

    async def wait_for_idle(self) -> None:
        """Wait until no run is in progress and every listener is done."""
        await self._idle.wait()

    def reset(self) -> None:
        """Forget transcript, queues and error. Raises `BusyError` while a run is in progress."""
        self._refuse_while_running("reset")
        self.messages = ()
        self._queues.clear()
        self.error_message = None

    # ------------------------------------------------------------------ queues

    def steer(self, message: AgentInput, images: Iterable[ImageContent] = ()) -> None:
        """Queue input for the next request of the run in progress, or of the next run."""
        self._queues.steering.add(input_messages(message, images))

    def follow_up(self, message: AgentInput, images: Iterable[ImageContent] = ()) -> None:
        """Queue input for when the agent would stop."""
        self._queues.follow_up.add(input_messages(message, images))

    def next_turn(self, message: AgentInput, images: Iterable[ImageContent] = ()) -> None:
        """Park input: it goes in before the next prompt or follow-up."""
        self._queues.next_turn.add(input_messages(message, images))

    @property
    def steering_queue(self) -> tuple[QueueItem, ...]:
        """What waits for the next request."""
        return tuple(self._queues.steering.items)

    @property
    def follow_up_queue(self) -> tuple[QueueItem, ...]:
        """What waits for the agent to stop."""
        return tuple(self._queues.follow_up.items)

    @property
    def next_turn_queue(self) -> tuple[QueueItem, ...]:
        """What is parked."""
        return tuple(self._queues.next_turn.items)

    def edit_queued(
        self, item_id: str, message: str | AgentMessage, images: Iterable[ImageContent] = ()
    ) -> None:
        """Put another message in the place of one that waits. Raises `UsageError` if it does not."""
        self._queues.edit(item_id, UserMessage.of(message, images) if isinstance(message, str) else message)

    def remove_queued(self, item_id: str) -> None:
        """Take one out that waits. Raises `UsageError` if it does not."""
        self._queues.remove(item_id)

    def move_queued(self, item_id: str, place: int) -> None:
        """Put one that waits in another place of its queue. Raises `UsageError` if it does not."""
        self._queues.move(item_id, place)

    def clear_all_queues(self) -> None:
        """Drop what is queued; parked input stays."""
        self._queues.steering.items.clear()
        self._queues.follow_up.items.clear()

    # ------------------------------------------------------------------ inside

    def _refuse_while_running(self, what: str) -> None:
        if self._run is not None:
            raise BusyError(f"The agent is already processing a prompt: wait or abort to {what}.")

    def _refuse_to_start(self, what: str) -> None:
        self._refuse_while_running(what)
        if self._hub.telling:
            raise UsageError("A listener cannot wait for a run: start it in a task of its own.")

    async def _start(self, first: FirstTurn) -> None:
        self._refuse_to_start("prompt again")
        run = self._run = AgentDriver(self, self._hub, self._queues, self._transcript, first)
        self._idle = trio.Event()
        try:
            await (run_agent_loop_continue if first.owed else run_agent_loop)(run)
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
