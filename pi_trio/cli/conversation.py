"""Prompts and answers in one session, from the first prompt to how it all came out."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from math import inf
from typing import Any

import trio
from attrs import evolve, frozen

from pi_trio.cli.answer_schema import AnswerSchema, MismatchError
from pi_trio.cli.prompts import Prompt
from pi_trio.cli.status import FAILED, LIMIT, MISMATCH, OK
from pi_trio.errors import InternalError
from pi_trio.events import AgentEvent, AgentSettled, EntryAppended, MessageEnd
from pi_trio.hub import Outbox
from pi_trio.loop.lifetime import GOODBYE_SECONDS
from pi_trio.messages import AssistantMessage, TextContent
from pi_trio.remote.interface import Runtime
from pi_trio.session import facts
from pi_trio.text import plural

__all__ = ["Conversation", "Outcome"]


_CORRECTIONS = 3
"""How often a model is told what is wrong with an answer before it is given up."""


@frozen
class Outcome:
    """The last answer, if there is one. `problem` is a sentence and says why it is not what was wanted.

    `value` is what the answer came to where it had to match a schema.
    """

    answer: AssistantMessage | None
    problem: str | None = None
    status: int = OK
    value: Any = None

    @property
    def text(self) -> str:
        """Each block of text with a line end; a failed or aborted answer is not one."""
        if self.answer is None or self.answer.stop_reason in ("error", "aborted"):
            return ""
        return "".join(f"{block.text}\n" for block in self.answer.content if isinstance(block, TextContent))


class Conversation:
    """One conversation. `pass_on` is given all events of the session, in order, and may take its time."""

    def __init__(
        self,
        runtime: Runtime,
        session_id: str,
        pass_on: Callable[[Sequence[AgentEvent]], Awaitable[None]],
    ) -> None:
        self._runtime = runtime
        self._session_id = session_id
        self._pass_on = pass_on
        self._filled = trio.Event()
        # Without limits: what waits for a slow reader merges, and nothing of it may be dropped.
        self._outbox = Outbox(lambda: self._filled.set(), limit=sys.maxsize, limit_characters=sys.maxsize)
        self._answer: AssistantMessage | None = None
        self._limited = False

    async def hold(
        self, prompts: Sequence[Prompt], *, schema: AnswerSchema | None = None, timeout: float | None = None
    ) -> Outcome:
        """Send the prompts until one gets no whole answer, for at most `timeout` seconds.

        The last answer has to match the `schema`. Cancelling it stops the run first. Raises what
        `Runtime.prompt` raises.
        """
        outcome = Outcome(None)
        await self._runtime.subscribe(self._session_id, self._outbox)
        try:
            with trio.move_on_after(inf if timeout is None else timeout) as limited:
                outcome = await self._converse(prompts, schema)
        finally:
            with trio.move_on_after(GOODBYE_SECONDS, shield=True):
                await self._runtime.abort(self._session_id)
                await self._take()
        if timeout is not None and limited.cancelled_caught:
            return Outcome(
                self._answer, f"stopped after {plural(timeout, 'second')}, which is the limit", LIMIT
            )
        return outcome

    async def _converse(self, prompts: Sequence[Prompt], schema: AnswerSchema | None) -> Outcome:
        outcome = Outcome(None)
        for prompt in prompts if schema is None else schema.ask(prompts):
            outcome = await self._ask(prompt)
            if outcome.problem:
                return outcome
        return outcome if schema is None else await self._matching(outcome, schema)

    async def _matching(self, outcome: Outcome, schema: AnswerSchema) -> Outcome:
        """The answer, or a later one that matches. The model is told what is wrong, a few times."""
        corrections = 0
        while outcome.problem is None:
            try:
                return evolve(outcome, value=schema.read(outcome.text))
            except MismatchError as error:
                if corrections == _CORRECTIONS:
                    return evolve(outcome, problem=f"no answer matched the schema: {error}", status=MISMATCH)
                corrections += 1
                outcome = await self._ask(schema.correct(error))
        return outcome

    async def _ask(self, prompt: Prompt) -> Outcome:
        """Send a prompt and pass events on until the run is over."""
        self._answer, self._limited = None, False
        await self._runtime.prompt(self._session_id, prompt.text, prompt.images)
        while True:
            await self._filled.wait()
            if any(isinstance(event, AgentSettled) for event in await self._take()):
                break
            if self._outbox.closed:
                raise InternalError("the session was closed during a run")
        problem = _problem(self._answer)
        status = OK if problem is None else LIMIT if self._limited else FAILED
        return Outcome(self._answer, problem, status)

    async def _take(self) -> Sequence[AgentEvent]:
        """Note what is in the outbox, and pass it on."""
        self._filled = trio.Event()
        events = [envelope.event for envelope in self._outbox.take()]
        for event in events:
            match event:
                case MessageEnd(AssistantMessage() as answer):
                    self._answer = answer
                case EntryAppended(entry) if _ended_by_limit(entry):
                    self._limited = True
                case _:
                    pass
        if events:
            await self._pass_on(events)
        return events


def _ended_by_limit(entry: Mapping[str, Any]) -> bool:
    return entry.get("customType") == facts.TURN_END and entry["data"]["reason"] == "limit"


def _problem(answer: AssistantMessage | None) -> str | None:
    """Why this is not a whole answer; None if it is."""
    if answer is None:
        return "the model gave no answer"
    match answer.stop_reason:
        case "error":
            return answer.error_message or "the request failed"
        case "aborted":
            return "the answer was aborted"
        case "length":
            return "the answer was cut off: it reached the model's output limit"
        case _:
            return None
