"""The loop's driver over a session: claims from the inbox, commits to the file."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from pi_trio.harness.inbox import InboxItem
from pi_trio.harness.points import (
    ASSEMBLE,
    PRE_STEP,
    REQUEST,
    REQUEST_ERROR,
    TURN_STOPPING,
    Assemble,
    PreStep,
    RequestConfig,
    RequestError,
    TurnStopping,
)
from pi_trio.harness.prompt import reconcile, render
from pi_trio.harness.requests import through_handlers
from pi_trio.hub import Hub
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
from pi_trio.messages import AgentMessage, AssistantMessage, CustomMessage, ToolResultMessage
from pi_trio.session import facts
from pi_trio.session.entries import (
    CustomMessageEntry,
    MessageEntry,
    ModelChangeEntry,
    ThinkingLevelChangeEntry,
)
from pi_trio.tool import ExecutionMode

if TYPE_CHECKING:
    from pi_trio.harness.harness import AgentHarness

__all__ = ["HarnessDriver"]


class HarnessDriver:
    """One run of an `AgentHarness`. `owed`: its first turn needs no input."""

    def __init__(self, harness: AgentHarness, *, owed: bool = False) -> None:
        self.lifetime: Lifetime = Lifetime(harness.options.abort_grace)
        self.new_messages: list[AgentMessage] = []
        self._harness = harness
        self._goes_on = True
        self._first = True
        self._owed = owed
        self._claimed: dict[int, InboxItem] = {}
        self._dropped: list[str] = []
        self._sections: Mapping[str, str] = {}

    @property
    def hooks(self) -> Hooks:
        return self._harness.options.hooks

    @property
    def tool_execution(self) -> ExecutionMode:
        return self._harness.options.tool_execution

    @property
    def hub(self) -> Hub:
        return self._harness.hub

    @property
    def records_stream(self) -> bool:
        return self._harness.options.record_stream

    @property
    def max_parallel_tool_calls(self) -> int:
        return self._harness.options.max_parallel_tool_calls

    # ------------------------------------------------------------------ turns and input

    async def open_turn(self) -> Turn | None:
        """Open the bracket, then claim. Synchronous, so that no cancel comes in between.

        A run goes on with what is queued, also after a rejected or a failed turn; not after an
        abort, nor when somebody stopped it. Then the queue waits for the next waking call.
        """
        harness = self._harness
        if not self._goes_on or not (harness.inbox.wakes or self._first):
            return None
        owed, self._owed, self._first = self._owed, False, False
        harness.turns += 1
        self.commit(Fact(facts.TURN_START, {"turn": harness.turns}))
        return Turn(harness.turns, self._taken(harness.inbox.claim_turn()), owed)

    def close_turn(self, turn: Turn, reason: TurnEndReason) -> None:
        self._goes_on = reason not in ("aborted", "stopped", "error", "limit")
        self._harness.append_waiting()
        inbox = self._harness.inbox
        pending = len(inbox.items("next-step")) + len(inbox.items("next-turn"))
        self.commit(Fact(facts.TURN_END, {"turn": turn.number, "reason": reason, "pending": pending}))

    async def claim_steering(self) -> Sequence[AgentMessage]:
        self._harness.append_waiting()
        return self._taken(self._harness.inbox.claim_step())

    def _taken(self, items: Sequence[InboxItem]) -> list[AgentMessage]:
        """Remember what was claimed until it is admitted or handed back."""
        self._claimed.update((id(item.message), item) for item in items)
        self._harness.tell_claimed(items, self._harness.turns)
        return [item.message for item in items]

    def hand_back(self, messages: Sequence[AgentMessage]) -> None:
        items = [item for message in messages if (item := self._claimed.pop(id(message), None))]
        if items:
            self._harness.hand_back(items)

    def park(self, messages: Sequence[AgentMessage]) -> None:
        for message in messages:
            self._harness.inject(message)

    async def pre_step(self, step: Step, messages: Sequence[AgentMessage]) -> EnterStep | RejectStep:
        """See whether the turn may go on, make room if it is due, assemble the prompt, then decide.

        What a handler leaves out counts as used.
        """
        harness = self._harness
        harness.spending.check(harness.options.limits, step.number)
        await harness.compactor.before_step()
        tools = harness.active_tools

        async def sections(context: Assemble) -> Mapping[str, str]:
            return harness.options.sections(context.tools)

        async def enter(context: PreStep) -> EnterStep | RejectStep:
            return EnterStep(context.messages)

        self._sections = await harness.handlers.decide(ASSEMBLE, Assemble(step, tools), sections)
        decision = await harness.handlers.decide(PRE_STEP, PreStep(step, tuple(messages)), enter)
        if isinstance(decision, EnterStep):
            entering = {id(message) for message in decision.messages}
            left_out = [message for message in messages if id(message) not in entering]
            self._dropped = [
                item.id for message in left_out if (item := self._claimed.pop(id(message), None))
            ]
            harness.requests.starts_series = decision.starts_request_series
        return decision

    async def turn_stopping(self, turn: Turn) -> None:
        await self._harness.handlers.pass_by(TURN_STOPPING, TurnStopping(turn.number))

    # ------------------------------------------------------------------ requests

    async def prepare_request(self, step: Step) -> Request:
        harness = self._harness
        if self.hooks.prepare_request is not None:
            context = RequestContext(self.snapshot(), harness.model, harness.thinking_level)
            update = await self.hooks.prepare_request(context)
            if update is not None:
                self.update(update)
        config = await harness.handlers.decide(
            REQUEST,
            RequestConfig(
                step=step,
                model=harness.model,
                thinking_level=harness.thinking_level,
                options=harness.options.request,
            ),
            _unchanged,
        )
        credential = await harness.options.credential(config.model)
        options = attrs.evolve(
            config.options,
            api_key=credential.key,
            headers={**(config.options.headers or {}), **credential.headers},
            thinking_level=config.thinking_level,
            session_id=harness.session.id,
        )
        stream = through_handlers(harness.handlers, step, harness.stream_function(config.model))
        return Request(
            model=config.model, thinking_level=config.thinking_level, stream=stream, options=options
        )

    def admit(self, step: Step, request: Request, messages: Sequence[AgentMessage]) -> Admission:
        conversation = self._harness.conversation
        tools = self._harness.active_tools
        self._record_model(request)
        patch = reconcile(conversation.system, self._sections, (tool.schema for tool in tools))
        committed = messages if patch is None else (patch, *messages)
        self.commit(*committed)
        self.commit(*self._harness.requests.facts(step, request))
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

    async def retry(self, step: Step, failure: Failure, attempt: int) -> Retry | Failure:
        """After an overflow room is made; any other failure goes by the handlers and the policy."""
        policy, compactor = self._harness.retry, self._harness.compactor
        if failure.code == "context_overflow":
            remaining = await compactor.after_failure(failure)
            return remaining or Retry(delay=0, attempt=1, max_attempts=1, announce=False)

        async def decide(context: RequestError) -> Retry | None:
            chance = random.random()  # noqa: S311 - no secret
            return policy.retry(context.failure, context.attempt, chance)

        decision = await self._harness.handlers.decide(
            REQUEST_ERROR, RequestError(step, failure, attempt), decide
        )
        return decision or failure

    # ------------------------------------------------------------------ state

    def snapshot(self) -> AgentContext:
        conversation = self._harness.conversation
        return AgentContext(
            render(conversation.system), tuple(conversation.transcript), self._harness.active_tools
        )

    def commit(self, *records: AgentMessage | Fact) -> None:
        """What a model or a tool has said is taken also if there is no room for it.

        It is then the first that is written. Before anything follows from it there is another
        record, at the latest the end of the step, which raises as long as there is no room.
        """
        harness = self._harness
        for record in records:
            if isinstance(record, Fact):
                harness.session.append(facts.fact(record.name, harness.session.id, **self._data(record)))
                continue
            item = self._claimed.get(id(record))
            entry = _entry(record, {} if item is None else {"inboxId": item.id})
            if isinstance(record, (AssistantMessage, ToolResultMessage)):
                harness.write_or_keep(entry)
            else:
                harness.session.append(entry)
            self._claimed.pop(id(record), None)
            self.new_messages.append(record)
            harness.conversation.add(record)
            harness.compactor.meter.add(record)
            if isinstance(record, AssistantMessage) and record.stop_reason not in ("error", "aborted"):
                harness.compactor.settled()

    def _data(self, record: Fact) -> Mapping[str, Any]:
        """What the fact says; the step also tells which claimed input a handler left out."""
        if record.name != facts.STEP_START or not self._dropped:
            return record.data
        dropped, self._dropped = self._dropped, []
        return {**record.data, "dropped": dropped}

    def update(self, update: TurnUpdate) -> None:
        """Model and level only: what the model sees of the conversation is what the branch says."""
        self._harness.model = update.model or self._harness.model
        self._harness.thinking_level = update.thinking_level or self._harness.thinking_level

    def add_tools(self, names: Sequence[str]) -> None:
        harness = self._harness
        active = [tool.name for tool in harness.active_tools]
        registered = {tool.name for tool in harness.options.tools}
        added = [name for name in dict.fromkeys(names) if name in registered and name not in active]
        if added:
            harness.set_active_tools([*active, *added])


async def _unchanged(config: RequestConfig) -> RequestConfig:
    return config


def _entry(message: AgentMessage, extra: Mapping[str, Any]) -> MessageEntry | CustomMessageEntry:
    """A message as the file has it: those of applications are entries of their own kind."""
    if isinstance(message, CustomMessage):
        return CustomMessageEntry(
            message.custom_type, message.content, message.display, message.details, extra=extra
        )
    return MessageEntry(message, extra=extra)
