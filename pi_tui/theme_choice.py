"""Which theme is meant: by its name, by the terminal's ground and colours, and by its file as it is now.

A choice is what stands in the settings: the name of a theme, two names `light/dark` of which
the terminal's ground decides, or `system`, which is the pair that comes along.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from io import StringIO
from pathlib import Path

from attrs import frozen
from rich.console import Console

from pi_trio.errors import ConfigError
from pi_tui.theme import Theme, load_theme, theme_names

__all__ = ["SYSTEM", "Choice", "Themes", "colour_system", "dark_by_environment", "follows_ground"]

SYSTEM = "system"

_PAIR = ("light", "dark")

FEW = "terminal"
"""The theme of `system` where a terminal has sixteen colours: the others would come out as chance has it."""


@frozen
class Choice:
    """What can stand in the settings. `note` says how it comes to a theme, or what is wrong with it."""

    name: str
    note: str = ""


class Themes:
    """The themes in some folders, the first of which wins. `dark`: the terminal's ground is."""

    def __init__(self, folders: Sequence[Path], environ: Mapping[str, str] = os.environ) -> None:
        self.folders = folders
        self.dark = dark_by_environment(environ)
        self._colours = colour_system(environ)
        self._seen: tuple[Path | None, tuple[int, int] | None] = (None, None)

    def load(self, choice: str) -> Theme:
        """The theme that a choice means now. Raises `ConfigError`."""
        theme = load_theme(self._name(choice), self.folders)
        self._seen = (theme.path, _state(theme.path))
        return theme.of_256() if self._colours == "256" else theme

    def load_or_system(self, choice: str) -> tuple[Theme, str]:
        """The same, or the usual theme and what is wrong with the chosen one."""
        try:
            return self.load(choice), ""
        except ConfigError as error:
            return self.load(SYSTEM), f"the theme is not used: {error}"

    def file_changed(self) -> bool:
        """Whether the file of the theme that was loaded last is another than at the last look."""
        path, before = self._seen
        now = _state(path)
        self._seen = (path, now)
        return now != before

    def choices(self) -> list[Choice]:
        """Everything that can be chosen: `system`, the pairs, and each theme by itself."""
        names = theme_names(self.folders)
        themes = {name: self._look(name) for name in names}
        pairs = dict.fromkeys(
            f"{theme.pair}/{name}" if theme.dark else f"{name}/{theme.pair}"
            for name, theme in themes.items()
            if isinstance(theme, Theme) and theme.pair in names and name not in _PAIR  # which is `system`
        )
        return [
            *(Choice(name, "goes by the terminal") for name in (SYSTEM, *pairs)),
            *(
                Choice(name, "" if isinstance(theme, Theme) else f"✗ {theme}")
                for name, theme in themes.items()
            ),
        ]

    def _name(self, choice: str) -> str:
        if choice == SYSTEM:
            return FEW if self._colours in (None, "standard") else "dark" if self.dark else "light"
        if "/" in choice and not choice.endswith(".json"):
            light, _, dark = choice.partition("/")
            return dark if self.dark else light
        return choice

    def _look(self, name: str) -> Theme | ConfigError:
        try:
            return load_theme(name, self.folders)
        except ConfigError as error:
            return error


def follows_ground(choice: str) -> bool:
    """Whether the terminal's ground decides. A path is no pair."""
    return choice == SYSTEM or ("/" in choice and not choice.endswith(".json"))


def dark_by_environment(environ: Mapping[str, str]) -> bool:
    """Whether the ground is dark as the environment says it (COLORFGBG); if it does not, it is."""
    return environ.get("COLORFGBG", "").rpartition(";")[2] not in ("7", "15")


def colour_system(environ: Mapping[str, str]) -> str | None:
    """What colours the terminal has, as Rich and Textual take it: None, standard (16), 256 or truecolor."""
    return Console(file=StringIO(), force_terminal=True, _environ=environ).color_system


def _state(path: Path | None) -> tuple[int, int] | None:
    """What tells one version of a file from another; None if there is no file."""
    try:
        facts = path.stat() if path is not None else None
    except OSError:
        return None
    return (facts.st_mtime_ns, facts.st_size) if facts else None
