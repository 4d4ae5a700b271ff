"""The main screen: panes above, prompt and status below, and what the keys do.

It is composed without a session, so that the first frame needs nothing but Textual; the
panes are mounted when the runtime has one to show.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, cast

from textual import events, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Static

from pi_trio.errors import PiError
from pi_tui.hints import Hint, wants_argument
from pi_tui.history import PromptHistory
from pi_tui.ladder import Situation, Step, clear_step, escape_step, exit_step
from pi_tui.layout import Pane, arrange
from pi_tui.outside import edit_outside
from pi_tui.pictures import clipboard_image
from pi_tui.screens.asking import Asking
from pi_tui.screens.choosing import Choosing
from pi_tui.screens.help import HelpScreen
from pi_tui.screens.reading import ReadingScreen
from pi_tui.screens.tree_keys import TreeKeys
from pi_tui.status import rule_label, status_parts
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
    from pi_tui.widgets.session_tree import SessionTree
    from pi_tui.widgets.tool_pane import ToolPane
    from pi_tui.widgets.tree_view import TreeView

__all__ = ["MainScreen"]

ARMED_FOR = 4.0
"""Seconds that a question in the status line waits for its second press."""

SPINNER_INTERVAL = 1 / 8

_PARTS = (TabStrip, Rule, QueueList, Hints, Prompt, StatusLine)


class MainScreen(ReadingScreen):
    """One session at a time; what is done with it is in `work`. It is the `View` of that."""

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
        self._tree_shows = tree_shows
        self._history = history
        self._editor = editor
        self._theme = theme
        self._keymap = keymap
        self.work = Work(self)
        self._asking = Asking(self, theme, keymap)
        self._choosing = Choosing(self, theme, keymap)
        self._tree_keys = TreeKeys(self, theme)
        self._whole = False
        self._tools = False
        self._armed = ""
        self._armed_timer: Timer | None = None
        self._message = ""
        self._tick = 0

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
        self._spinner = self.set_interval(SPINNER_INTERVAL, self._turn_spinner, pause=True)
        self._refresh_chrome()

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
        """See `View`. The panes are made when there is something to show in them."""
        from pi_tui.screens.finding import Finding
        from pi_tui.widgets.body import Body
        from pi_tui.widgets.find_bar import FindBar

        if self._body is None:
            self._body = Body(store, self._theme, self._keymap)
            self._body.tree_pane.begin_with(self._tree_shows)
            bar = FindBar(self._keymap)
            await self.mount(self._body, bar, before="#blank")
            await self.query_one("#blank").remove()
            self._finding = Finding(bar, self._body.transcript)
        else:
            self._end_finding()
            self._body.show(store)
        self._arrange()
        if self.live is not None:
            self._asking.sync(self.live)

    def announce(self, live: LiveSession) -> None:
        """See `View`."""
        self.post_message(self.Changed(live))

    def sync(self) -> None:
        """See `View`."""
        if self._body is not None:
            self._body.sync()
        self._refresh_chrome()

    def tell(self, message: str) -> None:
        """See `View`."""
        if self._armed_timer is not None:
            self._armed_timer.stop()
        self._message = message
        self._armed_timer = self.set_timer(ARMED_FOR, self._disarm) if message else None
        self._refresh_chrome()

    def say(self, text: str) -> None:
        """Say something that stays: in the stream, or before there is one for a moment."""
        if self.live is None:
            self.tell(text)
            return
        self.live.store.say(text)
        self.sync()

    def restyle(self) -> None:
        """The theme has become another."""
        self._refresh_chrome()
        self.refresh()

    def to_stream(self) -> None:
        """See `View`."""
        self._focus_pane("stream")

    def to_end(self) -> None:
        """See `View`."""
        if self._body is not None:
            self._body.transcript.to_end()

    def give_way(self) -> None:
        """A key comes: drawing waits for it."""
        if self._body is not None:
            self._body.transcript.give_way()

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

    # ---------------------------------------------------------------- what happens

    def on_main_screen_changed(self, event: Changed) -> None:
        """Events have arrived."""
        store = event.live.store
        if store.stale:
            self.do(self.work.recover(event.live))
            return
        cast("PiApp", self.app).attention.sync(event.live)
        if event.live is not self.live or self._body is None:
            self._refresh_chrome()
            return
        event.live.unseen = False
        if store.returned and not self.work.stopping:
            self.do(self.work.put_back_returned(event.live))
        if store.heads:
            self.prompt.suggestions = ()
        self._body.sync()
        if self._finding is not None:
            self._finding.sync(event.live)
        self._asking.sync(event.live)
        self._refresh_chrome()

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
        elif self._situation.owed:
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
        """Hints depend on what is written."""
        self.find_hints()

    def find_hints(self) -> None:
        """See `View`. What has to be asked for comes later, and until then there is nothing to choose."""
        if not self.query(Hints):
            return  # the program ends
        text, hints = self.prompt.text, self.query_one(Hints)
        if self.prompt.browsing:  # the arrows go on in the history
            hints.tell((), text)
        elif self.live is not None and (word := self.prompt.file_word) is not None:
            self._find_later(text, lambda: self.work.file_hints(word))
        elif self.live is not None and wants_argument(text):
            self._find_later(text, lambda: self.work.argument_hints(text))
        else:
            hints.tell(self.work.hints(text), text)
        self._refresh_chrome()

    @work(group="hints", exclusive=True)
    async def _find_later(self, text: str, find: Callable[[], Awaitable[list[Hint]]]) -> None:
        try:
            hints = await find()
        except PiError:
            hints = []  # the command itself will say what is wrong
        if self.query(Hints) and text == self.prompt.text:
            self.query_one(Hints).tell(hints, text)
            self._refresh_chrome()

    def on_tool_pane_stopped(self, event: ToolPane.Stopped) -> None:
        """A key of the tool pane."""
        self.do(self.work.stop_call(event.call_id))

    def on_session_tree_chosen(self, event: SessionTree.Chosen) -> None:
        """A key of the tree."""
        if self.live is not None:
            self._tree_keys.run(event.what, event.row)

    def on_session_tree_seen(self, event: SessionTree.Seen) -> None:
        """Rows of the tree show something that is not known yet."""
        if self._body is not None:
            self.do(self.work.tree.learn(self._body.tree_pane, event.unknown))

    def on_session_tree_searched(self, event: SessionTree.Searched) -> None:
        """A search in the tree begins, or has another text."""
        self._refresh_chrome()
        if self._body is not None:
            self.do(self.work.tree.search(self._body.tree_pane))

    def on_tree_view_rested(self, event: TreeView.Rested) -> None:
        """The cursor of the tree stays on a row."""
        if self._body is not None:
            self.do(self._preview(self._body.tree_view, event.row))

    async def _preview(self, view: TreeView, row: Row) -> None:
        view.take(await self.work.tree.preview(row))

    # ---------------------------------------------------------------- keys

    def action_interrupt(self) -> None:
        self._step(escape_step(self._situation))

    def action_clear(self) -> None:
        self._step(clear_step(self._situation))

    def action_exit(self) -> None:
        self._step(exit_step(self._situation))

    def _step(self, step: Step) -> None:
        match step:
            case Step.DISARM:
                self._disarm()
            case Step.CLOSE_LIST:
                self.query_one(Hints).tell((), self.prompt.text)
                self._refresh_chrome()
            case Step.CLOSE_FIND:
                self._end_finding()
            case Step.UNSELECT:
                self._select_nothing()
            case Step.COPY:
                self.do(self._copy_selected())
            case Step.STOP_EDITING:
                self.work.queueing.stop()
                self._refresh_chrome()
            case Step.END_SEARCH:
                self._end_search()
            case Step.LEAVE_PANE:
                self._focus_pane("stream")
            case Step.ABORT:
                self.do(self.work.stop())
            case Step.STOP_SUMMARY:
                self.do(self.work.stop_summary())
            case Step.STOP_SHELL:
                self.do(self.work.stop_shell())
            case Step.CLEAR:
                self.prompt.take()
            case Step.ASK_QUIT:
                self._confirmed("quit", "quit")
            case Step.QUIT:
                self.app.exit()
            case Step.STOPPING | Step.NOTHING:
                pass

    def action_tree(self) -> None:
        self._whole = self._pane == "tree" and not self._whole
        self._focus_pane("tree", whole=self._whole)

    def action_tools(self) -> None:
        self._tools = self._pane != "tools"
        self._focus_pane("tools" if self._tools else "stream")

    def action_whole_tools(self) -> None:
        self._focus_pane("tools", whole=not self._whole)

    def action_next_pane(self) -> None:
        order: list[Pane] = ["stream", "tree", "tools"]
        at = order.index(self._pane) if self._pane in order else 0
        self._focus_pane(order[(at + 1) % len(order)])

    def action_expand(self) -> None:
        if self._body is not None:
            self._body.transcript.set_expanded(not self._body.transcript.drawing.expanded)

    def action_page(self, pages: int) -> None:
        if self._body is not None:
            self._body.transcript.scroll_pages(pages)

    def action_top(self) -> None:
        if self._body is not None:
            self._body.transcript.scroll_home(animate=False)

    def action_bottom(self) -> None:
        self.to_end()

    def action_dequeue(self) -> None:
        if self.live is not None and (queue := self.live.store.queue) and (queue.steering or queue.follow_up):
            self.do(self.work.dequeue())
        elif self._body is not None:
            self._focus_pane("reading")

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
            self._refresh_chrome()

    def action_search_history(self) -> None:
        self.do(self._asking.earlier_prompt())

    def action_edit_outside(self) -> None:
        self.do(edit_outside(cast("PiApp", self.app), self.prompt, self._editor))

    def action_paste_image(self) -> None:
        self.do(self._paste_image())

    # ---------------------------------------------------------------- inside

    @property
    def _situation(self) -> Situation:
        store = self.live.store if self.live is not None else None
        return Situation(
            pane=self._pane,
            running=self.work.sending or (store is not None and store.running),
            summarising=self.work.summarising or (store is not None and store.summarising),
            shell=store is not None and store.shell is not None and store.shell.running,
            stopping=self.work.stopping,
            listing=bool(self.query_one(Hints).chosen),
            finding=self._finding is not None and self._finding.active,
            selected=self._body is not None and self._body.transcript.selection is not None,
            in_queue=self.query_one(QueueList).has_focus,
            editing=self.work.queueing.editing is not None,
            searching=self._pane == "tree" and self._body is not None and self._body.tree_pane.search.on,
            draft=bool(self.prompt.text),
            owed=store is not None and store.owed,
            armed=self._armed,
        )

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

    def do(self, task: Coroutine[Any, Any, None]) -> None:
        """Run something beside the keys. What the runtime refuses is said in the stream."""

        async def guarded() -> None:
            try:
                await task
            except PiError as error:
                self.say(f"✗ {error}")

        self.run_worker(guarded())

    def _confirmed(self, question: str, what: str) -> bool:
        """Whether this press answers the question that an earlier one asked; if not, ask it."""
        if self._armed == question:
            self._disarm()
            return True
        self._armed = question
        self.tell(f"{what}: press again, esc keeps on")
        return False

    def may_stop(self, what: str) -> bool:
        """Whether a turn that runs may be stopped for this: it is asked about once."""
        return not self._situation.running or self._confirmed(what, "this stops the turn")

    def _end_search(self) -> None:
        if self._body is not None:
            self._body.tree_pane.end_search()
            self._refresh_chrome()

    def _disarm(self) -> None:
        self._armed = ""
        self.tell("")

    def _focus_pane(self, pane: Pane, *, whole: bool = False) -> None:
        entered = pane == "tree" != self._pane
        if self._pane == "reading" != pane and self._body is not None:
            self._body.transcript.leave()
        self._pane, self._whole = pane, whole
        self._arrange()
        if entered and self._body is not None:
            self._body.tree_pane.to_leaf()

    def _arrange(self) -> None:
        if self._body is not None:
            seen = arrange(self.size.width, self._pane, tools=self._tools, whole=self._whole)
            self.query_one(TabStrip).display = seen.strip
            self._body.lay_out(seen)
            body = self._body
            focus = {"tree": body.tree_pane, "tools": body.tool_pane, "reading": body.transcript}
            self.set_focus(focus.get(self._pane) or self.prompt)  # at once: the next key is for it
        self._refresh_chrome()

    def on_resize(self, event: events.Resize) -> None:
        """Another width may show other panes."""
        self._arrange()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """A click went into a pane; an event that keys have since overtaken says nothing."""
        panes: dict[str | None, Pane] = {"tree": "tree", "tools": "tools", "prompt": "stream"}
        pane = panes.get(event.widget.id, self._pane)
        if pane != self._pane and event.widget is self.focused:
            self._focus_pane(pane)

    def _turn_spinner(self) -> None:
        self._tick += 1
        store = self.live.store if self.live is not None else None
        if store is not None and (store.running_calls or store.shell) and self._body is not None:
            self._body.animate_running()
        if store is not None and store.running and self._body is not None:
            self._body.tree_pane.animate_running()
        self._refresh_chrome()

    def _refresh_chrome(self) -> None:
        """Bring the lines around the panes up to date."""
        if not all(self.query(part) for part in _PARTS):
            return  # the program ends, and they go one by one while something that was begun comes back
        store = self.live.store if self.live is not None else None
        now = self._situation
        others = self.work.sessions.others()
        parts = status_parts(store, now, self._message, self._theme, self._keymap, others)
        self.query_one(StatusLine).tell(parts)
        if store is None:
            return
        level = f"thinking{store.thinking_level.capitalize()}"
        colour = "bashMode" if self.prompt.text.startswith("!") else level
        self.query_one("#rule", Rule).tell(rule_label(store, now, self._tick), colour)
        self.query_one(QueueList).tell(store.queue, self.work.unsent)
        self.work.queueing.sync()
        self.prompt.waiting = bool(self.query_one(QueueList).rows)
        self.prompt.takes_images = "image" in store.model.input
        self.query_one(TabStrip).tell(*_tabs(store, self._pane))
        self.prompt.running = now.busy
        if now.busy or now.shell:
            self._spinner.resume()
        else:
            self._spinner.pause()


def _tabs(store: SessionStore, pane: Pane) -> tuple[list[str], str]:
    running = len(store.running_calls)
    branches = store.outline.branches
    tree = f"Tree {branches}" if branches > 1 else "Tree"
    current = "Stream" if pane == "reading" else pane.capitalize()
    return ["Stream", tree, f"Tools {running}" if running else "Tools"], current
