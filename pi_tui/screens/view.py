"""The main screen as the work behind it knows it: what it is made of, and what it can be asked to show.

It is composed without a session, so that the first frame needs nothing but Textual; the
panes are mounted when the runtime has one to show.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Static

from pi_trio.errors import PiError
from pi_tui.history import PromptHistory
from pi_tui.screens.asking import Asking
from pi_tui.screens.choosing import Choosing
from pi_tui.screens.chrome import Chrome
from pi_tui.screens.clipping import Clipping
from pi_tui.screens.completing import Completing
from pi_tui.screens.panes import Panes
from pi_tui.screens.stepping import Stepping
from pi_tui.screens.telling import Telling
from pi_tui.theme import Theme
from pi_tui.widgets.chrome import Rule, StatusLine, TabStrip
from pi_tui.widgets.hints import Hints
from pi_tui.widgets.prompt import Prompt
from pi_tui.widgets.queue import QueueList, QueueRow, Wish
from pi_tui.work import Work

if TYPE_CHECKING:
    from pi_trio.commands import View as OwnView
    from pi_tui.live import LiveSession
    from pi_tui.store import SessionStore
    from pi_tui.tree_shown import Show

__all__ = ["SessionView"]


class SessionView(Screen[None]):
    """One session at a time; what is done with it is in `work`. It is the `View` of that.

    `panes` has the panes, `chrome` the lines around them, and `telling` what is said for a moment;
    `completing` finds completions, `clipping` copies and pastes, and `stepping` does what Esc, ctrl+c
    and ctrl+d mean now. `asking` and `choosing` open dialogs.
    """

    DEFAULT_CSS = """
    SessionView { background: ansi_default; color: ansi_default; layout: vertical; overflow: hidden; }
    SessionView #blank { height: 1fr; }
    SessionView #entry { height: auto; }
    SessionView #mark { width: 2; height: 1; color: $pi-accent; text-style: bold; }
    SessionView TreeView.-beside { border-right: solid $pi-borderMuted; }
    SessionView ToolPane.-beside { border-left: solid $pi-borderMuted; }
    """
    AUTO_FOCUS: ClassVar[str] = "#prompt"  # the list of what waits comes first, and would be chosen

    class Changed(Message):
        """The store of a session has changed."""

        def __init__(self, live: LiveSession) -> None:
            super().__init__()
            self.live = live

    def __init__(
        self, theme: Theme, keymap: Mapping[str, str], history: PromptHistory, tree_shows: Show = "turns"
    ) -> None:
        super().__init__()
        self._history = history
        self._theme = theme
        self._keymap = keymap
        self.work = Work(self)
        self.panes = Panes(self, theme, keymap, tree_shows)
        self.chrome = Chrome(self, theme, keymap)
        self.telling = Telling(self, keymap)
        self.completing = Completing(self)
        self.clipping = Clipping(self)
        self.stepping = Stepping(self)
        self.asking = Asking(self, theme, keymap)
        self.choosing = Choosing(self, theme, keymap)

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
            self.asking.sync(self.live)

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
                self.do(self.asking.sessions())
            case "login":
                if self.live is not None:
                    self.do(self.asking.login(self.live, argument))
            case _:
                await self.choosing.open_view(view, argument)

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

    def _with_queued(self, wish: Wish, row: QueueRow, place: int) -> None:
        """A key of the messages that wait."""
        if self.live is not None:
            self.work.queueing.carry_out(wish, self.live, row, place)
