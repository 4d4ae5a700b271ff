"""The sessions that are open at once: which one is shown, and how the others stand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pi_tui.live import LiveSession

__all__ = ["OpenSessions", "State", "state_of"]


class State(Enum):
    """How a session stands that is not shown; its sign, and a word. What needs the user comes first."""

    ASKS = ("?", "asks")
    FAILED = ("✗", "failed")
    UNSEEN = ("✓", "finished")
    RUNNING = ("⠼", "runs")
    IDLE = ("·", "idle")

    @property
    def sign(self) -> str:
        """One cell."""
        return self.value[0]

    @property
    def word(self) -> str:
        """What it does, after a number or a name."""
        return self.value[1]


def state_of(live: LiveSession) -> State:
    """How a session stands."""
    store = live.store
    if store.questions:
        return State.ASKS
    shell = store.shell is not None and store.shell.running
    if store.running or store.summarising or live.summarising or shell:
        return State.RUNNING
    if not live.unseen:
        return State.IDLE
    from pi_trio.messages import AssistantMessage  # not for the first frame

    last = next((item.message for item in reversed(store.items) if item.message is not None), None)
    failed = isinstance(last, AssistantMessage) and last.stop_reason == "error"
    return State.FAILED if failed else State.UNSEEN


class OpenSessions:
    """In the order in which they were opened. `shown` is one of them, None before the first."""

    def __init__(self) -> None:
        self.shown: LiveSession | None = None
        self._open: dict[str, LiveSession] = {}

    def __iter__(self) -> Iterator[LiveSession]:
        return iter(self._open.values())

    def get(self, session_id: str) -> LiveSession | None:
        """An open session by its id."""
        return self._open.get(session_id)

    def show(self, live: LiveSession) -> None:
        """Another one is shown now; what happened in it is seen."""
        self._open[live.id] = self.shown = live
        live.unseen = False

    def drop(self, session_id: str) -> None:
        """One is open no more."""
        self._open.pop(session_id, None)

    def next(self, wanted: Callable[[LiveSession], bool] = lambda _live: True) -> LiveSession | None:
        """The one after that which is shown, around the end; None if there is no other."""
        ids = list(self._open)
        at = ids.index(self.shown.id) if self.shown is not None else -1
        others = (self._open[id_] for id_ in [*ids[at + 1 :], *ids[: max(at, 0)]])
        return next(filter(wanted, others), None)

    def others(self) -> dict[State, int]:
        """How many of the others stand how, what needs the user first."""
        states = [state_of(live) for live in self if live is not self.shown]
        return {state: states.count(state) for state in State if state in states}
