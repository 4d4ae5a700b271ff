"""The program: theme, keys, the main screen, and a runtime behind it that starts after the first frame."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from textual.app import App
from textual.binding import BindingType

from pi_trio.errors import PiError
from pi_tui.bridge import Bridge, OpenRuntime
from pi_tui.screens.main import MainScreen
from pi_tui.theme import Theme

if TYPE_CHECKING:
    from rich.console import RenderableType

    from pi_trio.remote.interface import Runtime, Snapshot

__all__ = ["Ask", "PiApp"]

Ask: TypeAlias = Callable[[str, str, Sequence[str]], Awaitable[int | None]]
"""Asks the user: a title, a text, and the choices; gives the index of one, or None."""


class PiApp(App[None]):
    """`open_runtime` and `choose` are called in the runtime's thread; `choose` opens the first session.

    `settle` comes before both, in the screen's thread, and may ask the user something.

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
        keymap: Mapping[str, str] | None = None,
        messages: Sequence[str] = (),
        settle: Callable[[Ask], Awaitable[None]] | None = None,
    ) -> None:
        super().__init__(ansi_color=True)  # known before the theme is, since NO_COLOR is decided here
        self.failure: BaseException | None = None
        self._open_runtime = open_runtime
        self._choose = choose
        self._messages = messages
        self._settle = settle
        self._bridge: Bridge | None = None
        self._keymap_chosen = dict(keymap or {})
        self._theme = theme
        self._main = MainScreen(theme, self._keymap_chosen)
        self.register_theme(theme.textual())
        self.theme = f"pi-{theme.name}"

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

    def _start(self) -> None:
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
        except PiError as error:
            self.failure = self.failure or error
            self.exit(return_code=1)

    async def _ask(self, title: str, text: str, choices: Sequence[str]) -> int | None:
        from pi_tui.screens.pick import PickScreen

        return await self.push_screen_wait(
            PickScreen(title, choices, self._theme, time.monotonic, text=text, chosen=len(choices) - 1)
        )

    async def _watch(self, bridge: Bridge) -> None:
        """A runtime that ends by itself takes the screen with it."""
        self.failure = await bridge.ended() or self.failure
        self.exit(return_code=1)

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
