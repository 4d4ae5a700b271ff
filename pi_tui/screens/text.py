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

__all__ = ["SecretScreen", "TextScreen"]


class TextScreen(Dialog[str | None]):
    """Gives what was written, perhaps nothing, or None when it is left.

    `text` is shown above, and `value` is there from the beginning.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+c", "leave", show=False, priority=True),
    ]
    keys_for = "Input"
    keys_do = "enter does it · esc leaves"
    colour = "muted"

    def __init__(
        self, title: str, text: str, theme: Theme, clock: Callable[[], float], *, value: str = ""
    ) -> None:
        super().__init__(title, self.keys_do, theme, clock, deaf=0.0)
        self._text = text
        self._value = value

    def compose(self) -> ComposeResult:
        """What it is about, the keys, and the line."""
        yield from super().compose()
        yield self.field(self._value)

    def draw(self, look: Look) -> Sequence[Strip]:
        """What it is about."""
        return wrapped(self._text, look.width, look.theme[self.colour])

    def field(self, value: str) -> Input:
        """The line to write in."""
        return Input(sanitise(value, keep_newlines=False))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """It is written."""
        self.dismiss(self.result_of(event.value))

    def result_of(self, written: str) -> str | None:
        """What the dialog gives."""
        return written

    def action_leave(self) -> None:
        self.dismiss(None)


class SecretScreen(TextScreen):
    """The same for the key of a provider, which is never shown; nothing written is None."""

    keys_do = "enter store · esc forget it"
    colour = "text"

    def field(self, value: str) -> Input:
        return Input(value, password=True, placeholder="paste the key")

    def result_of(self, written: str) -> str | None:
        return written.strip() or None
