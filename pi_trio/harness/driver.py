"""The loop's driver over a session: claims from the inbox, commits to the file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs
import trio

from pi_trio.events import AgentEvent, InputReturned
from pi_trio.harness.prompt import reconcile, render
from pi_trio.llm.protocol import Failure
from pi_trio.loop.driver import (
    Admission,
    EnterStep,
    Fact,
    RejectStep,
    Request,
    Retry,
    Step,
    Turn,
    TurnEndReason,
)
from pi_trio.loop.hooks import AgentContext, Hooks, RequestContext, TurnUpdate
from pi_trio.loop.lifetime import Lifetime
from pi_trio.messages import AgentMessage
from pi_trio.session import facts
from pi_trio.session.entries import MessageEntry, ModelChangeEntry, ThinkingLevelChangeEntry
from pi_trio.tool import ExecutionMode

if TYPE_CHECKING:
    from pi_trio.harness.harness import AgentHarness

__all__ = ["HarnessDriver"]


class HarnessDriver:
    """One run of an `AgentHarness`."""

    def __init__(self, harness: AgentHarness) -> None:
        self.lifetime = Lifetime(harness.options.abort_grace)
        self.new_messages: list[AgentMessage] = []
        self.calls: dict[str, trio.CancelScope] = {}
        self._harness = harness
        self._goes_on = True
        self._first = True

    @property
    def hooks(self) -> Hooks:
        return self._harness.options.hooks

    @property
    def tool_execution(self) -> ExecutionMode:
        return self._harness.options.tool_execution

    @property
    def listening(self) -> bool:
        return self._harness.hub.listening

    @property
    def max_parallel_tool_calls(self) -> int:
        return self._harness.options.max_parallel_tool_calls

    # ------------------------------------------------------------------ turns and input

    async def open_turn(self) -> Turn | None:
        """Open the bracket, then claim. Synchronous, so that no cancel comes in between.

        A run goes on with what is queued, also after a passing error; not after an abort, nor
        when somebody stopped it. Then the queue waits for the next waking call.
        """
        harness = self._harness
        if not self._goes_on or not (harness.inbox.wakes or self._first):
            return None
        self._first = False
        harness.turns += 1
        self.commit(Fact(facts.TURN_START, {"turn": harness.turns}))
        turn = Turn(harness.turns, harness.inbox.claim_turn())
        harness.tell_queue()
        return turn

    def close_turn(self, turn: Turn, reason: TurnEndReason) -> None:
        self._goes_on = reason not in ("aborted", "stopped", "error")
        self.commit(Fact(facts.TURN_END, {"turn": turn.number, "reason": reason}))

    async def claim_steering(self) -> Sequence[AgentMessage]:
        claimed = self._harness.inbox.claim_step()
        self._harness.tell_queue()
        return claimed

    def hand_back(self, messages: Sequence[AgentMessage]) -> None:
        if messages:
            self._harness.hub.post(InputReturned(tuple(messages)))

    def park(self, messages: Sequence[AgentMessage]) -> None:
        for message in messages:
            self._harness.inbox.add_step(message)

    async def pre_step(self, step: Step, messages: Sequence[AgentMessage]) -> EnterStep | RejectStep:
        return EnterStep(messages)

    async def turn_stopping(self, turn: Turn) -> None:
        """Nobody objects yet: steering was claimed just before."""

    # ------------------------------------------------------------------ requests

    async def prepare_request(self, step: Step) -> Request:
        harness = self._harness
        if self.hooks.prepare_request is not None:
            context = RequestContext(self.snapshot(), harness.model, harness.thinking_level)
            update = await self.hooks.prepare_request(context)
            if update is not None:
                self.update(update)
        model, level = harness.model, harness.thinking_level
        credential = await harness.options.credential(model)
        options = attrs.evolve(
            harness.options.request,
            api_key=credential.key,
            headers={**(harness.options.request.headers or {}), **credential.headers},
            thinking_level=level,
            session_id=harness.session.id,
        )
        stream = harness.options.stream_function(model)
        return Request(model=model, thinking_level=level, stream=stream, options=options)

    def admit(self, step: Step, request: Request, messages: Sequence[AgentMessage]) -> Admission:
        options, conversation = self._harness.options, self._harness.conversation
        tools = options.tools
        self._record_model(request)
        schemas = (tool.schema for tool in tools)
        patch = reconcile(conversation.system, options.sections(tools), schemas)
        committed = messages if patch is None else (patch, *messages)
        self.commit(*committed)
        return Admission(committed, render(conversation.system), conversation.llm_messages(), tools)

    def _record_model(self, request: Request) -> None:
        """The branch says which model and level answered it, and does so only when they change."""
        session, conversation = self._harness.session, self._harness.conversation
        model = (request.model.provider, request.model.id)
        if conversation.model != model:
            session.append(ModelChangeEntry(*model))
            conversation.model = model
        if conversation.thinking_level != request.thinking_level:
            session.append(ThinkingLevelChangeEntry(request.thinking_level))
            conversation.thinking_level = request.thinking_level

    async def retry(self, step: Step, failure: Failure, attempt: int) -> Retry | None:
        return self._harness.options.retry.retry(failure, attempt)

    # ------------------------------------------------------------------ state

    def snapshot(self) -> AgentContext:
        conversation = self._harness.conversation
        return AgentContext(
            render(conversation.system), tuple(conversation.transcript), self._harness.options.tools
        )

    def commit(self, *records: AgentMessage | Fact) -> None:
        harness = self._harness
        for record in records:
            if isinstance(record, Fact):
                harness.session.append(facts.fact(record.name, harness.session.id, **record.data))
                continue
            harness.session.append(MessageEntry(record))
            self.new_messages.append(record)
            harness.conversation.add(record)

    def update(self, update: TurnUpdate) -> None:
        """Model and level only: what the model sees of the conversation is what the branch says."""
        self._harness.model = update.model or self._harness.model
        self._harness.thinking_level = update.thinking_level or self._harness.thinking_level

    def add_tools(self, names: Sequence[str]) -> None:
        """All tools of a session are active for now."""

    def track_call(self, call_id: str, scope: trio.CancelScope | None) -> None:
        if scope is None:
            self.calls.pop(call_id, None)
        else:
            self.calls[call_id] = scope

    async def emit(self, *events: AgentEvent) -> None:
        await self._harness.hub.emit(*events)
