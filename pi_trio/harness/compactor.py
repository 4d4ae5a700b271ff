"""Making room in the context of a session, at the moments of its lifecycle.

Under pressure before a step, after an overflow inside one, and when a person asks. First
long tool results are shortened; if that is not enough a summary stands for what is older.
A summary that fails changes nothing, and what was tried is told.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import attrs
import trio

from pi_trio.compaction.estimate import Meter, estimated, measure
from pi_trio.compaction.plan import TOO_SMALL, CompactionSettings, Nothing, Plan, make_plan
from pi_trio.compaction.prune import prune
from pi_trio.compaction.recovery import Overflow, Pressure
from pi_trio.compaction.summary import summarise
from pi_trio.compaction.surface import surface_of
from pi_trio.errors import ProviderError, SummaryError, UsageError
from pi_trio.events import CompactionEnd, CompactionReason, CompactionResult, CompactionStart
from pi_trio.harness.prompt import render
from pi_trio.llm.protocol import Context, Done, Failed, Failure
from pi_trio.messages import AssistantMessage
from pi_trio.session import facts
from pi_trio.session.entries import CompactionEntry

if TYPE_CHECKING:
    from pi_trio.harness.harness import AgentHarness

__all__ = ["Compactor"]

SMALLEST = 64
"""Tokens: no summary is shorter than what is less than this, so nobody is asked for one."""


class Compactor:
    """Watches the context of one harness. Its `meter` follows what is committed."""

    def __init__(self, harness: AgentHarness, settings: CompactionSettings) -> None:
        self._settings = settings
        self._harness = harness
        self._pressure = Pressure()
        self._overflow = Overflow()
        self._meter: Meter | None = None

    @property
    def meter(self) -> Meter:
        """The size of the context, read from the branch when it is first asked for."""
        if self._meter is None:
            self._meter = measure(self._harness.session)
        return self._meter

    @property
    def enabled(self) -> bool:
        """Whether room is made unasked."""
        return self._settings.enabled

    @enabled.setter
    def enabled(self, enabled: bool) -> None:
        self._settings = attrs.evolve(self._settings, enabled=enabled)

    @property
    def settings(self) -> CompactionSettings:
        """What holds for the model that is asked now."""
        return self._settings.of(self._harness.model.reference)

    def changed(self) -> None:
        """The branch is another, or reads differently."""
        self._meter = None

    def settled(self) -> None:
        """A request was answered, or the run is over."""
        self._overflow.settled()

    # ------------------------------------------------------------------ the occasions

    async def before_step(self) -> None:
        """Make room if it is due, without the input that is about to enter.

        A failed summary is told and the turn goes on. Raises `ProviderError` if the window is
        full and no room can be made: a request would only be refused.
        """
        window, meter, settings = self._harness.model.context_window, self.meter, self.settings
        verdict = self._pressure.verdict(meter, window, settings)
        if verdict == "compact":
            try:
                await self._make_room("threshold", settings.keep(window))
            finally:
                self._pressure.tried(meter, window, settings)
        elif verdict == "full":
            complaint = self._pressure.complaint(meter.size, window)
            raise ProviderError(Failure(complaint, "context_overflow"))

    async def after_failure(self, failure: Failure) -> Failure | None:
        """Make room after an overflow. None: send again. Else the failure, with what was tried."""
        if not self.enabled or not self._overflow.begin(failure):
            return attrs.evolve(failure, message=self._overflow.explain(failure))
        before = estimated(self._harness.session).size
        keep = self.settings.keep_after_overflow(before, self._harness.model.context_window)
        await self._make_room("overflow", keep, too_large=before)
        if self._overflow.retry(before, estimated(self._harness.session).size):
            return None
        return attrs.evolve(failure, message=self._overflow.explain(failure))

    async def on_request(self, focus: str) -> CompactionResult:
        """Compact because a person asked. Raises `UsageError` if there is nothing to do, `SummaryError`."""
        outcome = await self._make_room(
            "manual", self.settings.keep(self._harness.model.context_window), focus=focus
        )
        if isinstance(outcome, Nothing):
            raise UsageError(outcome.reason)
        if isinstance(outcome, SummaryError):
            raise outcome
        return outcome

    # ------------------------------------------------------------------ making room

    async def _make_room(
        self, reason: CompactionReason, keep: int, *, too_large: int | None = None, focus: str = ""
    ) -> CompactionResult | Nothing | SummaryError:
        """Prune, then summarise if that was not enough. Brackets are closed in every case."""
        harness = self._harness
        bracket = {"id": uuid.uuid4().hex, "reason": reason}
        harness.append_fact(facts.COMPACTION_START, **bracket)
        await harness.hub.emit(CompactionStart(reason))
        end = CompactionEnd(reason, aborted=True)
        try:
            outcome = await self._prune_and_summarise(reason, keep, too_large, focus)
            end = _told(reason, outcome, will_retry=reason == "overflow")
            return outcome
        finally:
            error = end.error_message or ("aborted" if end.aborted else None)
            harness.append_fact(facts.COMPACTION_END, **bracket, **({"error": error} if error else {}))
            with trio.CancelScope(shield=True, deadline=trio.current_time() + harness.options.abort_grace):
                await harness.hub.emit(end)

    async def _prune_and_summarise(
        self, reason: CompactionReason, keep: int, too_large: int | None, focus: str
    ) -> CompactionResult | Nothing | SummaryError:
        before, plan = self.meter.size, self._plan(keep)
        if reason != "manual" and self._prune(plan, everything=reason == "overflow"):
            if reason == "threshold" and self._fits():
                return CompactionResult("", "", before, self.meter.size)
            plan = self._plan(keep)
        if isinstance(plan, Nothing):
            self._overflow.note(f"a summary: {plan.reason.rstrip('.').lower()}")
            return plan
        try:
            summary = await summarise(
                plan,
                self.ask,
                self._harness.model,
                last=None if too_large is not None else self._last_context(),
                too_large=too_large,
                focus=focus,
            )
        except SummaryError as error:
            self._overflow.note(f"a summary, which failed: {str(error).rstrip('.')}")
            return error
        entry = self._harness.session.append(summary.entry(plan))
        self._harness.branch_changed()
        self._overflow.note("a summary of what is older")
        return _result(entry, estimated(self._harness.session).size)

    def _plan(self, keep: int) -> Plan | Nothing:
        plan = make_plan(self._harness.session, keep=keep, size=self.meter.size)
        too_small = isinstance(plan, Plan) and plan.covered_tokens < SMALLEST
        return TOO_SMALL if too_small else plan

    def _prune(self, plan: Plan | Nothing, *, everything: bool) -> int:
        """Shorten long results: before the cut, or all of them. Gives how many."""
        nodes = surface_of(self._harness.session).nodes
        if not everything and isinstance(plan, Plan):
            nodes = nodes[: [node.id for node in nodes].index(plan.first_kept_id)]
        shortened = prune(nodes)
        for each in shortened:
            for entry in each.entries(self._harness.session.id):
                self._harness.session.append(entry)
        if shortened:
            self._harness.branch_changed()
            self._overflow.note(f"shortening {len(shortened)} tool results")
        return len(shortened)

    def _fits(self) -> bool:
        return not self.settings.presses(self.meter.size, self._harness.model.context_window)

    def _last_context(self) -> Context:
        conversation = self._harness.conversation
        tools = tuple(tool.schema for tool in self._harness.active_tools)
        return Context(render(conversation.system), conversation.llm_messages(), tools)

    async def ask(self, context: Context) -> AssistantMessage:
        """Send a request for a summary, again after passing failures; nothing of it is an entry."""
        harness = self._harness
        attempt = 0
        while True:
            attempt += 1
            answer = await self._ask_once(context)
            if isinstance(answer, Done):
                return answer.message
            retry = harness.retry.retry(answer.failure, attempt)
            if retry is None:
                return attrs.evolve(answer.message, stop_reason="error", error_message=answer.failure.message)
            await trio.sleep(retry.delay)

    async def _ask_once(self, context: Context) -> Done | Failed:
        harness = self._harness
        credential = await harness.options.credential(harness.model)
        options = attrs.evolve(
            harness.options.request,
            api_key=credential.key,
            headers={**(harness.options.request.headers or {}), **credential.headers},
        )
        stream = harness.stream_function(harness.model)
        async with stream(harness.model, context, options) as events:
            async for event in events:
                if isinstance(event, (Done, Failed)):
                    return event
        failure = Failure("The stream ended before the summary was complete.", "transport")
        return Failed(failure, AssistantMessage(()))


def _told(
    reason: CompactionReason, outcome: CompactionResult | Nothing | SummaryError, *, will_retry: bool
) -> CompactionEnd:
    match outcome:
        case Nothing():
            return CompactionEnd(reason, error_message=outcome.reason)
        case SummaryError():
            return CompactionEnd(reason, error_message=str(outcome))
        case _:
            return CompactionEnd(reason, outcome, will_retry=will_retry)


def _result(entry: CompactionEntry, after: int) -> CompactionResult:
    return CompactionResult(
        entry.summary, entry.first_kept_entry_id, entry.tokens_before, after, entry.usage, entry.details
    )
