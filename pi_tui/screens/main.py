"""The main screen: what happens on it, and what its keys do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, cast

from textual import events
from textual.binding import BindingType

from pi_tui.history import PromptHistory
from pi_tui.keymap import Area
from pi_tui.ladder import clear_step, escape_step, exit_step
from pi_tui.layout import Pane
from pi_tui.outside import edit_outside
from pi_tui.screens.help import HelpScreen
from pi_tui.screens.tree_keys import TreeKeys
from pi_tui.screens.view import SessionView
from pi_tui.theme import Theme
from pi_tui.widgets.lines import Missing, bindings_for
from pi_tui.widgets.prompt import Prompt
from pi_tui.widgets.queue import QueueList

if TYPE_CHECKING:
    from pi_tui.app import PiApp
    from pi_tui.tree_rows import Row
    from pi_tui.tree_shown import Show
    from pi_tui.widgets.find_bar import FindBar
    from pi_tui.widgets.lines import Copied
    from pi_tui.widgets.session_tree import SessionTree
    from pi_tui.widgets.tool_pane import ToolPane
    from pi_tui.widgets.tree_view import TreeView

__all__ = ["MainScreen"]


_AREAS: Mapping[Pane, Area] = {"stream": "prompt", "reading": "stream", "tree": "tree", "tools": "tools"}
"""Whose keys the help tells first, by the pane that has them."""


class MainScreen(SessionView):
    """See `SessionView`. Each message and each key is passed on to the part that it concerns."""

    BINDINGS: ClassVar[list[BindingType]] = bindings_for("everywhere")

    def __init__(
        self,
        theme: Theme,
        keymap: Mapping[str, str],
        history: PromptHistory,
        editor: str | None = None,
        tree_shows: Show = "turns",
    ) -> None:
        super().__init__(theme, keymap, history, tree_shows)
        self._editor = editor
        self._tree_keys = TreeKeys(self, theme)

    # ---------------------------------------------------------------- what happens

    def on_session_view_changed(self, event: SessionView.Changed) -> None:
        """Events have arrived."""
        store = event.live.store
        if store.stale:
            self.do(self.work.recover(event.live))
            return
        cast("PiApp", self.app).attention.sync(event.live)
        if event.live is not self.live or self.panes.body is None:
            self.refresh_chrome()
            return
        event.live.unseen = False
        if store.returned and not self.work.stopping:
            self.do(self.work.put_back_returned(event.live))
        if store.outline:
            self.prompt.suggestions = ()
        self.panes.sync()
        self.panes.look_through_news(event.live)
        self.asking.sync(event.live)
        self.refresh_chrome()

    def on_missing(self, event: Missing) -> None:
        """A pane shows entries whose bodies are not loaded."""
        if self.live is not None:
            self.do(self.work.load(event.ids))

    def on_prompt_submitted(self, event: Prompt.Submitted) -> None:
        """The user sends something; before there is a session it waits for it."""
        self.do(self.work.submit(event))

    def on_prompt_sent_nothing(self) -> None:
        """Enter on an empty prompt."""
        if self.work.queueing.editing is not None:
            self.work.queueing.stop()
        elif self.stepping.situation.owed:
            self.do(self.work.continue_turn())

    def on_prompt_not_kept(self, event: Prompt.NotKept) -> None:
        """The history cannot be written; what was sent was sent."""
        self.say(event.problem)

    def on_prompt_key_caught(self, event: Prompt.KeyCaught) -> None:
        """An API key where it does not belong: it is stored, or forgotten, and never sent."""
        if event.pasted and self.live is not None:
            self.do(self.asking.login(self.live, event.provider, event.key))
        else:
            self.say("not sent: there is an API key in it. /login stores keys.")

    def on_text_area_changed(self) -> None:
        """Completions depend on what is written."""
        self.completing.find()

    def on_tool_pane_stopped(self, event: ToolPane.Stopped) -> None:
        """A key of the tool pane."""
        self.do(self.work.stop_call(event.call_id))

    def on_session_tree_chosen(self, event: SessionTree.Chosen) -> None:
        """A key of the tree."""
        if self.live is not None:
            self._tree_keys.run(event.what, event.row)

    def on_session_tree_seen(self, event: SessionTree.Seen) -> None:
        """Rows of the tree show something that is not known yet."""
        if self.panes.body is not None:
            self.do(self.work.tree.learn(self.panes.body.tree_pane, event.unknown))

    def on_session_tree_searched(self, event: SessionTree.Searched) -> None:
        """A search in the tree begins, or has another text."""
        self.refresh_chrome()
        if self.panes.body is not None:
            self.do(self.work.tree.search(self.panes.body.tree_pane))

    def on_tree_view_rested(self, event: TreeView.Rested) -> None:
        """The cursor of the tree stays on a row."""
        if self.panes.body is not None:
            self.do(self._preview(self.panes.body.tree_view, event.row))

    async def _preview(self, view: TreeView, row: Row) -> None:
        view.take(await self.work.tree.preview(row))

    def on_find_bar_changed(self, event: FindBar.Changed) -> None:
        """Something is looked for."""
        if self.live is not None:
            self.panes.look_for(event.text, self.live)

    def on_find_bar_next(self, event: FindBar.Next) -> None:
        """A key of the find bar."""
        if event.read:
            self.panes.turn_to("reading")
        else:
            self.panes.look_at_next(event.by)

    def on_stream_find(self) -> None:
        """A key of the stream."""
        self.panes.find()

    def on_selectable_selecting(self) -> None:
        """What Esc and ctrl+c do has changed."""
        self.refresh_chrome()

    def on_copied(self, event: Copied) -> None:
        """A key of a pane."""
        self.do(self.clipping.copy(event.text))

    def on_resize(self, event: events.Resize) -> None:
        """Another width may show other panes."""
        self.panes.arrange()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """A click went somewhere."""
        self.panes.entered(event.widget)

    # ---------------------------------------------------------------- keys

    def action_interrupt(self) -> None:
        self.stepping.take(escape_step(self.stepping.situation))

    def action_clear(self) -> None:
        self.stepping.take(clear_step(self.stepping.situation))

    def action_exit(self) -> None:
        self.stepping.take(exit_step(self.stepping.situation))

    def action_tree(self) -> None:
        self.panes.to_tree()

    def action_tools(self) -> None:
        self.panes.to_tools()

    def action_whole_tools(self) -> None:
        self.panes.to_tools(whole=True)

    def action_next_pane(self) -> None:
        self.panes.to_next()

    def action_find(self) -> None:
        self.panes.find()

    def action_expand(self) -> None:
        if self.panes.body is not None:
            self.panes.body.transcript.set_expanded(not self.panes.body.transcript.drawing.expanded)

    def action_page(self, pages: int) -> None:
        if self.panes.body is not None:
            self.panes.body.transcript.scroll_pages(pages)

    def action_top(self) -> None:
        if self.panes.body is not None:
            self.panes.body.transcript.scroll_home(animate=False)

    def action_bottom(self) -> None:
        self.to_end()

    def action_dequeue(self) -> None:
        if self.live is not None and (queue := self.live.store.queue) and (queue.steering or queue.follow_up):
            self.do(self.work.dequeue())
        elif self.panes.body is not None:
            self.panes.turn_to("reading")

    def action_model(self) -> None:
        if self.live is not None:
            self.do(self.asking.model(self.live))

    def action_palette(self) -> None:
        if self.live is not None:
            self.do(self.choosing.palette())

    def action_settings(self) -> None:
        if self.live is not None:
            self.do(self.choosing.settings())

    def action_thinking(self) -> None:
        if self.live is not None:
            self.do(self.work.next_thinking_level())

    def action_help(self) -> None:
        here = _AREAS[self.panes.current]
        self.app.push_screen(HelpScreen(self._theme, self._keymap, here))

    def action_new_session(self) -> None:
        if self.live is not None:
            self.do(self.work.new_session())

    def action_next_session(self) -> None:
        if self.live is not None:
            self.do(self.work.next_session())

    def action_sessions(self) -> None:
        if self.live is not None:
            self.do(self.asking.sessions())

    def action_queue(self) -> None:
        queue = self.query_one(QueueList)
        if queue.rows:
            queue.to_last()
            self.set_focus(queue)
            self.refresh_chrome()

    def action_search_history(self) -> None:
        self.do(self.asking.earlier_prompt())

    def action_edit_outside(self) -> None:
        self.do(edit_outside(cast("PiApp", self.app), self.prompt, self._editor))

    def action_paste_image(self) -> None:
        self.do(self.clipping.paste_image())
