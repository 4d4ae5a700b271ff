"""A line of text that is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.strip import Strip
from textual.widgets import Input

from pi_trio.text import sanitise
from pi_tui.items.paint import Look, wrapped
from pi_tui.screens.dialog import Dialog
from pi_tui.theme import Theme

__all__ = ["TextScreen"]


class TextScreen(Dialog[str | None]):
    """Gives what was written, perhaps nothing, or None when it is left. `text` is shown above."""

    DEFAULT_CSS = """
    TextScreen Input { border: none; height: 1; padding: 0 1; }
    TextScreen Input:focus { border: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+c", "leave", show=False, priority=True),
    ]
    keys_for = "Input"

    def __init__(
        self, title: str, text: str, theme: Theme, clock: Callable[[], float], *, value: str = ""
    ) -> None:
        super().__init__(title, "enter does it · esc leaves", theme, clock, deaf=0.0)
        self._text = text
        self._value = sanitise(value, keep_newlines=False)

    def compose(self) -> ComposeResult:
        """What it is about, the keys, and the line."""
        yield from super().compose()
        yield Input(self._value)

    def draw(self, look: Look) -> Sequence[Strip]:
        """What it is about."""
        return wrapped(self._text, look.width, look.theme["muted"])

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """It is written."""
        self.dismiss(event.value)

    def action_leave(self) -> None:
        self.dismiss(None)
