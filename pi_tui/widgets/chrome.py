"""The single lines around the panes: rules, pane names, waiting messages, status."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

from pi_tui.items.paint import BOLD, Span, fit, line, one_line
from pi_tui.status import Part, fitting
from pi_tui.theme import Theme
from pi_tui.widgets.lines import OneLine, styled

__all__ = ["QueueLines", "Rule", "StatusLine", "TabStrip"]

MOST_QUEUED = 4
"""Waiting messages that are shown; of more, their number."""


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


class QueueLines(Widget):
    """The messages that wait, one a line."""

    DEFAULT_CSS = """
    QueueLines { height: 0; }
    """

    def __init__(self, theme: Theme, *, id: str | None = None) -> None:  # noqa: A002  # Textual's name
        super().__init__(id=id)
        self.theme = theme
        self._rows: list[tuple[str, str]] = []

    def tell(self, steering: Sequence[str], follow_up: Sequence[str]) -> None:
        """Show these texts."""
        rows = [("steer", text) for text in steering] + [("queue", text) for text in follow_up]
        if rows != self._rows:
            self._rows = rows
            self.styles.height = min(len(rows), MOST_QUEUED)
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """A line, for Textual."""
        return styled(self._row(y), self.size.width)

    def _row(self, y: int) -> Strip:
        width = self.size.width
        if y >= len(self._rows):
            return Strip([])
        if y == MOST_QUEUED - 1 and len(self._rows) > MOST_QUEUED:
            return line(width, [(f"  … {len(self._rows) - y} more", self.theme["muted"])])
        how, text = self._rows[y]
        mark = (f" {y + 1} {how}  ", self.theme["warning"])
        return line(width, [mark, (text[:width].replace("\n", " ⏎ "), self.theme["muted"])])
