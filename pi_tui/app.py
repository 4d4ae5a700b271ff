"""The program: theme, keys, the main screen, and a runtime behind it that starts after the first frame."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from textual import events
from textual.app import App
from textual.binding import BindingType

from pi_trio.errors import PiError
from pi_tui.attention import Attention
from pi_tui.bridge import Bridge, OpenRuntime
from pi_tui.history import PromptHistory
from pi_tui.screens.dialog import Composed
from pi_tui.screens.main import MainScreen
from pi_tui.theme import Theme, bundled_folder
from pi_tui.theme_choice import Themes
from pi_tui.theming import Theming

if TYPE_CHECKING:
    from rich.console import RenderableType
    from textual.filter import LineFilter

    from pi_trio.remote.interface import Runtime, Snapshot
    from pi_tui.terminal import GroundTold
    from pi_tui.tree_shown import Show

__all__ = ["Ask", "PiApp"]

Ask: TypeAlias = Callable[[str, str, Sequence[str]], Awaitable[int | None]]
"""Asks the user: a title, a text, and the choices; gives the index of one, or None."""


class PiApp(App[None]):
    """`open_runtime` and `choose` are called in the runtime's thread; `choose` opens the first session.

    `settle` comes before both, in the screen's thread, and may ask the user something.
    `themes` are those that can be chosen instead of `theme`, which `choice` means now;
    `save_theme` keeps another choice, and is called in a thread. `notices` are told first.
    `history` has the prompts of earlier runs; `editor` is the command of the user's own editor, if
    one was chosen. `tree_shows` is what the session tree shows at first.

    After the app has ended, `failure` is what the runtime raised or what kept it from
    starting, and `resume` the id of a session that has a file.
    """

    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = []

    def __init__(
        self,
        open_runtime: OpenRuntime,
        choose: Callable[[Runtime], Awaitable[Snapshot]],
        theme: Theme,
        *,
        themes: Themes | None = None,
        choice: str = "",
        save_theme: Callable[[str], None] | None = None,
        notices: Sequence[str] = (),
        keymap: Mapping[str, str] | None = None,
        messages: Sequence[str] = (),
        settle: Callable[[Ask], Awaitable[None]] | None = None,
        history: PromptHistory | None = None,
        editor: str | None = None,
        tree_shows: Show = "turns",
    ) -> None:
        super().__init__(ansi_color=True)  # known before the theme is, since NO_COLOR is decided here
        self.failure: BaseException | None = None
        self._open_runtime = open_runtime
        self._choose = choose
        self._messages = messages
        self._settle = settle
        self._bridge: Bridge | None = None
        self._lent = False
        self._started = False
        self._typed_early: list[events.Event] = []
        self.attention = Attention(self._write_to_terminal, self._is_away, time.monotonic)
        self._keymap_chosen = dict(keymap or {})
        self._theme = theme
        self._notices = notices
        self._history = history or PromptHistory()
        self._main = MainScreen(theme, self._keymap_chosen, self._history, editor, tree_shows)
        self.theming = Theming(
            self, theme, themes or Themes([bundled_folder()]), choice or theme.name, self._main.say
        )
        self.save_theme = save_theme

    @property
    def resume(self) -> str | None:
        """The id of the current session, if it can be opened again."""
        live = self._main.live
        return live.id if live is not None and live.store.has_file else None

    def get_default_screen(self) -> MainScreen:
        """The only screen that is always there."""
        return self._main

    def on_mount(self) -> None:
        """The runtime is imported and started behind the first frame."""
        self.set_keymap(self._keymap_chosen)
        self.call_after_refresh(self._start)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """See `App`: the theme's own ground comes first, so that without colours it goes as well."""
        ground = self.theming.ground
        return [*([ground] if ground.enabled else ()), *super().get_line_filters()]

    def use_mouse(self, on: bool) -> None:
        """Take the mouse from the terminal, or give it back; keys scroll either way."""
        from pi_tui.terminal import set_mouse

        if self._driver is not None:
            set_mouse(self._driver, on=on)

    def on_ground_told(self, event: GroundTold) -> None:
        """The terminal has answered."""
        self.theming.ground_told(event.dark)

    async def on_event(self, event: events.Event) -> None:
        """Everything from the terminal comes through here; before the first frame it waits for the prompt."""
        if isinstance(event, events.Key | events.Paste):
            self._main.give_way(event)
            if not self._started and not event.is_forwarded:
                self._typed_early.append(event)
                return
            if isinstance(event, events.Key) and not event.is_forwarded and await self._dialog_takes(event):
                return
        await super().on_event(event)

    async def _dialog_takes(self, event: events.Key) -> bool:
        return isinstance(self.screen, Composed) and await self.screen.take_key(event)

    async def _start(self) -> None:
        self._started = True
        for event in self._typed_early:
            await super().on_event(event)
        if self._driver is not None:
            self.theming.start(self._driver.write)
        self._main.do(asyncio.to_thread(self._history.load))
        self.run_worker(self._settle_and_start())

    async def _settle_and_start(self) -> None:
        if self._settle is not None:
            try:
                await self._settle(self._ask)
            except PiError as error:
                self.failure = error
                self.exit(return_code=1)
                return
        self._bridge = Bridge(self._open_runtime)
        self._bridge.start()
        self.run_worker(self._begin(self._bridge))
        self.run_worker(self._watch(self._bridge))

    async def _begin(self, bridge: Bridge) -> None:
        try:
            await self._main.work.begin(bridge, self._choose, self._messages)
            for notice in self._notices:
                self._main.say(notice)
        except PiError as error:
            self.failure = self.failure or error
            self.exit(return_code=1)

    async def _ask(self, title: str, text: str, choices: Sequence[str]) -> int | None:
        from pi_tui.screens.pick import PickScreen

        return await self.push_screen_wait(
            PickScreen(
                title, choices, self._theme, time.monotonic, text=text, chosen=len(choices) - 1, letters=False
            )
        )

    async def _watch(self, bridge: Bridge) -> None:
        """A runtime that ends by itself takes the screen with it."""
        self.failure = await bridge.ended() or self.failure
        self.exit(return_code=1)

    @property
    def last_answer(self) -> str:
        """What the model said last in the current session, as far as it is loaded."""
        live = self._main.live
        return live.store.items.last_answer if live is not None else ""

    def on_app_focus(self) -> None:
        """The user is here again."""
        self.attention.back()

    def on_unmount(self) -> None:
        """The program ends."""
        self.attention.back()

    def _is_away(self) -> bool:
        return not self.app_focus

    def _write_to_terminal(self, data: str) -> None:
        """Textual has no way to send a title."""
        if self._driver is not None and not self.is_headless and not self._lent:
            self._driver.write(data)

    def end_by(self, number: int) -> None:
        """End because of a signal: the first one, closing a terminal sends several.

        ctrl+c in a program that has the terminal now is that program's.
        """
        if self.return_code is None and not (number == signal.SIGINT and self._lent):
            self.exit(return_code=128 + number)

    @contextmanager
    def lending_terminal(self) -> Iterator[None]:
        """Leave the terminal to another program for a block, which must not raise."""
        self._lent = True
        try:
            with self.suspend():
                yield
        finally:
            self._lent = False

    def panic(self, *renderables: RenderableType) -> None:
        """End because something broke, which the exit status must tell. Textual leaves that to `exit`."""
        self._return_code = 1
        super().panic(*renderables)

    @property
    def left_behind(self) -> tuple[str, ...]:
        """The tools that did not stop when the runtime ended."""
        return self._bridge.left_behind if self._bridge is not None else ()

    async def stop_runtime(self) -> None:
        """End the runtime and all its children, and wait for it. Called when the screen is gone."""
        if self._bridge is not None:
            self._bridge.stop()
            self.failure = await self._bridge.ended() or self.failure
