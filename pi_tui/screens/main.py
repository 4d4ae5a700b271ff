"""The main screen: panes above, prompt and status below, and what the keys do.

It is composed without a session, so that the first frame needs nothing but Textual; the
panes are mounted when the runtime has one to show.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.screen import Screen
from textual.timer import Timer
from textual.widgets import Static

from pi_trio.errors import PiError
from pi_tui.ladder import Situation, Step, clear_step, escape_step, exit_step
from pi_tui.layout import Pane, arrange
from pi_tui.screens.help import HelpScreen
from pi_tui.status import rule_label, status_parts
from pi_tui.theme import Theme
from pi_tui.widgets.chrome import QueueLines, Rule, StatusLine, TabStrip
from pi_tui.widgets.lines import Missing, bindings_for
from pi_tui.widgets.prompt import Prompt

if TYPE_CHECKING:
    from pi_trio.remote.interface import Runtime, Snapshot
    from pi_tui.bridge import Bridge
    from pi_tui.live import LiveSession
    from pi_tui.outline import Row
    from pi_tui.store import SessionStore
    from pi_tui.widgets.body import Body
    from pi_tui.widgets.session_tree import SessionTree

__all__ = ["MainScreen"]

ARMED_FOR = 4.0
"""Seconds that a question in the status line waits for its second press."""

SPINNER_INTERVAL = 1 / 8


class MainScreen(Screen[None]):
    """One session at a time. `begin` opens the first one."""

    DEFAULT_CSS = """
    MainScreen { background: ansi_default; color: ansi_default; layout: vertical; }
    MainScreen #blank { height: 1fr; }
    MainScreen #entry { height: auto; }
    MainScreen #mark { width: 2; height: 1; color: $pi-accent; text-style: bold; }
    MainScreen SessionTree.-beside { border-right: solid $pi-borderMuted; }
    MainScreen ToolPane.-beside { border-left: solid $pi-borderMuted; }
    MainScreen ScrollView {
        scrollbar-background: ansi_default; scrollbar-background-hover: ansi_default;
        scrollbar-background-active: ansi_default;
        scrollbar-color: $pi-borderMuted; scrollbar-color-hover: $pi-border;
        scrollbar-color-active: $pi-accent;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("everywhere")

    class Changed(Message):
        """The store of a session has changed."""

        def __init__(self, live: LiveSession) -> None:
            super().__init__()
            self.live = live

    def __init__(self, theme: Theme, keymap: Mapping[str, str]) -> None:
        super().__init__()
        self._theme = theme
        self._keymap = keymap
        self.live: LiveSession | None = None
        self._bridge: Bridge | None = None
        self._body: Body | None = None
        self._pane: Pane = "stream"
        self._whole = False
        self._tools = False
        self._stopping = False
        self._armed = ""
        self._armed_timer: Timer | None = None
        self._message = ""
        self._tick = 0
        self._sending = asyncio.Lock()
        self._unsent: list[str] = []
        self._places: list[tuple[str, str | None]] = []

    def compose(self) -> ComposeResult:
        """What the first frame shows."""
        yield Static(id="blank")
        yield TabStrip(self._theme, id="tabs")
        yield Rule(self._theme, id="rule")
        yield QueueLines(self._theme, id="queue")
        with Horizontal(id="entry"):
            yield Static("› ", id="mark", markup=False)
            yield Prompt(self._keymap, id="prompt")
        yield Rule(self._theme, id="foot")
        yield StatusLine(self._theme, id="status")

    def on_mount(self) -> None:
        """Ready for keys before there is a runtime."""
        self._prompt.focus()
        self._spinner = self.set_interval(SPINNER_INTERVAL, self._turn_spinner, pause=True)
        self._refresh_chrome()

    # ---------------------------------------------------------------- sessions

    async def begin(
        self,
        bridge: Bridge,
        choose: Callable[[Runtime], Awaitable[Snapshot]],
        messages: Sequence[str],
    ) -> None:
        """Open the first session, and send what was already written. Raises `PiError`."""
        self._bridge = bridge
        await self._switch(choose)
        for text in [*messages, *self._unsent]:
            await self._deliver(text, "send" if not self._store_now.running else "follow_up")

    async def _switch(self, choose: Callable[[Runtime], Awaitable[Snapshot]]) -> None:
        """Show another session. The one before stays open in the runtime, and a run in it goes on."""
        from pi_tui.items.welcome import SUGGESTIONS
        from pi_tui.live import LiveSession
        from pi_tui.widgets.body import Body

        assert self._bridge is not None  # noqa: S101  # `begin` came before
        live = await LiveSession.open(self._bridge, choose, self._announce)
        if self.live is not None:
            await self.live.close()
        self.live = live
        if self._body is None:
            self._body = Body(live.store, self._theme)
            await self.mount(self._body, before="#blank")
            await self.query_one("#blank").remove()
        else:
            self._body.show(live.store)
        self._prompt.remember(live.store.prompts())
        self._prompt.suggestions = () if live.store.heads else SUGGESTIONS
        self._prompt.put_back(await live.take_returned())
        self._arrange()

    def _announce(self, live: LiveSession) -> None:
        self.post_message(self.Changed(live))

    def on_main_screen_changed(self, event: Changed) -> None:
        """Events have arrived."""
        if event.live is not self.live or self._body is None:
            return
        store = event.live.store
        if store.stale:
            self._do(event.live.recover())
            return
        if store.returned and not self._stopping:
            self._do(self._put_back_returned(event.live))
        if store.heads:
            self._prompt.suggestions = ()
        self._body.sync()
        self._refresh_chrome()

    async def _put_back_returned(self, live: LiveSession) -> None:
        self._prompt.put_back(await live.take_returned())

    def on_missing(self, event: Missing) -> None:
        """A pane shows entries whose bodies are not loaded."""
        self._do(self._load(event.ids))

    async def _load(self, ids: list[str]) -> None:
        if self.live is not None and self._body is not None:
            await self.live.load(ids)
            self._body.sync()

    # ---------------------------------------------------------------- sending and stopping

    def on_prompt_submitted(self, event: Prompt.Submitted) -> None:
        """The user sends something; before there is a session it waits for it."""
        if self.live is None:
            self._unsent.append(event.text)
        else:
            self._do(self._deliver(event.text, event.delivery))

    async def _deliver(self, text: str, delivery: str) -> None:
        """Send one text after the other: side by side, the runtime may take them in any order."""
        assert self.live is not None  # noqa: S101  # callers have a session
        async with self._sending:
            try:
                await (self.live.queue(text) if delivery == "follow_up" else self.live.say(text))
            except PiError:
                self._prompt.put_back([text])
                raise
        if self._body is not None:
            self._body.transcript.to_end()

    async def _stop(self) -> None:
        """Stop the run; what waited comes back into the prompt."""
        if self.live is None or self._stopping:
            return
        self._stopping = True
        self._refresh_chrome()
        started, turn = time.monotonic(), self._store_now.turn_number
        try:
            texts = await self.live.abort()
        finally:
            self._stopping = False
        took = (time.monotonic() - started) * 1000
        self._prompt.put_back(texts)
        self._store_now.say(f"■ You stopped turn {turn}. {took:.0f} ms.")
        self._after_command()

    # ---------------------------------------------------------------- the tree

    def on_session_tree_chosen(self, event: SessionTree.Chosen) -> None:
        """A key of the tree."""
        if event.what == "back":
            self._do(self._back())
        elif event.row is not None:
            row, what = event.row, event.what
            if what == "fork":
                self._do(self._fork(row))
            elif not self._store_now.running or self._confirmed(f"{what} {row.id}", "this stops the turn"):
                self._do(self._go(row.id if what == "branch" or row.kind == "entry" else row.end))

    async def _go(self, target_id: str) -> None:
        """Move to an entry; before a prompt its text comes into the prompt."""
        assert self.live is not None  # noqa: S101  # there is a tree to choose from
        if self._store_now.running:
            await self._stop()
        place = (self.live.id, self._store_now.leaf_id)
        moved = await self.live.navigate(target_id)
        self._places.append(place)
        self._arrive(moved.text)

    async def _fork(self, row: Row) -> None:
        """Go on from a row in a new session. The one before is left as it is, running or not."""
        assert self.live is not None  # noqa: S101  # there is a tree to choose from
        place = (self.live.id, self._store_now.leaf_id)
        moved = await self.live.fork(row.id, before=row.kind == "prompt")
        await self._switch(lambda runtime: runtime.snapshot(moved.session_id))
        self._places.append(place)
        self._arrive(moved.text)
        self._store_now.say("Forked into a new session; `-` in the tree goes back.")
        self._after_command()

    async def _back(self) -> None:
        """Return to where the last move came from."""
        if self.live is None or not self._places:
            self._tell("there is no earlier place")
            return
        session_id, leaf_id = self._places[-1]
        if session_id != self.live.id:
            await self._switch(lambda runtime: runtime.snapshot(session_id))
        elif leaf_id is None:
            self._tell("the earlier place was before the first prompt")
            return
        else:
            if self._store_now.running:
                await self._stop()
            await self.live.navigate(leaf_id)
        self._places.pop()
        self._arrive("")

    def _arrive(self, text: str) -> None:
        """After a move: to the stream, with the text of the prompt that was there."""
        self._prompt.put_back([text])
        self._prompt.remember(self._store_now.prompts())
        self._focus_pane("stream")
        self._after_command()

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
            case Step.LEAVE_PANE:
                self._focus_pane("stream")
            case Step.ABORT:
                self._do(self._stop())
            case Step.CLEAR:
                self._prompt.take()
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

    def action_next_pane(self) -> None:
        order: list[Pane] = ["stream", "tree", "tools"]
        self._focus_pane(order[(order.index(self._pane) + 1) % len(order)])

    def action_expand(self) -> None:
        if self._body is not None:
            self._body.transcript.set_expanded(not self._body.transcript.expanded)

    def action_page(self, pages: int) -> None:
        if self._body is not None:
            self._body.transcript.scroll_pages(pages)

    def action_top(self) -> None:
        if self._body is not None:
            self._body.transcript.scroll_home(animate=False)

    def action_bottom(self) -> None:
        if self._body is not None:
            self._body.transcript.to_end()

    def action_help(self) -> None:
        self.app.push_screen(HelpScreen(self._theme, self._keymap))

    def action_new_session(self) -> None:
        if self.live is not None:
            self._do(self._new_session())

    async def _new_session(self) -> None:
        await self._switch(lambda runtime: runtime.new_session())
        self._after_command()

    # ---------------------------------------------------------------- inside

    @property
    def _prompt(self) -> Prompt:
        return self.query_one(Prompt)

    @property
    def _store_now(self) -> SessionStore:
        assert self.live is not None  # noqa: S101  # callers have a session
        return self.live.store

    @property
    def _situation(self) -> Situation:
        return Situation(
            pane=self._pane,
            running=self.live is not None and self.live.store.running,
            stopping=self._stopping,
            draft=bool(self._prompt.text),
            armed=self._armed,
        )

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a command beside the keys. What the runtime refuses is said in the stream."""

        async def guarded() -> None:
            try:
                await work
            except PiError as error:
                self._complain(str(error))

        self.run_worker(guarded())

    def _complain(self, text: str) -> None:
        if self.live is None:
            self._tell(text)
            return
        self._store_now.say(f"✗ {text}")
        self._after_command()

    def _confirmed(self, question: str, what: str) -> bool:
        """Whether this press answers the question that an earlier one asked; if not, ask it."""
        if self._armed == question:
            self._disarm()
            return True
        self._armed = question
        self._tell(f"{what}: press again, esc keeps on")
        return False

    def _disarm(self) -> None:
        self._armed = ""
        self._tell("")

    def _tell(self, message: str) -> None:
        """Say something in the status line for a moment."""
        if self._armed_timer is not None:
            self._armed_timer.stop()
        self._message = message
        self._armed_timer = self.set_timer(ARMED_FOR, self._disarm) if message else None
        self._refresh_chrome()

    def _after_command(self) -> None:
        if self._body is not None:
            self._body.sync()
        self._refresh_chrome()

    def _focus_pane(self, pane: Pane, *, whole: bool = False) -> None:
        self._pane, self._whole = pane, whole
        self._arrange()

    def _arrange(self) -> None:
        if self._body is not None:
            seen = arrange(self.size.width, self._pane, tools=self._tools, whole=self._whole)
            self.query_one(TabStrip).display = seen.strip
            self._body.lay_out(seen)
            focus = {"tree": self._body.tree_pane, "tools": self._body.tool_pane}
            (focus.get(self._pane) or self._prompt).focus()
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

    def on_text_area_changed(self) -> None:
        """Hints depend on whether something is written."""
        self._refresh_chrome()

    def _turn_spinner(self) -> None:
        self._tick += 1
        if self.live is not None and self.live.store.running_calls and self._body is not None:
            self._body.animate_running()
        self._refresh_chrome()

    def _refresh_chrome(self) -> None:
        """Bring the lines around the panes up to date."""
        store = self.live.store if self.live is not None else None
        now = self._situation
        self.query_one(StatusLine).tell(status_parts(store, now, self._message, self._theme))
        if store is None:
            return
        level = f"thinking{store.thinking_level.capitalize()}"
        self.query_one("#rule", Rule).tell(rule_label(store, now, self._tick), level)
        self.query_one(QueueLines).tell(store.queue.steering, store.queue.follow_up)
        self.query_one(TabStrip).tell(*_tabs(store, self._pane))
        self._prompt.running = now.running
        if now.running:
            self._spinner.resume()
        else:
            self._spinner.pause()


def _tabs(store: SessionStore, pane: Pane) -> tuple[list[str], str]:
    running = len(store.running_calls)
    tree = f"Tree {store.tree.branches}" if store.tree.branches > 1 else "Tree"
    return ["Stream", tree, f"Tools {running}" if running else "Tools"], pane.capitalize()
