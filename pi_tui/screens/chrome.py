"""The lines around the panes, brought up to date: pane names, rule, what waits, status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pi_tui.layout import Pane
from pi_tui.status import rule_label, status_parts
from pi_tui.theme import Theme
from pi_tui.widgets.chrome import Rule, StatusLine, TabStrip
from pi_tui.widgets.hints import Hints
from pi_tui.widgets.prompt import Prompt
from pi_tui.widgets.queue import QueueList

if TYPE_CHECKING:
    from pi_tui.ladder import Situation
    from pi_tui.screens.view import SessionView
    from pi_tui.store import SessionStore

__all__ = ["Chrome"]

SPINNER_INTERVAL = 1 / 8

_PARTS = (TabStrip, Rule, QueueList, Hints, Prompt, StatusLine)


class Chrome:
    """Reads how things stand, and tells the widgets. The spinner turns only while something runs."""

    def __init__(self, screen: SessionView, theme: Theme, keymap: Mapping[str, str]) -> None:
        self._screen = screen
        self._theme = theme
        self._keymap = keymap
        self._tick = 0

    def start(self) -> None:
        """The widgets are there."""
        self._spinner = self._screen.set_interval(SPINNER_INTERVAL, self.turn_spinner, pause=True)
        self.refresh()

    def turn_spinner(self) -> None:
        """What runs has another frame of its spinner, and another second."""
        self._tick += 1
        if self._screen.live is not None:
            self._screen.panes.animate_running(self._screen.live.store)
        self.refresh()

    def refresh(self) -> None:
        """Bring everything up to date."""
        screen = self._screen
        if not all(screen.query(part) for part in _PARTS):
            return  # the program ends, and they go one by one while something that was begun comes back
        store = screen.live.store if screen.live is not None else None
        now, others = screen.stepping.situation, screen.work.sessions.others()
        parts = status_parts(store, now, screen.telling.message, self._theme, self._keymap, others)
        screen.query_one(StatusLine).tell(parts)
        if store is not None:
            self._tell_session(store, now)

    def _tell_session(self, store: SessionStore, now: Situation) -> None:
        screen, prompt = self._screen, self._screen.prompt
        level = f"thinking{store.thinking_level.capitalize()}"
        colour = "bashMode" if prompt.text.startswith("!") else level
        screen.query_one("#rule", Rule).tell(rule_label(store, now, self._tick), colour)
        queue = screen.query_one(QueueList)
        queue.tell(store.queue, screen.work.unsent, reached=not prompt.text)
        screen.work.queueing.sync()
        prompt.waiting = bool(queue.rows)
        prompt.takes_images = "image" in store.model.input
        screen.query_one(TabStrip).tell(*_tabs(store, screen.panes.current))
        prompt.running = now.busy
        if now.busy or now.shell:
            self._spinner.resume()
        else:
            self._spinner.pause()


def _tabs(store: SessionStore, pane: Pane) -> tuple[list[str], str]:
    """The names of the panes, and that of the current one."""
    running = len(store.running_calls)
    branches = store.outline.branches
    tree = f"Tree {branches}" if branches > 1 else "Tree"
    current = "Stream" if pane == "reading" else pane.capitalize()
    return ["Stream", tree, f"Tools {running}" if running else "Tools"], current
