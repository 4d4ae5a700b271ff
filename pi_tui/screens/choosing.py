"""What the user opens to choose from: everything by name, the theme, the settings."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pi_trio.errors import PiError, UsageError
from pi_tui.keymap import key_label, keys_now, keys_of
from pi_tui.theme import Theme
from pi_tui.widgets.prompt import Prompt

if TYPE_CHECKING:
    from pi_trio.commands import View
    from pi_tui.app import PiApp
    from pi_tui.screens.view import SessionView

__all__ = ["Choosing"]

_NOT_IN_PALETTE = frozenset({"app.palette", "app.interrupt", "app.clear"})
_LAST_IN_PALETTE = frozenset({"app.suspend", "app.exit"})
"""Too much for an Enter too many."""


class Choosing:
    """Opens dialogs over the main screen, and does what is chosen."""

    def __init__(self, screen: SessionView, theme: Theme, keymap: Mapping[str, str]) -> None:
        self._screen = screen
        self._theme = theme
        self._keymap = keymap

    @property
    def _app(self) -> PiApp:
        from pi_tui.app import PiApp

        app = self._screen.app
        assert isinstance(app, PiApp)  # noqa: S101  # there is no other
        return app

    async def open_view(self, view: View, argument: str) -> None:
        """Do what a slash command asks of the screen."""
        match view:
            case "theme":
                await (self._use_theme(argument) if argument else self.theme())
            case "settings":
                await self.settings()
            case "mouse":
                self._app.use_mouse(argument != "off")
                self._screen.tell(
                    "the mouse is the terminal's: /mouse on takes it back"
                    if argument == "off"
                    else "the mouse scrolls and clicks here"
                )

    # ---------------------------------------------------------------- everything

    async def palette(self) -> None:
        """Every action and every command by name, with its key."""
        from pi_tui.screens.pick import PickScreen

        shown = [key for key in keys_of("everywhere") if key.id not in _NOT_IN_PALETTE]
        actions = sorted(shown, key=lambda key: key.id in _LAST_IN_PALETTE)
        commands = self._screen.work.commands
        names = [key.help for key in actions] + [f"/{each.name}  {each.description}" for each in commands]
        notes = [key_label(keys_now(key.id, self._keymap)) for key in actions]
        notes += [each.argument_hint for each in commands]
        picked = PickScreen("everything", names, self._theme, time.monotonic, notes=notes, deaf=0.0)
        index = await self._app.push_screen_wait(picked)
        if index is None:
            return
        if index < len(actions):
            await self._screen.run_action(actions[index].action)
            return
        command = commands[index - len(actions)]
        if command.argument_hint:
            self._screen.prompt.begin(f"/{command.name} ")
        else:
            await self._screen.work.submit(Prompt.Submitted(f"/{command.name}", "send"))

    # ---------------------------------------------------------------- theme

    async def theme(self) -> None:
        """Choose a theme, which shows while the cursor is on it."""
        from pi_tui.screens.pick import PickScreen

        theming = self._app.theming
        choices = theming.themes.choices()
        names = [choice.name for choice in choices]
        picked = PickScreen(
            "theme",
            names,
            self._theme,
            time.monotonic,
            notes=[choice.note for choice in choices],
            chosen=names.index(theming.choice) if theming.choice in names else 0,
            looked_at=lambda index: theming.preview(names[index]),
            deaf=0.0,
        )
        picked.most = 0.35  # the screen is what one looks at
        index = await self._app.push_screen_wait(picked)
        if index is None:
            theming.restore()
        else:
            await self._use_theme(names[index])

    async def _use_theme(self, choice: str) -> None:
        """Use a theme from now on, also next time."""
        app = self._app
        try:
            app.theming.choose(choice)
        except PiError:
            app.theming.restore()
            raise
        if app.save_theme is not None:
            await asyncio.to_thread(app.save_theme, choice)
        self._screen.tell(f"the theme is {choice}")

    # ---------------------------------------------------------------- settings

    async def settings(self) -> None:
        """See and change the settings; what was changed is taken up when the form is left."""
        from pi_tui.screens.settings import SettingsScreen

        live = self._screen.live
        if live is None:
            raise UsageError("there is no session yet")
        form = SettingsScreen(await live.settings(), live.change_setting, self._theme)
        changed = await self._app.push_screen_wait(form)
        if "theme" in changed:
            info = next(info for info in await live.settings() if info.key == "theme")
            self._app.theming.choose(info.value)
        if changed:
            self._screen.say(await live.take_up_settings())
