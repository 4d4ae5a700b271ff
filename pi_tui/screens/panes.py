"""Which panes are seen, which one has the keys, and finding in the stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pi_tui.layout import Pane, arrange
from pi_tui.theme import Theme
from pi_tui.widgets.chrome import TabStrip

if TYPE_CHECKING:
    from textual.widget import Widget

    from pi_tui.live import LiveSession
    from pi_tui.screens.finding import Finding
    from pi_tui.screens.view import SessionView
    from pi_tui.store import SessionStore
    from pi_tui.tree_shown import Show
    from pi_tui.widgets.body import Body

__all__ = ["Panes"]

_ORDER: tuple[Pane, ...] = ("stream", "tree", "tools")

_ENTERED: Mapping[str | None, Pane] = {"tree": "tree", "tools": "tools", "prompt": "stream"}
"""The pane that a widget belongs to, by its id."""


class Panes:
    """`current` has the keys. Until there is a session there is no `body`, and what is asked does nothing."""

    def __init__(
        self, screen: SessionView, theme: Theme, keymap: Mapping[str, str], tree_shows: Show
    ) -> None:
        self.current: Pane = "stream"
        self.body: Body | None = None
        self._screen = screen
        self._theme = theme
        self._keymap = keymap
        self._tree_shows = tree_shows
        self._finding: Finding | None = None
        self._whole = False
        self._tools = False

    # ---------------------------------------------------------------- the session

    async def show(self, store: SessionStore) -> None:
        """Show a session. The panes are made when there is something to show in them."""
        if self.body is None:
            await self._make(store)
        else:
            self.end_finding()
            self.body.show(store)
        self.arrange()

    async def _make(self, store: SessionStore) -> None:
        from pi_tui.screens.finding import Finding
        from pi_tui.widgets.body import Body
        from pi_tui.widgets.find_bar import FindBar

        self.body = Body(store, self._theme, self._keymap)
        self.body.tree_pane.begin_with(self._tree_shows)
        bar = FindBar(self._keymap)
        await self._screen.mount(self.body, bar, before="#blank")
        await self._screen.query_one("#blank").remove()
        self._finding = Finding(bar, self.body.transcript)

    def sync(self) -> None:
        """Take over what changed in the store."""
        if self.body is not None:
            self.body.sync()

    def animate_running(self, store: SessionStore) -> None:
        """Turn the spinners and count the seconds of what runs."""
        if self.body is None:
            return
        if store.running_calls or store.shell:
            self.body.animate_running()
        if store.running:
            self.body.tree_pane.animate_running()

    # ---------------------------------------------------------------- where the keys go

    def turn_to(self, pane: Pane, *, whole: bool = False) -> None:
        """Give a pane the keys, and with `whole` all of the room."""
        entered = pane == "tree" != self.current
        if self.current == "reading" != pane and self.body is not None:
            self.body.transcript.leave()
        self.current, self._whole = pane, whole
        self.arrange()
        if entered and self.body is not None:
            self.body.tree_pane.to_leaf()

    def to_tree(self) -> None:
        """To the tree, and from there to all of it and back."""
        self.turn_to("tree", whole=self.current == "tree" and not self._whole)

    def to_tools(self, *, whole: bool = False) -> None:
        """To the tools, and from there back to the stream; with `whole` to all of them and back."""
        if whole:
            self.turn_to("tools", whole=not self._whole)
        else:
            self._tools = self.current != "tools"
            self.turn_to("tools" if self._tools else "stream")

    def to_next(self) -> None:
        """To the next pane, around the end."""
        at = _ORDER.index(self.current) if self.current in _ORDER else 0
        self.turn_to(_ORDER[(at + 1) % len(_ORDER)])

    def entered(self, widget: Widget) -> None:
        """A click went into a pane; an event that keys have since overtaken says nothing."""
        pane = _ENTERED.get(widget.id, self.current)
        if pane != self.current and widget is self._screen.focused:
            self.turn_to(pane)

    def arrange(self) -> None:
        """Show the panes for which there is room."""
        screen, body = self._screen, self.body
        if body is not None:
            seen = arrange(screen.size.width, self.current, tools=self._tools, whole=self._whole)
            screen.query_one(TabStrip).display = seen.strip
            body.lay_out(seen)
            focus = {"tree": body.tree_pane, "tools": body.tool_pane, "reading": body.transcript}
            screen.set_focus(focus.get(self.current) or screen.prompt)  # at once: the next key is for it
        screen.refresh_chrome()

    # ---------------------------------------------------------------- the stream

    @property
    def selected(self) -> bool:
        """Whether something is selected in the stream."""
        return self.body is not None and self.body.transcript.selection is not None

    def select_nothing(self) -> None:
        """Nothing is selected any more."""
        if self.body is not None:
            self.body.transcript.select(None)
            self._screen.refresh_chrome()

    @property
    def finding(self) -> bool:
        """Whether something is looked for in the stream."""
        return self._finding is not None and self._finding.active

    def find(self) -> None:
        """Ask what to look for."""
        if self._finding is not None:
            if self.current in ("tree", "tools"):
                self.turn_to("stream")
            self._finding.open()
            self._screen.refresh_chrome()

    def look_for(self, text: str, live: LiveSession) -> None:
        """Look for a text."""
        if self._finding is not None:
            self._finding.look_for(text, live)

    def look_at_next(self, by: int) -> None:
        """To the next place that was found, or one before."""
        if self._finding is not None:
            self._finding.go(by)

    def look_through_news(self, live: LiveSession) -> None:
        """Look through what has come since."""
        if self._finding is not None:
            self._finding.sync(live)

    def end_finding(self) -> None:
        """Nothing is looked for any more."""
        if self._finding is not None and self._finding.active:
            self._finding.close()
            self.arrange()

    # ---------------------------------------------------------------- tools and tree

    @property
    def stoppable(self) -> bool:
        """Whether the call that the tool pane shows runs."""
        return self.body is not None and self.body.tool_pane.runs

    @property
    def searching(self) -> bool:
        """Whether the tree, which has the keys, is searched."""
        return self.current == "tree" and self.body is not None and self.body.tree_pane.search.on

    def end_search(self) -> None:
        """The tree is searched no more."""
        if self.body is not None:
            self.body.tree_pane.end_search()
            self._screen.refresh_chrome()
