"""The session tree: an outline of the user's prompts, with all branches, driven by keys.

Narrow, a turn takes two lines; on the whole screen one, with its figures in columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from rich.style import Style
from textual.message import Message
from textual.strip import Strip

from pi_tui.items.paint import BOLD, Span, line, one_line
from pi_tui.items.words import age, plural
from pi_tui.outline import Row
from pi_tui.store import SessionStore
from pi_tui.theme import Theme
from pi_tui.widgets.lines import LineView, Missing, bindings_for

__all__ = ["SessionTree"]

WIDE = 70
"""From this width on, figures stand in columns."""

HEAD = 2
"""Lines above the rows: the session's name, and one blank."""

DEEPEST = 16
"""Cells of branch lines that are drawn; deeper ones lose their outermost."""


class SessionTree(LineView, can_focus=True):
    """Rows of the current session; the cursor stays on its entry while the tree grows."""

    DEFAULT_CSS = """
    SessionTree { height: 1fr; }
    """
    BINDINGS = bindings_for("tree")

    class Chosen(Message):
        """The user wants something done with a row: `go`, `summarise`, `branch`, `fork` or `back`."""

        def __init__(self, what: str, row: Row | None) -> None:
            super().__init__()
            self.what = what
            self.row = row

    def __init__(
        self,
        store: SessionStore,
        theme: Theme,
        keymap: Mapping[str, str],
        *,
        id: str | None = None,  # noqa: A002  # Textual's name
    ) -> None:
        super().__init__(theme, keymap, id=id)
        self.store = store
        self._rows: list[Row] = []
        self._cursor = 0
        self._entries = False
        self._asked: set[str] = set()

    # ---------------------------------------------------------------- commands

    def show(self, store: SessionStore) -> None:
        """Show a session's tree, the cursor at where the session is."""
        self.store = store
        self._asked = set()
        self._rows = []
        self.sync()
        self.to_leaf()

    def sync(self) -> None:
        """Take over what changed in the store. Does nothing while the tree is not seen."""
        if not self.display:
            return
        rows = self.store.tree.rows
        if rows is not self._rows:
            self._keep_cursor(rows)
        self.set_line_count(len(rows) * self._lines_per_row + HEAD)

    def to_leaf(self) -> None:
        """Put the cursor on the last row of the current branch."""
        active = [at for at, row in enumerate(self._rows) if row.active]
        self._move_to(active[-1] if active else 0)

    @property
    def row(self) -> Row | None:
        """The row under the cursor."""
        return self._rows[self._cursor] if self._cursor < len(self._rows) else None

    # ---------------------------------------------------------------- keys

    def action_move(self, by: int) -> None:
        self._move_to(self._cursor + by)

    def action_move_page(self, by: int) -> None:
        self._move_to(self._cursor + by * max(self.size.height // self._lines_per_row - 1, 1))

    def action_move_to(self, at: int) -> None:
        self._move_to(at if at >= 0 else len(self._rows) + at)

    def action_go(self) -> None:
        self.post_message(self.Chosen("go", self.row))

    def action_summarise(self) -> None:
        self.post_message(self.Chosen("summarise", self.row))

    def action_branch(self) -> None:
        self.post_message(self.Chosen("branch", self.row))

    def action_fork(self) -> None:
        self.post_message(self.Chosen("fork", self.row))

    def action_back(self) -> None:
        self.post_message(self.Chosen("back", self.row))

    def action_entries(self) -> None:
        if self.store is not None:
            self._entries = not self._entries
            self.store.show_entries(self._entries)
            self.sync()

    # ---------------------------------------------------------------- inside

    @property
    def _lines_per_row(self) -> int:
        return 1 if self._entries or self.width >= WIDE else 2

    def _keep_cursor(self, rows: list[Row]) -> None:
        here = self.row.id if self.row else None
        self._rows = rows
        found = next((at for at, row in enumerate(rows) if row.id == here), None)
        if found is None:
            self.to_leaf()
        else:
            self._cursor = found

    def _move_to(self, at: int) -> None:
        self._cursor = min(max(at, 0), max(len(self._rows) - 1, 0))
        top = HEAD + self._cursor * self._lines_per_row
        bottom = top + self._lines_per_row
        if self._cursor == 0:
            top = 0
        if top < self.scroll_offset.y:
            self.scroll_to(y=top, animate=False)
        elif bottom > self.scroll_offset.y + self.size.height:
            self.scroll_to(y=bottom - self.size.height, animate=False)
        self.refresh()

    def on_resize(self) -> None:
        """Another height may have left the cursor out of view."""
        self.sync()
        self._move_to(self._cursor)

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()

    # ---------------------------------------------------------------- drawing

    def line_at(self, y: int) -> Strip | None:
        if y < HEAD:
            return self._title() if y == 0 else None
        at, within = divmod(y - HEAD, self._lines_per_row)
        if at >= len(self._rows):
            return None
        row = self._rows[at]
        self._ask_for(row)
        chosen = at == self._cursor and self.has_focus
        ground = self.theme["selectedBg"] if chosen else None
        return self._first(row, chosen, ground) if within == 0 else self._second(row, ground)

    def _title(self) -> Strip:
        flat = self.store.tree
        right = ""
        if flat.branches > 1:
            here = f"branch {flat.branch} of " if flat.branch else "branches "
            right = f"{here}{flat.branches} "
        name = self.store.session.name or PurePath(self.store.session.cwd).name or "session"
        return line(self.width, [(f" {name}", BOLD)], [(right, self.theme["muted"])])

    def _first(self, row: Row, chosen: bool, ground: Style | None) -> Strip:
        theme = self.theme
        weight = BOLD if row.active else Style()
        number = f"{row.number} " if row.kind == "prompt" else ""
        left: list[Span] = [
            ("›" if chosen else " ", theme["accent"] + BOLD),
            ("•" if row.active else " ", theme["accent"]),
            (_cut(row.prefix), theme["border"]),
            (" ", Style()),
            (number, theme["muted"]),
            (self._text(row), (theme["text"] if row.kind == "prompt" else theme["muted"]) + weight),
        ]
        right: list[Span] = [(self._figures(row) + " ", theme["dim"])] if self._lines_per_row == 1 else []
        return line(self.width, left, right, ground)

    def _second(self, row: Row, ground: Style | None) -> Strip:
        theme = self.theme
        left = [
            ("  ", Style()),
            (_cut(row.rest), theme["border"]),
            ("   ", Style()),
            (self._figures(row), theme["dim"]),
        ]
        return line(self.width, left, (), ground)

    def _text(self, row: Row) -> str:
        body = self._body(row)
        if body is None:
            return "…"
        match row.kind:
            case "compaction":
                return "≡ compacted"
            case "summary":
                return "⎇ " + one_line(str(body.get("summary", "")))
            case _:
                return one_line(_said(body)) or f"({row.detail})"

    def _figures(self, row: Row) -> str:
        body = self._body(row)
        parts = [plural(row.tools, "tool")] if row.tools else []
        parts.append(age(str(body.get("timestamp", ""))) if body else "")
        return "  ".join(part for part in parts if part)

    def _body(self, row: Row) -> Any:
        return self.store.bodies.get(row.id)

    def _ask_for(self, row: Row) -> None:
        if row.id not in self.store.bodies and row.id not in self._asked:
            self._asked.add(row.id)
            self.post_message(Missing([row.id]))


def _cut(prefix: str) -> str:
    return prefix if len(prefix) <= DEEPEST else "…" + prefix[1 - DEEPEST :]


def _said(body: Any) -> str:
    """The text of a message entry, or the names of the calls of an answer without any."""
    message = body.get("message", body)
    content = message.get("content", "")
    if isinstance(content, str):
        return content
    blocks = [block for block in content if isinstance(block, dict)]
    text = "\n".join(str(block.get("text", "")) for block in blocks if block.get("type") == "text")
    return text or " ".join(str(block.get("name", "")) for block in blocks if block.get("type") == "toolCall")
