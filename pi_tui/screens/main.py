"""The main screen: panes above, prompt and status below. It says who does what happens and what the keys ask.

It is composed without a session, so that the first frame needs nothing but Textual; the
panes are mounted when the runtime has one to show.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, cast

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Static

from pi_trio.errors import PiError
from pi_tui.history import PromptHistory
from pi_tui.items.words import plural
from pi_tui.ladder import clear_step, escape_step, exit_step
from pi_tui.outside import edit_outside
from pi_tui.pictures import clipboard_image
from pi_tui.screens.asking import Asking
from pi_tui.screens.choosing import Choosing
from pi_tui.screens.chrome import Chrome
from pi_tui.screens.completing import Completing
from pi_tui.screens.help import HelpScreen
from pi_tui.screens.panes import Panes
from pi_tui.screens.stepping import Stepping
from pi_tui.screens.telling import Telling
from pi_tui.screens.tree_keys import TreeKeys
from pi_tui.theme import Theme
from pi_tui.widgets.chrome import Rule, StatusLine, TabStrip
from pi_tui.widgets.hints import Hints
from pi_tui.widgets.lines import Missing, bindings_for
from pi_tui.widgets.prompt import Prompt
from pi_tui.widgets.queue import QueueList, QueueRow, Wish
from pi_tui.work import Work

if TYPE_CHECKING:
    from pi_trio.commands import View as OwnView
    from pi_tui.app import PiApp
    from pi_tui.live import LiveSession
    from pi_tui.store import SessionStore
    from pi_tui.tree_rows import Row
    from pi_tui.tree_shown import Show
    from pi_tui.widgets.find_bar import FindBar
    from pi_tui.widgets.lines import Copied
    from pi_tui.widgets.session_tree import SessionTree
    from pi_tui.widgets.tool_pane import ToolPane
    from pi_tui.widgets.tree_view import TreeView

__all__ = ["MainScreen"]


class MainScreen(Screen[None]):
    """One session at a time; what is done with it is in `work`. It is the `View` of that.

    `panes` has the panes, `chrome` the lines around them, and `telling` what is said for a moment;
    `completing` finds completions, and `stepping` does what Esc, ctrl+c and ctrl+d mean now.
    """

    DEFAULT_CSS = """
    MainScreen { background: ansi_default; color: ansi_default; layout: vertical; overflow: hidden; }
    MainScreen #blank { height: 1fr; }
    MainScreen #entry { height: auto; }
    MainScreen #mark { width: 2; height: 1; color: $pi-accent; text-style: bold; }
    MainScreen TreeView.-beside { border-right: solid $pi-borderMuted; }
    MainScreen ToolPane.-beside { border-left: solid $pi-borderMuted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("everywhere")
    AUTO_FOCUS: ClassVar[str] = "#prompt"  # the list of what waits comes first, and would be chosen

    class Changed(Message):
        """The store of a session has changed."""

        def __init__(self, live: LiveSession) -> None:
            super().__init__()
            self.live = live

    def __init__(
        self,
        theme: Theme,
        keymap: Mapping[str, str],
        history: PromptHistory,
        editor: str | None = None,
        tree_shows: Show = "turns",
    ) -> None:
        super().__init__()
        self._history = history
        self._editor = editor
        self._theme = theme
        self._keymap = keymap
        self.work = Work(self)
        self._asking = Asking(self, theme, keymap)
        self._choosing = Choosing(self, theme, keymap)
        self._tree_keys = TreeKeys(self, theme)
        self.panes = Panes(self, theme, keymap, tree_shows)
        self.chrome = Chrome(self, theme, keymap)
        self.telling = Telling(self, keymap)
        self.completing = Completing(self)
        self.stepping = Stepping(self)

    def compose(self) -> ComposeResult:
        """What the first frame shows."""
        yield Static(id="blank")
        yield TabStrip(self._theme, id="tabs")
        yield Rule(self._theme, id="rule")
        yield QueueList(self._theme, self._keymap, self._with_queued, self.to_stream, id="queue")
        hints = Hints(self._theme)
        yield hints
        with Horizontal(id="entry"):
            yield Static("› ", id="mark", markup=False)
            yield Prompt(self._keymap, hints, self.find_hints, self._history, id="prompt")
        yield Rule(self._theme, id="foot")
        yield StatusLine(self._theme, id="status")

    def on_mount(self) -> None:
        """Ready for keys before there is a runtime."""
        self.chrome.start()

    # ---------------------------------------------------------------- for the work

    @property
    def live(self) -> LiveSession | None:
        """The session that is shown."""
        return self.work.live

    @property
    def prompt(self) -> Prompt:
        """See `View`."""
        return self.query_one(Prompt)

    async def show(self, store: SessionStore) -> None:
        """See `View`."""
        await self.panes.show(store)
        if self.live is not None:
            self._asking.sync(self.live)

    def announce(self, live: LiveSession) -> None:
        """See `View`."""
        self.post_message(self.Changed(live))

    def sync(self) -> None:
        """See `View`."""
        self.panes.sync()
        self.refresh_chrome()

    def refresh_chrome(self) -> None:
        """Bring the lines around the panes up to date."""
        self.chrome.refresh()

    def tell(self, message: str) -> None:
        """See `View`."""
        self.telling.tell(message)

    def say(self, text: str, live: LiveSession | None = None) -> None:
        """Say something that stays: in the stream of a session, and for a moment where that is not seen."""
        live = live or self.live
        if live is not None:
            live.store.say(text)
        if live is not self.live or self.panes.body is None or not self.panes.body.transcript.display:
            self.tell(text)
        self.sync()

    def restyle(self) -> None:
        """The theme has become another."""
        self.refresh_chrome()
        self.refresh()

    def to_stream(self) -> None:
        """See `View`."""
        self.panes.turn_to("stream")

    def to_end(self) -> None:
        """See `View`."""
        if self.panes.body is not None:
            self.panes.body.transcript.to_end()

    def give_way(self, event: events.Key | events.Paste) -> None:
        """A key comes: drawing waits for it, and a question that it does not answer is taken back."""
        self.telling.key_comes(event.key if isinstance(event, events.Key) else "")
        if self.panes.body is not None:
            self.panes.body.transcript.give_way()

    async def open_view(self, view: OwnView, argument: str) -> None:
        """See `View`."""
        match view:
            case "sessions":
                self.action_sessions()
            case "login":
                if self.live is not None:
                    self.do(self._asking.login(self.live, argument))
            case _:
                await self._choosing.open_view(view, argument)

    def leave(self) -> None:
        """See `View`."""
        self.app.exit()

    def find_hints(self) -> None:
        """See `View`."""
        self.completing.find()

    def do(self, task: Coroutine[Any, Any, None]) -> None:
        """Run something beside the keys. What the runtime refuses is said in the stream."""
        live = self.live

        async def guarded() -> None:
            try:
                await task
            except PiError as error:
                self.say(f"✗ {error}", live)

        self.run_worker(guarded())

    def may_stop(self, what: str) -> bool:
        """Whether a turn that runs may be stopped for this: it is asked about once."""
        return not self.stepping.situation.running or self.telling.confirmed(what, "this stops the turn")

    async def to_clipboard(self, text: str) -> str:
        """Copy a text, and give words about how."""
        from pi_tui.clipboard import Clipboard

        return await Clipboard(self._write).copy(text)

    def _write(self, sequence: str) -> None:
        driver = self.app._driver  # Textual's own way to a clipboard cannot speak through tmux
        if driver is not None:
            driver.write(sequence)

    # ---------------------------------------------------------------- what happens

    def on_main_screen_changed(self, event: Changed) -> None:
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
        if store.heads:
            self.prompt.suggestions = ()
        self.panes.sync()
        self.panes.look_through_news(event.live)
        self._asking.sync(event.live)
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
            self.do(self._asking.login(self.live, event.provider, event.key))
        else:
            self.say("not sent: there is an API key in it. /login stores keys.")

    def _with_queued(self, wish: Wish, row: QueueRow, place: int) -> None:
        """A key of the messages that wait."""
        if self.live is None:
            return
        match wish:
            case "edit":
                self.work.queueing.begin(self.live, row)
            case "drop":
                self.do(self.work.queueing.drop(self.live, row))
            case "move":
                self.do(self.work.queueing.move(self.live, row, place))

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
        self.do(self.copy(event.text))

    async def copy(self, text: str) -> None:
        """Copy a text, and say so."""
        lines = text.count("\n") + 1
        self.tell(f"{plural(lines, 'line')} {await self.to_clipboard(text)}")

    async def copy_selected(self) -> None:
        """Copy what is selected in the stream, and select nothing any more."""
        if self.panes.body is not None:
            await self.copy(self.panes.body.transcript.selected_text())
            self.panes.select_nothing()

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
            self.do(self._asking.model(self.live))

    def action_palette(self) -> None:
        if self.live is not None:
            self.do(self._choosing.palette())

    def action_settings(self) -> None:
        if self.live is not None:
            self.do(self._choosing.settings())

    def action_thinking(self) -> None:
        if self.live is not None:
            self.do(self.work.next_thinking_level())

    def action_help(self) -> None:
        self.app.push_screen(HelpScreen(self._theme, self._keymap))

    def action_new_session(self) -> None:
        if self.live is not None:
            self.do(self.work.new_session())

    def action_next_session(self) -> None:
        if self.live is not None:
            self.do(self.work.next_session())

    def action_sessions(self) -> None:
        if self.live is not None:
            self.do(self._asking.sessions())

    def action_queue(self) -> None:
        queue = self.query_one(QueueList)
        if queue.rows:
            queue.to_last()
            self.set_focus(queue)
            self.refresh_chrome()

    def action_search_history(self) -> None:
        self.do(self._asking.earlier_prompt())

    def action_edit_outside(self) -> None:
        self.do(edit_outside(cast("PiApp", self.app), self.prompt, self._editor))

    def action_paste_image(self) -> None:
        self.do(self._paste_image())

    async def _paste_image(self) -> None:
        """An image of the clipboard; if there is none, what was copied here."""
        image = await asyncio.to_thread(clipboard_image) if self.prompt.takes_images else None
        if image is not None:
            self.prompt.attach(image)
        elif self.app.clipboard:
            self.prompt.paste(self.app.clipboard)
        else:
            self.tell(
                "there is no image in the clipboard"
                if self.prompt.takes_images
                else "this model takes no images"
            )
