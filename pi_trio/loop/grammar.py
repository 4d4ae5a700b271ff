"""The grammar of a run's events, as a table.

All transitions live in `TRANSITIONS`, from which the diagram in docs/events.md is drawn.
What does not fit a table, because it depends on call ids, is in `EventMachine` below it:
a call starts once, ends once after it started, and every call of a complete answer has
exactly one result before its step ends. Events of the session that may come at any time
(queue, entries, retries) are not part of the grammar.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from enum import Enum

from pi_trio.errors import InternalError
from pi_trio.events import (
    AgentEnd,
    AgentEvent,
    AgentSettled,
    AgentStart,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
    TurnEnd,
    TurnStart,
)
from pi_trio.messages import AssistantMessage, ToolResultMessage

__all__ = ["TRANSITIONS", "EventMachine", "IllegalEventError", "State", "check_events", "guarded"]


class State(Enum):
    """Where a run is, as its events tell it."""

    IDLE = "idle"
    RUN = "between steps"
    STEP = "step"
    INPUT = "input message"
    ANSWER = "answer"
    ANSWERED = "answered"
    RESULT = "result message"
    ENDED = "ended"


TRANSITIONS: Mapping[State, Mapping[str, State]] = {
    State.IDLE: {"agent_start": State.RUN},
    State.RUN: {"turn_start": State.STEP, "agent_end": State.ENDED},
    State.STEP: {"message_start input": State.INPUT, "message_start answer": State.ANSWER},
    State.INPUT: {"message_end input": State.STEP},
    State.ANSWER: {"message_update": State.ANSWER, "message_end answer": State.ANSWERED},
    State.ANSWERED: {
        "message_start answer": State.ANSWER,  # the next attempt
        "tool_execution_start": State.ANSWERED,
        "tool_execution_update": State.ANSWERED,
        "tool_execution_end": State.ANSWERED,
        "message_start result": State.RESULT,
        "turn_end": State.RUN,
    },
    State.RESULT: {"message_end result": State.ANSWERED},
    State.ENDED: {"agent_settled": State.IDLE},
}

_GRAMMATICAL = (
    AgentStart,
    AgentEnd,
    AgentSettled,
    TurnStart,
    TurnEnd,
    MessageStart,
    MessageUpdate,
    MessageEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
    ToolExecutionEnd,
)


class IllegalEventError(InternalError):
    """An event that the grammar does not allow here."""


class EventMachine:
    """Follows the events of an agent, run after run. An illegal event changes nothing."""

    def __init__(self) -> None:
        self.state: State = State.IDLE
        self._open: set[str] = set()
        self._ended: list[str] = []
        self._results: list[str] = []

    def feed(self, event: AgentEvent) -> None:
        """Take in the next event. Raises `IllegalEventError`."""
        if not isinstance(event, _GRAMMATICAL):
            return
        symbol = _symbol(event)
        following = TRANSITIONS[self.state].get(symbol)
        if following is None:
            raise IllegalEventError(f"{symbol} is not allowed in state {self.state.value!r}")
        self._check_calls(event)
        self.state = following

    def _check_calls(self, event: AgentEvent) -> None:
        match event:
            case TurnStart():
                self._open, self._ended, self._results = set(), [], []
            case ToolExecutionStart():
                if event.tool_call_id in self._open:
                    raise IllegalEventError(f"start of call {event.tool_call_id}, which is running")
                self._open.add(event.tool_call_id)
            case ToolExecutionUpdate() if event.tool_call_id not in self._open:
                raise IllegalEventError(f"progress of call {event.tool_call_id}, which is not running")
            case ToolExecutionEnd():
                if event.tool_call_id not in self._open:
                    raise IllegalEventError(f"end of call {event.tool_call_id}, which is not running")
                self._open.remove(event.tool_call_id)
                self._ended.append(event.tool_call_id)
            case MessageEnd(ToolResultMessage() as message):
                self._results.append(message.tool_call_id)
            case TurnEnd():
                self._check_results(event)
            case _:
                pass

    def _check_results(self, event: TurnEnd) -> None:
        if self._open:
            raise IllegalEventError(f"the step ends while calls run: {sorted(self._open)}")
        told = [result.tool_call_id for result in event.tool_results]
        if not self._results == self._ended == told:
            raise IllegalEventError(f"calls ended {self._ended}, results {self._results}, told {told}")
        complete = event.message.stop_reason not in ("error", "aborted")
        owed = [call.id for call in event.message.tool_calls] if complete else []
        if told != owed:
            raise IllegalEventError(f"calls {owed}, results {told}")


def check_events(events: Iterable[AgentEvent]) -> State:
    """Feed all events, and tell the state that they lead to. Raises `IllegalEventError`."""
    machine = EventMachine()
    for event in events:
        machine.feed(event)
    return machine.state


def guarded(
    reduce: Callable[[AgentEvent], None], *, active: bool = sys.flags.dev_mode
) -> Callable[[AgentEvent], None]:
    """`reduce`, but an event that the grammar does not allow raises `IllegalEventError` instead.

    Only in Python's development mode (`python -X dev`), unless `active` says otherwise.
    """
    if not active:
        return reduce
    machine = EventMachine()

    def feed(event: AgentEvent) -> None:
        machine.feed(event)
        reduce(event)

    return feed


def _symbol(event: AgentEvent) -> str:
    if isinstance(event, (MessageStart, MessageEnd)):
        return f"{event.type} {_kind(event)}"
    return event.type


def _kind(event: MessageStart | MessageEnd) -> str:
    if isinstance(event.message, AssistantMessage):
        return "answer"
    return "result" if isinstance(event.message, ToolResultMessage) else "input"
