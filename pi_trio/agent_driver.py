"""The loop's driver over a conversation in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import attrs
from attrs import frozen

from pi_trio.agent_queue import AgentQueue, AgentQueues, QueueItem
from pi_trio.events import InputReturned
from pi_trio.hub import Hub
from pi_trio.llm.protocol import Failure
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
from pi_trio.messages import AgentMessage, LlmMessage
from pi_trio.tool import Tool

if TYPE_CHECKING:
    from pi_trio.agent import Agent

__all__ = ["AgentDriver", "FirstTurn", "Transcript"]


class Transcript:
    """The messages of a conversation, each converted for models once."""

    def __init__(self, messages: Iterable[AgentMessage]) -> None:
        self.messages: list[AgentMessage] = list(messages)
        self._view = LlmView()

    def for_model(self) -> Sequence[LlmMessage]:
        """What a request sends of it."""
        return self._view.extend(self.messages)


@frozen(kw_only=True)
class FirstTurn:
    """How a run begins: with a prompt, with what waits in a queue, or with an answer that is owed."""

    prompt: Sequence[AgentMessage] = ()
    queue: AgentQueue | None = None
    owed: bool = False


class AgentDriver:
    """One run of an `Agent`."""

    def __init__(
        self, agent: Agent, hub: Hub, queues: AgentQueues, transcript: Transcript, first: FirstTurn
    ) -> None:
        self.hooks: Hooks = agent.hooks
        self.lifetime: Lifetime = Lifetime(agent.abort_grace)
        self.tool_execution = agent.tool_execution
        self.new_messages: list[AgentMessage] = []
        self._agent = agent
        self.hub: Hub = hub
        self._queues = queues
        self._transcript = transcript
        self._first: FirstTurn | None = first
        self._claims: list[tuple[AgentQueue, list[QueueItem]]] = []  # since the last admission
        self._turns = 0
        self._goes_on = True
        # What a hook may change for the rest of this run; the agent's own settings stay.
        self._model = agent.model
        self._thinking_level = agent.thinking_level
        self._system_prompt = agent.system_prompt
        self._context = transcript
        self._tools: tuple[Tool, ...] | None = None
        self._base_options = self._options = agent.options

    @property
    def records_stream(self) -> bool:
        return False  # in memory nobody could play it back

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
        prompts = [*self._claim(self._queues.follow_up, self._agent.follow_up_mode), *polled]
        return Turn(self._turns, (*self._claim(self._queues.next_turn), *prompts)) if prompts else None

    async def _open_first(self, first: FirstTurn) -> Turn:
        """Steering joins, except a run that it began; parked input joins what is said anew."""
        steered = first.queue is self._queues.steering
        joining = () if steered else await self.claim_steering()
        self._first = None
        parked = () if steered or first.owed else self._claim(self._queues.next_turn)
        mode = self._agent.steering_mode if steered else self._agent.follow_up_mode
        queued = self._claim(first.queue, mode) if first.queue is not None else ()
        return Turn(1, (*joining, *parked, *queued, *first.prompt), first.owed)

    def close_turn(self, turn: Turn, reason: TurnEndReason) -> None:
        self._goes_on = reason in ("completed", "max_tokens")

    async def claim_steering(self) -> Sequence[AgentMessage]:
        polled = await _poll(self.hooks.get_steering_messages)  # first: it may fail or be cancelled
        steering = self._claim(self._queues.steering, self._agent.steering_mode)
        return [*self._claim(self._queues.carried), *steering, *polled]

    def _claim(self, queue: AgentQueue, mode: QueueMode = "all") -> list[AgentMessage]:
        items = queue.claim(mode)
        if items:
            self._claims.append((queue, items))
        return [item.message for item in items]

    def hand_back(self, messages: Sequence[AgentMessage]) -> None:
        """What was queued waits again; a prompt came from no queue, so it is told."""
        for queue, items in reversed(self._claims):
            queue.put_back(items)
        queued = [item.message for _, items in self._claims for item in items]
        self._claims.clear()
        returned = tuple(each for each in messages if not any(each is other for other in queued))
        if returned:
            self.hub.post(InputReturned(returned))

    def hand_back_unopened(self) -> None:
        """Hand back the prompt of a run that ended before its first turn."""
        if self._first is not None:
            self.hand_back(self._first.prompt)

    def park(self, messages: Sequence[AgentMessage]) -> None:
        self._queues.carried.add(messages)

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
        key = self._base_options.api_key
        if self._agent.get_api_key is not None:
            key = await self._agent.get_api_key(self._model.provider) or key
        level = self._thinking_level
        if (self._options.api_key, self._options.thinking_level) != (key, level):
            self._options = attrs.evolve(self._base_options, api_key=key, thinking_level=level)
        return Request(
            model=self._model,
            thinking_level=level,
            stream=self._agent.stream_fn,
            options=self._options,
        )

    def admit(self, step: Step, request: Request, messages: Sequence[AgentMessage]) -> Admission:
        self.commit(*messages)
        self._claims.clear()
        return Admission(messages, self._system_prompt, self._context.for_model(), self._active_tools())

    async def retry(self, step: Step, failure: Failure, attempt: int) -> Retry | Failure:
        return failure

    # ------------------------------------------------------------------ state

    def snapshot(self) -> AgentContext:
        return AgentContext(self._system_prompt, tuple(self._context.messages), self._active_tools())

    def commit(self, *records: AgentMessage | Fact) -> None:
        for record in records:
            if isinstance(record, Fact):
                continue  # brackets and attempts are for logs
            self.new_messages.append(record)
            self._transcript.messages.append(record)
            if self._context is not self._transcript:
                self._context.messages.append(record)

    def update(self, update: TurnUpdate) -> None:
        self._model = update.model or self._model
        self._thinking_level = update.thinking_level or self._thinking_level
        if update.context is not None:
            self._system_prompt = update.context.system_prompt
            self._context = Transcript(update.context.messages)
            self._tools = update.context.tools

    def add_tools(self, names: Sequence[str]) -> None:
        active = self._agent.active_tool_names
        if active is not None:
            self._agent.active_tool_names = (*active, *(name for name in names if name not in active))

    def _active_tools(self) -> tuple[Tool, ...]:
        return self._tools if self._tools is not None else self._agent.active_tools


async def _poll(hook: GetMessages | None) -> Sequence[AgentMessage]:
    return await hook() if hook is not None else ()
