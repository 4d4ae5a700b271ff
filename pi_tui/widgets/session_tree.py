"""The session tree: turns or entries with all branches, driven by keys.

Narrow, a turn takes two lines; on the whole screen one, with its figures in columns. The head
does not scroll. While a search is written, letters only search.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from textual import events
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip

from pi_trio.session.digest import Digest
from pi_tui.items.tree_head import WIDE, subtitle_strip, title_strip
from pi_tui.items.tree_row import Mark, columns_for, figures_strip, row_strip
from pi_tui.items.words import clock
from pi_tui.keymap import hint
from pi_tui.row_facts import RowFacts, Unknown
from pi_tui.status import SPINNER
from pi_tui.store import SessionStore
from pi_tui.theme import Theme
from pi_tui.tree_rows import Row, Rows
from pi_tui.tree_search import Search
from pi_tui.tree_shown import SHOWS, Show
from pi_tui.widgets.lines import LineView, bindings_for, styled

__all__ = ["Choice", "SessionTree"]

Choice: TypeAlias = Literal[
    "go", "summarise", "instruct", "branch", "fork", "clone", "back", "label", "copy", "export"
]

HEAD = 2
"""Lines above the rows: the title, and a search or the names of the columns."""

_NAMES: Mapping[Show, str] = {
    "turns": "turns",
    "default": "entries",
    "no-tools": "no tools",
    "user-only": "prompts",
    "labeled-only": "labelled",
    "all": "all entries",
}


class SessionTree(LineView, can_focus=True):
    """Rows of the current session; the cursor stays on its entry while the tree grows."""

    DEFAULT_CSS = """
    SessionTree { height: 1fr; }
    """
    BINDINGS = bindings_for("tree")

    class Chosen(Message):
        """The user wants something done with a row."""

        def __init__(self, what: Choice, row: Row | None) -> None:
            super().__init__()
            self.what = what
            self.row = row

    class Moved(Message):
        """The cursor is elsewhere, or what it is on has changed."""

    class Previewed(Message):
        """The user wants the preview, or wants it no more."""

    class Seen(Message):
        """Rows have come into view of which something is not known."""

        def __init__(self, unknown: Sequence[Unknown]) -> None:
            super().__init__()
            self.unknown = unknown

    class Searched(Message):
        """A search begins, or has another text, and something is to be found."""

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
        self.search = Search()
        self.rows = Rows(store.outline)
        self.facts = RowFacts()
        self._cursor = 0
        self._at: str | None = None
        self._synced: tuple[object, ...] = ()
        self._unknown: list[Unknown] = []
        self._tick = 0
        words = {"app.tree.search": "search", "app.tree.filter.cycleForward": "show: {}", "app.help": "keys"}
        self._keys = hint(words, keymap)

    # ---------------------------------------------------------------- commands

    def show(self, store: SessionStore) -> None:
        """Show a session's tree, the cursor at where the session is."""
        self.store = store
        self.search.clear()
        self._renew()
        self.sync()
        self.to_leaf()

    def sync(self) -> None:
        """Take over what changed in the store. Does nothing while the tree is not seen."""
        if not self.display:
            return
        store = self.store
        if self.rows.outline is not store.outline:
            self._renew()
        about = store.session.name, store.running, store.cost, self._lines_per_row
        version = (store.outline.version, store.leaf_id, self.rows.show, *about)
        if version != self._synced:  # deltas of an answer draw nothing here
            self._synced = version
            self._lay_out()
            self.set_line_count(len(self.rows) * self._lines_per_row + HEAD)

    def begin_with(self, show: Show) -> None:
        """What is shown at first."""
        self.rows.choose(show)

    def to_leaf(self) -> None:
        """Put the cursor on where the session is."""
        self._move_to(self.rows.index(self.store.leaf_id) or 0)

    @property
    def row(self) -> Row | None:
        """The row under the cursor."""
        return self.rows[self._cursor] if self._cursor < len(self.rows) else None

    def take_found(self, text: str, found: Sequence[str]) -> None:
        """What a search has found; nothing, if another one is written by now."""
        if text != self.search.text:
            return
        self.search.found = found
        self.search.sync(self.rows)
        if self.search.typing:
            at = self.search.next(self._cursor, 0)
            self._move_to(self._cursor if at is None else at)
        self.refresh()

    def end_search(self) -> None:
        """Letters act again, and nothing is found."""
        self.search.clear()
        self.refresh()

    def animate_running(self) -> None:
        """Turn the spinner of the turn that runs, and count its seconds."""
        self._tick += 1
        at = self.rows.index(self.store.leaf_id)
        if self.display and at is not None:
            self.refresh(self._region(at))

    # ---------------------------------------------------------------- keys

    async def _on_key(self, event: events.Key) -> None:
        """Letters of a search are no keys."""
        if self.search.typing and self._type(event):
            event.stop()
            event.prevent_default()
        else:
            await super()._on_key(event)

    def _type(self, event: events.Key) -> bool:
        if event.key == "enter":
            self.search.typing = False
            if not self.search.active:
                self.end_search()
        elif event.key == "backspace":
            self._look_for(self.search.text[:-1])
        elif event.is_printable and event.character:
            self._look_for(self.search.text + event.character)
        else:
            return False
        self.refresh()
        return True

    def _look_for(self, text: str) -> None:
        self.search.write(text)
        self.post_message(self.Searched())

    def on_click(self, event: events.Click) -> None:
        """A row is pointed at."""
        at = (event.y + round(self.scroll_offset.y) - HEAD) // self._lines_per_row
        if event.y >= HEAD and at < len(self.rows):
            self._move_to(at)

    def action_move(self, by: int) -> None:
        self._move_to(self._cursor + by)

    def action_move_page(self, by: int) -> None:
        self._move_to(self._cursor + by * max(self._height // self._lines_per_row - 1, 1))

    def action_move_to(self, at: int) -> None:
        self._move_to(at if at >= 0 else len(self.rows) + at)

    def action_choose(self, what: Choice) -> None:
        self.post_message(self.Chosen(what, self.row))

    def action_search(self) -> None:
        self.search.clear()
        self.search.typing = True
        self.post_message(self.Searched())
        self.refresh()

    def action_next(self, by: int) -> None:
        search = self.search.active
        at = self.search.next(self._cursor, by) if search else self.rows.next_fork(self._cursor, by)
        if at is not None:
            self._move_to(at)

    def action_fold(self) -> None:
        self._fold(self.rows.fold_or_up(self._cursor))

    def action_unfold(self) -> None:
        self._fold(self.rows.unfold_or_down(self._cursor))

    def action_cycle(self, by: int) -> None:
        self._show(SHOWS[(SHOWS.index(self.rows.show) + by) % len(SHOWS)])

    def action_show(self, show: Show) -> None:
        self._show("turns" if show == self.rows.show else show)

    def action_preview(self) -> None:
        self.post_message(self.Previewed())

    # ---------------------------------------------------------------- inside

    @property
    def _lines_per_row(self) -> int:
        return 1 if self.rows.show != "turns" or self.width >= WIDE else 2

    @property
    def _height(self) -> int:
        return max(self.size.height - HEAD, 1)

    def _renew(self) -> None:
        """The outline is another: nothing that was known of rows holds."""
        self.rows = Rows(self.store.outline, self.rows.show)
        self.facts.clear()
        self._synced = ()

    def _show(self, show: Show) -> None:
        self.rows.choose(show)
        self.facts.clear()
        self.sync()
        self._move_to(self._cursor)

    def _fold(self, at: int) -> None:
        self._at = self.rows[at].id if at < len(self.rows) else None
        self._synced = ()
        self.sync()
        self._move_to(self._cursor)

    def _lay_out(self) -> None:
        """Make the rows anew, the cursor staying on its entry."""
        if self._at is None and self.row is not None:
            self._at = self.row.id
        self.rows.sync(self.store.leaf_id, self.store.labels)
        self.search.sync(self.rows)
        at = self.rows.index(self._at)
        self._cursor = min(self._cursor, max(len(self.rows) - 1, 0)) if at is None else at
        self.post_message(self.Moved())

    def _move_to(self, at: int) -> None:
        before, self._cursor = self._cursor, min(max(at, 0), max(len(self.rows) - 1, 0))
        self._at = self.row.id if self.row else None
        top = self._cursor * self._lines_per_row
        bottom = top + self._lines_per_row
        if top < self.scroll_offset.y:
            self.scroll_to(y=top, animate=False)
        elif bottom > self.scroll_offset.y + self._height:
            self.scroll_to(y=bottom - self._height, animate=False)
        self.refresh(Region(0, 0, self.size.width, HEAD), self._region(before), self._region(self._cursor))
        self.post_message(self.Moved())

    def _region(self, at: int) -> Region:
        """Where a row is drawn."""
        y = HEAD + at * self._lines_per_row - round(self.scroll_offset.y)
        return Region(0, y, self.size.width, self._lines_per_row)

    def on_resize(self) -> None:
        """Another height may have left the cursor out of view."""
        self.sync()
        self._move_to(self._cursor)

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.search.typing = False
        self.refresh()

    # ---------------------------------------------------------------- drawing

    def render_line(self, y: int) -> Strip:
        if y < HEAD:  # this part does not scroll
            return styled(self._head(y), self.size.width)
        return super().render_line(y)

    def line_at(self, y: int) -> Strip | None:
        at, within = divmod(y - HEAD, self._lines_per_row)
        if not 0 <= at < len(self.rows):
            return None
        row = self.rows[at]
        self._ask_for(row)
        mark = Mark(
            chosen=at == self._cursor and self.has_focus,
            found=self.search.has(at),
            label=self._label(row),
            doing=self._doing(at),
            like=tuple(other.text for each in self.rows.siblings(at) if (other := self._facts_of(each))),
        )
        told = self.facts.of(row)
        if within:
            return figures_strip(row, told, mark, self.width, self.theme)
        columns = columns_for(self.width) if self.width >= WIDE else () if self._lines_per_row == 1 else None
        return row_strip(row, told, mark, columns, self.width, self.theme)

    def _head(self, y: int) -> Strip:
        if y == 0:
            return title_strip(self.store, _NAMES[self.rows.show], self._keys, self.width, self.theme)
        searched = self.search.told(self._cursor) if self.search.on else ""
        return subtitle_strip(searched, _NAMES[self.rows.show], self.width, self.theme)

    def _facts_of(self, at: int) -> Digest | None:
        return self.facts.of(self.rows[at])

    def _label(self, row: Row) -> str:
        """A turn shows the label of whatever it stands for."""
        labels = self.store.labels
        return next((labels[each] for each in row.members if each in labels), "") if labels else ""

    def _doing(self, at: int) -> str:
        """What goes on in the row that the session is at."""
        store = self.store
        if not store.running or at != self.rows.index(store.leaf_id):
            return ""
        return f"{SPINNER[self._tick % len(SPINNER)]} {clock(store.clock() - store.run_started)}"

    def _ask_for(self, row: Row) -> None:
        unknown = self.facts.unknown(row, self.store.bodies)
        if unknown is not None:
            if not self._unknown:
                self.call_later(self._tell_unknown)
            self._unknown.append(unknown)

    def _tell_unknown(self) -> None:
        unknown, self._unknown = self._unknown, []
        self.post_message(self.Seen(unknown))
