"""What the status line says for a moment, and the question that a second press of a key answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from textual.timer import Timer

from pi_tui.keymap import keys_now

if TYPE_CHECKING:
    from pi_tui.screens.view import SessionView

__all__ = ["ARMED_FOR", "Telling"]

ARMED_FOR = 4.0
"""Seconds that a sentence stays, and that a question waits for its second press."""

_ANSWERING = ("app.interrupt", "app.clear", "app.exit")
"""Whose keys answer a question, beside the one that asked it."""


class Telling:
    """`message` is what is said now, and `armed` the question that the next press would answer."""

    def __init__(self, screen: SessionView, keymap: Mapping[str, str]) -> None:
        self.message = ""
        self.armed = ""
        self._screen = screen
        self._answers = {key for id_ in _ANSWERING for key in keys_now(id_, keymap).split(",") if key}
        self._last_key = ""
        self._timer: Timer | None = None

    def tell(self, message: str) -> None:
        """Say something for a moment, or nothing any more."""
        if self._timer is not None:
            self._timer.stop()
        self.message = message
        self._timer = self._screen.set_timer(ARMED_FOR, self.disarm) if message else None
        self._screen.refresh_chrome()

    def confirmed(self, question: str, what: str) -> bool:
        """Whether this press answers the question that an earlier one asked; if not, ask it."""
        if self.armed == question:
            self.disarm()
            return True
        self.armed = question
        self.tell(f"{what}: press again, esc keeps on")
        return False

    def key_comes(self, key: str) -> None:
        """A key, or something else that is none: a question that it does not answer is taken back."""
        if self.armed and key != self._last_key and key not in self._answers:
            self.disarm()
        self._last_key = key

    def disarm(self) -> None:
        """Ask nothing and say nothing any more."""
        self.armed = ""
        self.tell("")
