"""The parts of the list of sessions: its rows, and the end of the chosen one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from textual.strip import Strip

from pi_tui.items.paint import BOLD, Look, Span, line, one_line, wrapped
from pi_tui.items.words import age, short_path
from pi_tui.open_sessions import State
from pi_tui.session_rows import SessionRow
from pi_tui.theme import Theme
from pi_tui.widgets.lines import LineView

__all__ = ["Preview", "SessionList"]

PREVIEW = 7
"""Lines of the last exchange."""

WIDE = 80
"""Cells from which on there is room for folders."""


class SessionList(LineView, can_focus=True, inherit_bindings=False):
    """The sessions, one a line; where something was found in a text, a second one says it."""

    def __init__(self, theme: Theme, home: str, *, id: str) -> None:  # noqa: A002  # Textual's name
        super().__init__(theme, id=id)
        self._home = home
        self._rows: Sequence[SessionRow] = ()
        self._at = 0
        self._nothing = ""

    @property
    def chosen(self) -> SessionRow | None:
        """The session under the cursor."""
        return self._rows[self._at] if self._rows else None

    def show(self, rows: Sequence[SessionRow], nothing: str = "") -> None:
        """Show these, or say `nothing`; the cursor stays with its session."""
        before = self.chosen
        at = next((at for at, row in enumerate(rows) if before and row.id == before.id), None)
        self._rows = rows
        self._at = min(self._at, max(len(rows) - 1, 0)) if at is None else at
        self._nothing = nothing
        self.set_line_count(len(rows))
        self._keep_in_view()

    def move(self, by: int) -> None:
        """Move the cursor."""
        self._at = min(max(self._at + by, 0), max(len(self._rows) - 1, 0))
        self._keep_in_view()
        self.refresh()

    def line_at(self, y: int) -> Strip | None:
        if y == 0 and not self._rows:
            return line(self.width, [(f"  {self._nothing}", self.theme["muted"])])
        if y >= len(self._rows):
            return None
        row, here, theme = self._rows[y], y == self._at, self.theme
        state = f"{row.state.sign} " if row.state else "  "
        indent = "  " * (row.depth - 1) + "└ " if row.depth else ""
        title = one_line(row.title)
        about = f"  {one_line(row.excerpt)}" if row.excerpt else ""
        left: list[Span] = [
            ("› " if here else "  ", theme["accent"]),
            (state, theme["warning" if row.state in (State.ASKS, State.FAILED) else "accent"]),
            (indent, theme["dim"]),
            (title, theme["text"] + BOLD if here else theme["text"]),
            (about, theme["muted"]),
        ]
        when = _when(row)
        folder = f"{short_path(row.folder, self._home)}  " if self.width >= WIDE else ""
        right = [(f"{folder}{when:>8} ", theme["muted"])]
        return line(self.width, left, right, theme["selectedBg"] if here else None)

    def _keep_in_view(self) -> None:
        top, height = round(self.scroll_offset.y), max(self.size.height, 1)
        if not top <= self._at < top + height:
            self.scroll_to(y=self._at if self._at < top else self._at - height + 1, animate=False)


def _when(row: SessionRow) -> str:
    """How an open session stands, and how old another one is."""
    if row.shown:
        return "this one"
    return row.state.word if row.state else age(datetime.fromtimestamp(row.modified, UTC).isoformat())


class Preview(LineView):
    """The last prompt and the last answer of a session."""

    DEFAULT_CSS = """
    Preview { height: 7; }
    """

    def __init__(self, theme: Theme, *, id: str) -> None:  # noqa: A002  # Textual's name
        super().__init__(theme, id=id)
        self._texts = ("", "")
        self._lines: Sequence[Strip] = ()

    def on_resize(self) -> None:
        """The width is known, or another."""
        self.show(*self._texts)

    def show(self, prompt: str, answer: str) -> None:
        """Show these."""
        self._texts = (prompt, answer)
        look = Look(self.width, self.theme)
        first = wrapped(f"▌ {prompt[:1000]}", look.width, self.theme["accent"])[:2] if prompt else []
        rest = wrapped(answer[:4000], look.width, self.theme["text"]) if answer else []
        self._lines = [*first, *rest][:PREVIEW]
        self.set_line_count(len(self._lines))

    def line_at(self, y: int) -> Strip | None:
        return self._lines[y] if y < len(self._lines) else None
