"""Calling the user back: a title and a bell when something needs them and they look elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pi_trio.text import sanitise
from pi_tui.open_sessions import State, state_of

if TYPE_CHECKING:
    from pi_tui.live import LiveSession

__all__ = ["Attention"]

LONG = 10.0
"""Seconds from which on the end of a run is worth a bell; a question always is."""

_KEEP_TITLE, _GIVE_TITLE_BACK = "\x1b[22;2t", "\x1b[23;2t"


class Attention:
    """Writes nothing while the terminal has the focus, and gives its title back when it gets it again.

    `write` sends to the terminal, `is_away` says whether the user looks elsewhere, and `clock` gives
    seconds.
    """

    def __init__(
        self, write: Callable[[str], None], is_away: Callable[[], bool], clock: Callable[[], float]
    ) -> None:
        self._write = write
        self._is_away = is_away
        self._clock = clock
        self._states: dict[str, State] = {}
        self._began: dict[str, float] = {}
        self._titled = False

    def sync(self, live: LiveSession) -> None:
        """Something has happened in a session that may need the user."""
        before, now = self._states.get(live.id, State.IDLE), state_of(live)
        self._states[live.id] = now
        if now is State.RUNNING and before is not State.ASKS:
            self._began.setdefault(live.id, self._clock())
        elif before is State.RUNNING or (now is State.ASKS and before is not now):
            self._call(live, now)
        if now not in (State.RUNNING, State.ASKS):
            self._began.pop(live.id, None)

    def back(self) -> None:
        """The user is here again, or the program ends."""
        if self._titled:
            self._titled = False
            self._write(_GIVE_TITLE_BACK)

    def _call(self, live: LiveSession, state: State) -> None:
        if not self._is_away():
            return
        took = self._clock() - self._began.get(live.id, self._clock())
        asks = state is State.ASKS
        name = live.store.session.name or live.store.session.cwd.rpartition("/")[2]
        word = state.word if asks or state is State.FAILED else State.UNSEEN.word
        title = sanitise(f"{name} {word}", keep_newlines=False)[:80]
        keep = "" if self._titled else _KEEP_TITLE
        self._titled = True
        self._write(f"{keep}\x1b]2;{title}\x1b\\" + ("\x07" if asks or took >= LONG else ""))
