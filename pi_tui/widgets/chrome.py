"""The single lines around the panes: rules, pane names, status."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.style import Style
from textual.geometry import Size
from textual.strip import Strip
from textual.widget import Widget

from pi_tui.items.paint import BOLD, Span, fit, line, one_line
from pi_tui.items.words import in_rows
from pi_tui.status import Part, fitting
from pi_tui.theme import Theme
from pi_tui.widgets.lines import OneLine, styled

__all__ = ["KeyRows", "Rule", "StatusLine", "TabStrip"]

MOST_ROWS = 5
"""A dialog's keys take at most one of so many lines of the screen."""


class StatusLine(OneLine):
    """One line: what the keys do now, and how things stand."""

    parts: Sequence[Part] = ()

    def tell(self, parts: Sequence[Part]) -> None:
        """Show these parts."""
        if list(parts) != list(self.parts):
            self.parts = parts
            self.refresh()

    def strip(self, width: int) -> Strip:
        spans: list[Span] = [(" ", Style())]
        for at, part in enumerate(fitting(self.parts, width - 1)):
            spans += [(" │ ", self.theme["borderMuted"])] if at else []
            spans += part.spans
        return line(width, spans)


class Rule(OneLine):
    """A line across, with a label when there is something to say."""

    label = ""
    colour = "border"

    def tell(self, label: str, colour: str) -> None:
        """Show a label, in the colour of a theme token."""
        if (label, colour) != (self.label, self.colour):
            self.label, self.colour = label, colour
            self.refresh()

    def strip(self, width: int) -> Strip:
        style = self.theme[self.colour]
        if not self.label:
            return line(width, [("─" * width, style)])
        label = fit(one_line(self.label), width - 8)
        rest = "─" * (width - cell_len(label) - 4)
        return line(width, [("──", style), (f" {label} ", self.theme["muted"] + BOLD), (rest, style)])


class TabStrip(OneLine):
    """The names of the panes, where only one of them is seen."""

    current = "Stream"
    names: Sequence[str] = ("Stream",)

    def tell(self, names: Sequence[str], current: str) -> None:
        """Show these names; the one that begins with `current` is seen now."""
        if (list(names), current) != (list(self.names), self.current):
            self.names, self.current = names, current
            self.refresh()

    def strip(self, width: int) -> Strip:
        spans: list[Span] = [(" ", Style())]
        for at, name in enumerate(self.names):
            chosen = name.startswith(self.current)
            spans += [(" │ ", self.theme["borderMuted"])] if at else []
            style = self.theme["accent"] + BOLD if chosen else self.theme["muted"]
            spans.append((f"‹{name}›" if chosen else f" {name} ", style))
        return line(width, spans)


class KeyRows(Widget):
    """The keys of a dialog, or a sentence in their place: on as many lines as that takes."""

    DEFAULT_CSS = """
    KeyRows { height: auto; }
    """

    def __init__(self, theme: Theme, text: str = "", *, id: str | None = None) -> None:  # noqa: A002  # Textual's name
        super().__init__(id=id)
        self.theme = theme
        self._text = text
        self._colour = "muted"

    def tell(self, text: str, colour: str = "muted") -> None:
        """Show a text, in the colour of a theme token."""
        self._text, self._colour = text, colour
        self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """See `Widget`."""
        return min(len(self._rows(width)), max(viewport.height // MOST_ROWS, 1))

    def render_line(self, y: int) -> Strip:
        """A line, for Textual."""
        width = self.size.width
        text = "".join(self._rows(width)[y : y + 1])
        return styled(line(width, [(f" {text}", self.theme[self._colour])]), width)

    def _rows(self, width: int) -> list[str]:
        return in_rows(self._text, width - 2)
