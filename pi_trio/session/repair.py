"""Making a branch fit for a request, in memory: nothing of this is written.

Providers refuse a call without its result, a result without its call, and text with half a
surrogate pair. A crash, an abort, an edit of the context or another program may leave all
three in a file.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TypeAlias

from attrs import define, field

from pi_trio.messages import (
    AgentMessage,
    AssistantMessage,
    TextContent,
    ToolCall,
    ToolResultMessage,
    sendable,
)

__all__ = [
    "NOT_STARTED",
    "OUTCOME_UNKNOWN",
    "Conversation",
    "missing_result",
]

NOT_STARTED = "not_started"
OUTCOME_UNKNOWN = "outcome_unknown"

Started: TypeAlias = Callable[[Sequence[str]], Collection[str]]
"""The calls that `tool/call` facts, given by their entries' ids, say were started."""


def missing_result(call: ToolCall, code: str, timestamp: int) -> ToolResultMessage:
    """The result of a call that has none: `code` is `NOT_STARTED` or `OUTCOME_UNKNOWN`."""
    text = _MISSING[code]
    return ToolResultMessage(
        call.id, call.name, (TextContent(text),), {"code": code}, is_error=True, timestamp=timestamp
    )


_MISSING = {
    NOT_STARTED: "This call was not started: the run was interrupted before it. It is safe to make it again.",
    OUTCOME_UNKNOWN: "The run was interrupted and no result of this call was saved. "
    "It may have run in part or as a whole: check what it did before making it again.",
}


# ------------------------------------------------------------------ calls and results


@define
class _OpenCalls:
    """An answer with calls, until the next answer comes. `logged`: the step's facts are there."""

    message: AssistantMessage
    logged: bool
    facts: list[str] = field(factory=list)
    results: dict[str, ToolResultMessage] = field(factory=dict)
    after: list[AgentMessage] = field(factory=list)

    def closed(self, started: Started) -> list[AgentMessage]:
        """The answer, one result for each call in the calls' order, then what came between."""
        calls = self.message.tool_calls
        missing = [call for call in calls if call.id not in self.results]
        known = started(self.facts) if missing and self.logged else ()
        results = dict(self.results)
        for call in missing:
            idle = self.logged and call.id not in known
            code = NOT_STARTED if idle else OUTCOME_UNKNOWN
            results[call.id] = missing_result(call, code, self.message.timestamp)
        return [self.message, *(results[call.id] for call in calls), *self.after]


class Conversation:
    """The messages of a branch, one after the other, with each call's result right after it.

    A result that comes late moves up; one without a call, or a second one, is dropped.
    """

    def __init__(self, started: Started) -> None:
        self._started = started
        self._messages: list[AgentMessage] = []
        self._open: _OpenCalls | None = None
        self._in_step = False

    def step_begins(self) -> None:
        """A `step/start` fact: from here on `tool/call` facts tell which calls were started."""
        self._in_step = True

    def step_ends(self) -> None:
        """A `step/end` or `turn/end` fact."""
        self._in_step = False

    def call_begins(self, entry_id: str) -> None:
        """A `tool/call` fact, which is read only if a result turns out to be missing."""
        if self._open is not None:
            self._open.facts.append(entry_id)

    def add(self, message: AgentMessage) -> None:
        """The next message of the branch."""
        if isinstance(message, AssistantMessage):
            self._answer(message)
        elif isinstance(message, ToolResultMessage):
            self._result(message)
        elif self._open is not None:
            self._open.after.append(message)
        else:
            self._messages.append(message)

    def messages(self) -> tuple[AgentMessage, ...]:
        """What can be sent now."""
        if self._open is None:
            return tuple(self._messages)
        return (*self._messages, *self._open.closed(self._started))

    def _answer(self, message: AssistantMessage) -> None:
        kept = sendable(message)
        if kept is None:
            return
        if self._open is not None:
            self._messages.extend(self._open.closed(self._started))
            self._open = None
        if kept.tool_calls:
            self._open = _OpenCalls(kept, self._in_step)
        else:
            self._messages.append(kept)

    def _result(self, message: ToolResultMessage) -> None:
        waiting = self._open
        if waiting is not None and any(
            call.id == message.tool_call_id for call in waiting.message.tool_calls
        ):
            waiting.results.setdefault(message.tool_call_id, message)
