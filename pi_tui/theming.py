"""The theme in use: chosen, looked at before it is chosen, and kept up with its file and the terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pi_trio.errors import ConfigError
from pi_tui.ground import Ground
from pi_tui.replies import GROUND_QUESTION
from pi_tui.theme_choice import Themes, follows_ground

if TYPE_CHECKING:
    from textual.app import App

    from pi_tui.theme import Theme

__all__ = ["Theming"]

LOOK_EVERY = 1.0
"""Seconds between two looks at the file of the theme."""


class Theming:
    """Changes `theme`, which all parts of `app` draw with. `choice` is as the settings say it.

    `tell` gets a sentence for the person. `ask` sends something to the terminal.
    """

    def __init__(
        self, app: App[None], theme: Theme, themes: Themes, choice: str, tell: Callable[[str], None]
    ) -> None:
        self.themes = themes
        self.choice = choice
        self.ground = Ground(theme.ground)
        self._app = app
        self._theme = theme
        self._tell = tell
        self._number = 0
        self._told = ""
        self._register()

    def start(self, ask: Callable[[str], None]) -> None:
        """The terminal is there: ask what ground it has, and look at the file from time to time."""
        ask(GROUND_QUESTION)
        self._app.set_interval(LOOK_EVERY, self._look)

    def take_choice(self, choice: str) -> None:
        """The settings say something else now, or there are other folders."""
        self.choice = choice
        self.restore()

    def choose(self, choice: str) -> None:
        """Use another theme from now on. Raises `ConfigError`, and then nothing has changed."""
        theme = self.themes.load(choice)
        self.choice, self._told = choice, ""
        self._show(theme)

    def preview(self, choice: str) -> None:
        """Show a theme; `restore` goes back. What cannot be read is not shown."""
        try:
            self._show(self.themes.load(choice))
        except ConfigError:
            self.restore()  # the list says what is wrong with it

    def restore(self) -> None:
        """Show the theme that is chosen, as far as its file allows."""
        try:
            self._show(self.themes.load(self.choice))
        except ConfigError as error:
            self._complain(str(error))

    def ground_told(self, dark: bool) -> None:
        """The terminal says what its ground is; that counts where the choice goes by it."""
        if dark != self.themes.dark:
            self.themes.dark = dark
            if follows_ground(self.choice):
                self.restore()

    def _look(self) -> None:
        if self.themes.file_changed():
            self.restore()

    def _complain(self, text: str) -> None:
        """Say what is wrong with the file, once, and keep the theme that was."""
        if text != self._told:
            self._told = text
            self._tell(f"✗ the theme stays as it was: {text}")

    def _show(self, theme: Theme) -> None:
        if theme.colors == self._theme.colors and theme.base == self._theme.base:
            return
        self._theme.become(theme)
        self._redraw()

    def _redraw(self) -> None:
        from pi_tui.items.markdown import forget_colours

        forget_colours()
        self.ground = Ground(self._theme.ground)
        self._register()
        for screen in self._app.screen_stack:
            for widget in screen.walk_children(with_self=True):
                getattr(widget, "restyle", widget.refresh)()

    def _register(self) -> None:
        """Give the theme to Textual. A new name each time: by that it knows that there is another."""
        before, self._number = f"pi-{self._number}", self._number + 1
        name = f"pi-{self._number}"
        self._app.register_theme(self._theme.textual(name))
        self._app.theme = name
        if self._number > 1:
            self._app.unregister_theme(before)
