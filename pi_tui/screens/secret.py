"""A line that is written and never shown: the key of a provider."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.strip import Strip
from textual.widgets import Input

from pi_tui.items.paint import Look, wrapped
from pi_tui.screens.dialog import Dialog
from pi_tui.theme import Theme

__all__ = ["SecretScreen"]


class SecretScreen(Dialog[str | None]):
    """Gives what was written, or None. What is there from the beginning was pasted elsewhere."""

    DEFAULT_CSS = """
    SecretScreen Input { border: none; height: 1; padding: 0 1; }
    SecretScreen Input:focus { border: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+c", "leave", show=False, priority=True),
    ]

    keys_for = "Input"

    def __init__(self, title: str, text: str, secret: str, theme: Theme, clock: Callable[[], float]) -> None:
        super().__init__(title, "enter store · esc forget it", theme, clock, deaf=0.0)
        self._text = text
        self._secret = secret

    def compose(self) -> ComposeResult:
        """The words, the keys, and the line."""
        yield from super().compose()
        yield Input(self._secret, password=True, placeholder="paste the key")

    def draw(self, look: Look) -> Sequence[Strip]:
        """What becomes of it."""
        return wrapped(self._text, look.width, look.theme["text"])

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """It is to be stored."""
        self.dismiss(event.value.strip() or None)

    def action_leave(self) -> None:
        self.dismiss(None)
