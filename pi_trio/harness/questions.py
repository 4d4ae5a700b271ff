"""The questions of a session that wait for a person."""

from __future__ import annotations

import trio
from attrs import define, field

from pi_trio.approval import Answer, Question
from pi_trio.errors import UsageError
from pi_trio.events import ApprovalRequested, ApprovalResolved
from pi_trio.hub import Hub

__all__ = ["Questions"]


@define
class _Waiting:
    question: Question
    answer: Answer = "no"
    answered: trio.Event = field(factory=trio.Event)


class Questions:
    """Puts questions to whoever listens to `hub`, and takes the first answer."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._waiting: dict[str, _Waiting] = {}

    @property
    def open(self) -> tuple[Question, ...]:
        """Those without an answer, oldest first."""
        return tuple(each.question for each in self._waiting.values())

    async def ask(self, question: Question) -> Answer:
        """Wait for the answer. Cancelled, the question is withdrawn."""
        waiting = self._waiting[question.id] = _Waiting(question)
        self._hub.post(ApprovalRequested(question))
        try:
            await waiting.answered.wait()
        finally:
            del self._waiting[question.id]
            self._hub.post(ApprovalResolved(question.id))
        return waiting.answer

    def answer(self, question_id: str, answer: Answer) -> None:
        """Answer a question. Raises `UsageError` if it does not wait (any more)."""
        waiting = self._waiting.get(question_id)
        if waiting is None:
            raise UsageError("This question was answered already, or withdrawn.")
        waiting.answer = answer
        waiting.answered.set()
