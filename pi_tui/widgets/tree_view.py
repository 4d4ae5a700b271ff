"""The tree with a preview of its selected row below, where there is room or the user wants it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.strip import Strip
from textual.timer import Timer
from textual.widget import Widget

from pi_tui.items.paint import Look
from pi_tui.items.tree_preview import Preview, preview_strips, preview_title
from pi_tui.keymap import hint
from pi_tui.store import SessionStore
from pi_tui.theme import Theme
from pi_tui.tree_rows import Row
from pi_tui.widgets.chrome import Rule
from pi_tui.widgets.lines import styled
from pi_tui.widgets.session_tree import SessionTree

__all__ = ["TreeView"]

ROOMY = 28
"""Lines from which on a tree on the whole screen has a preview by itself."""

REST = 0.12
"""Seconds that the cursor rests before what it is on is looked at: keys that repeat pass over it."""


class TreeView(Vertical):
    """Both are of one session at a time. On the whole screen `lay_out` says so."""

    DEFAULT_CSS = """
    TreeView TreePreview { height: 11; }
    """

    class Rested(Message):
        """The cursor rests on a row, of which a preview is wanted."""

        def __init__(self, row: Row) -> None:
            super().__init__()
            self.row = row

    def __init__(self, store: SessionStore, theme: Theme, keymap: Mapping[str, str]) -> None:
        super().__init__(id="tree-view")
        self.session_tree = SessionTree(store, theme, keymap)
        self._rule = Rule(theme)
        self._preview = TreePreview(theme)
        self._whole = False
        self._wanted: bool | None = None
        self._timer: Timer | None = None
        words = {
            "tui.select.confirm": "stops it and goes",
            "app.tree.fork": "a second session, the turn goes on",
        }
        self._while_running = "A turn is running:  " + hint(words, keymap)

    def compose(self) -> ComposeResult:
        """The tree above."""
        yield self.session_tree
        yield self._rule
        yield self._preview

    def on_mount(self) -> None:
        """Nothing is previewed yet."""
        self._arrange()

    def lay_out(self, *, whole: bool) -> None:
        """Whether the tree has the screen for itself."""
        self._whole = whole
        self._arrange()

    def on_resize(self) -> None:
        """There may be room now, or none."""
        self._arrange()

    def on_session_tree_moved(self, event: SessionTree.Moved) -> None:
        """Another row, or more of it."""
        event.stop()
        self._tell()

    def _tell(self) -> None:
        """Tell what is known of the row, and the rest when the cursor stays."""
        self._arrange()
        row = self.session_tree.row
        if not self._preview.display or row is None:
            return
        self._rule.tell(preview_title(row, self.session_tree.store.outline.letter(row.id)), "border")
        if self._preview.tell(row, self.session_tree.store, self._while_running):
            if self._timer is not None:
                self._timer.stop()
            self._timer = self.set_timer(REST, self._rested)

    def on_session_tree_previewed(self, event: SessionTree.Previewed) -> None:
        """Show the preview, or not, from now on."""
        event.stop()
        self._wanted = not self._preview.display
        self._tell()

    def take(self, preview: Preview) -> None:
        """What was wanted to be known of a row, if the cursor is still there."""
        row = self.session_tree.row
        if row is not None and row.id == preview.row.id:
            self._preview.take(preview)

    def _rested(self) -> None:
        row = self.session_tree.row
        if row is not None:
            self.post_message(self.Rested(row))

    def _arrange(self) -> None:
        roomy = self.size.height >= ROOMY
        shown = self._whole and (roomy if self._wanted is None else self._wanted)
        self._rule.display = self._preview.display = shown


class TreePreview(Widget, can_focus=False):
    """The preview, as it was told last. It does not scroll: a key lays nothing out anew."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._shown: Preview | None = None
        self._key: tuple[object, ...] = ()
        self._strips: Sequence[Strip] = ()
        self._about = ("", "", "")

    def tell(self, row: Row, store: SessionStore, running: str) -> bool:
        """Show what is known of a row. False if that is all."""
        level = store.thinking_level
        now = store.model.id if level == "off" or not store.model.reasoning else f"{store.model.id} {level}"
        self._about = (now, store.session.cwd, running if store.running else "")
        key = (id(store), row.id, row.members[-1], store.leaf_id, store.running)
        news = key != self._key
        if news:
            same = self._shown is not None and self._shown.row.id == row.id
            self._key = key
            self._shown = self._shown if same else Preview(row)
        self._draw()
        return news

    def take(self, preview: Preview) -> None:
        """Show all of it."""
        self._shown = preview
        self._draw()

    def on_resize(self) -> None:
        """Another width."""
        self._draw()

    def render_line(self, y: int) -> Strip:
        """A line, for Textual."""
        return styled(self._strips[y] if y < len(self._strips) else Strip([]), self.size.width)

    def _draw(self) -> None:
        if self._shown is not None:
            look = Look(max(self.size.width, 1), self._theme)
            self._strips = preview_strips(self._shown, *self._about, look)
            self.refresh()
