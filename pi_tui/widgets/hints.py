"""The list of completions above the prompt."""

from __future__ import annotations

from collections.abc import Sequence

from textual.strip import Strip
from textual.widget import Widget

from pi_tui.hints import Hint
from pi_tui.items.paint import BOLD, line, one_line
from pi_tui.theme import Theme
from pi_tui.widgets.lines import styled

__all__ = ["Hints"]

SHOWN = 6
"""Completions in view at a time."""

LINE_CELLS = 24


class Hints(Widget):
    """Without completions it takes no room."""

    DEFAULT_CSS = """
    Hints { height: 0; }
    """

    def __init__(self, theme: Theme, *, id: str | None = None) -> None:  # noqa: A002  # Textual's name
        super().__init__(id=id)
        self.theme = theme
        self._hints: list[Hint] = []
        self._at = 0
        self.moved = False
        """Whether somebody chose among them."""
        self.about: str | None = None
        """What was written when these were found."""

    @property
    def chosen(self) -> str:
        """The line under the cursor; empty while there is none."""
        return self._hints[self._at].line if self._hints else ""

    @property
    def lines(self) -> list[str]:
        """All completions."""
        return [hint.line for hint in self._hints]

    def tell(self, hints: Sequence[Hint], about: str) -> None:
        """Show these, which were found for the text `about`."""
        self.about = about
        if list(hints) != self._hints:
            self._hints, self._at, self.moved = list(hints), 0, False
            self.styles.height = min(len(hints), SHOWN)
            self.refresh()

    def move(self, by: int) -> None:
        """Move the cursor, around the ends."""
        self.moved = True
        self._at = (self._at + by) % max(len(self._hints), 1)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """A line, for Textual."""
        return styled(self._row(y), self.size.width)

    def _row(self, y: int) -> Strip:
        at = max(self._at - SHOWN + 1, 0) + y
        if at >= len(self._hints):
            return Strip([])
        hint, here = self._hints[at], at == self._at
        name = one_line(hint.line).ljust(LINE_CELLS) + " "
        left = [
            ("› " if here else "  ", self.theme["accent"]),
            (name, self.theme["accent"] + BOLD if here else self.theme["text"]),
            (one_line(hint.note), self.theme["muted"]),
        ]
        more = len(self._hints) - SHOWN
        right = [(f"{self._at + 1}/{len(self._hints)} ", self.theme["dim"])] if more > 0 and y == 0 else []
        return line(self.size.width, left, right, self.theme["selectedBg"] if here else None)
