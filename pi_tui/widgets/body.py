"""The three panes side by side. Made when there is a session to show, not for the first frame."""

from __future__ import annotations

from collections.abc import Mapping

from textual.app import ComposeResult
from textual.containers import Horizontal

from pi_tui.layout import Arrangement
from pi_tui.store import SessionStore
from pi_tui.theme import Theme
from pi_tui.widgets.reading import Stream
from pi_tui.widgets.tool_pane import ToolPane
from pi_tui.widgets.tree_view import TreeView

__all__ = ["Body"]

TREE_CELLS = 34
TOOLS_CELLS = 56


class Body(Horizontal):
    """Tree, stream and tools of one session at a time."""

    DEFAULT_CSS = """
    Body { height: 1fr; }
    """

    def __init__(self, store: SessionStore, theme: Theme, keymap: Mapping[str, str]) -> None:
        super().__init__()
        self.tree_view = TreeView(store, theme, keymap)
        self.tree_pane = self.tree_view.session_tree
        self.transcript = Stream(store, theme, keymap)
        self.tool_pane = ToolPane(store, theme, keymap)

    def compose(self) -> ComposeResult:
        """The panes, left to right."""
        yield self.tree_view
        yield self.transcript
        yield self.tool_pane

    def lay_out(self, arrangement: Arrangement) -> None:
        """Show the panes that are seen, in the widths that they then have."""
        self.tree_view.display = self.tree_pane.display = arrangement.tree
        self.tree_view.lay_out(whole=not arrangement.stream)
        self.transcript.display = arrangement.stream
        self.tool_pane.display = arrangement.tools
        self.tree_view.styles.width = TREE_CELLS if arrangement.stream else "1fr"
        self.tool_pane.styles.width = TOOLS_CELLS if arrangement.stream else "1fr"
        self.tree_view.set_class(arrangement.stream, "-beside")
        self.tool_pane.set_class(arrangement.stream, "-beside")
        self.sync()

    def show(self, store: SessionStore) -> None:
        """Show another session."""
        for pane in (self.tree_pane, self.transcript, self.tool_pane):
            pane.show(store)

    def sync(self) -> None:
        """Take over what changed in the store."""
        for pane in (self.tree_pane, self.transcript, self.tool_pane):
            pane.sync()

    def animate_running(self) -> None:
        """Turn the spinners and count the seconds of what runs."""
        self.transcript.animate_running()
        self.tool_pane.animate_running()
