"""Keeping what an agent tells, and holding it against the grammar of runs."""

from __future__ import annotations

from typing import TypeVar

from pi_trio.events import AgentEvent
from pi_trio.loop.grammar import IllegalEventError, State, check_events

__all__ = ["Recorder"]

E = TypeVar("E")


class Recorder:
    """A listener that keeps every event, in order: `agent.subscribe(recorder)`."""

    def __init__(self) -> None:
        self.events: list[AgentEvent] = []

    def __call__(self, event: AgentEvent) -> None:
        self.events.append(event)

    @property
    def word(self) -> list[str]:
        """The types of the events; updates that follow each other count as one."""
        types = [event.type for event in self.events]
        before = ["", *types]
        return [
            each for each, last in zip(types, before, strict=False) if each != last or "update" not in each
        ]

    def of(self, kind: type[E]) -> list[E]:
        """The events of one class."""
        return [event for event in self.events if isinstance(event, kind)]

    def check(self) -> None:
        """Raise `IllegalEventError` unless the events are whole, legal runs."""
        state = check_events(self.events)
        if state is not State.IDLE:
            raise IllegalEventError(f"the run is not over: {state.value}")
