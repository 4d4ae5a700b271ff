"""Themes: pi's theme JSON, checked and turned into Rich styles and Textual variables.

A theme names every colour by its use (a *token*). An empty value is the terminal's own
colour, so the screen has no background of its own and sits on whatever the user chose.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import define
from rich.style import Style

from pi_trio.errors import ConfigError
from pi_tui.colour import ANSI_NAMES, parse_colour

if TYPE_CHECKING:
    from textual.theme import Theme as TextualTheme

__all__ = [
    "BACKGROUNDS",
    "TOKENS",
    "Theme",
    "bundled_folder",
    "default_theme_name",
    "load_theme",
    "theme_names",
]

_NAMES = """
    accent border borderAccent borderMuted success error warning muted dim text thinkingText
    selectedBg userMessageBg userMessageText customMessageBg customMessageText customMessageLabel
    toolPendingBg toolSuccessBg toolErrorBg toolTitle toolOutput
    mdHeading mdLink mdLinkUrl mdCode mdCodeBlock mdCodeBlockBorder mdQuote mdQuoteBorder mdHr mdListBullet
    toolDiffAdded toolDiffRemoved toolDiffContext
    syntaxComment syntaxKeyword syntaxFunction syntaxVariable syntaxString syntaxNumber syntaxType
    syntaxOperator syntaxPunctuation
    thinkingOff thinkingMinimal thinkingLow thinkingMedium thinkingHigh thinkingXhigh bashMode
"""
_GROUNDS = "selectedBg searchMatchBg userMessageBg customMessageBg toolPendingBg toolSuccessBg toolErrorBg"
_REQUIRED = tuple(_NAMES.split())

_FALLBACKS = {
    "scrollbarTrack": "muted",
    "scrollbarThumb": "text",
    "searchMatchBg": "selectedBg",
    "searchMatchText": "text",
    "thinkingMax": "thinkingXhigh",
}

TOKENS = (*_REQUIRED, *_FALLBACKS)
"""All colour names of a theme."""

BACKGROUNDS = frozenset(_GROUNDS.split())
"""The tokens that are grounds; all others colour letters or lines."""

_KEYS = frozenset({"$schema", "name", "appearance", "vars", "colors", "export"})


@define(slots=False, eq=False)
class Theme:
    """A checked theme. `colors` maps every token to `#rrggbb`, an ANSI name, or `""`."""

    name: str
    dark: bool
    colors: Mapping[str, str]

    def __getitem__(self, token: str) -> Style:
        """The Rich style of a token: a ground for `BACKGROUNDS`, else the colour of letters."""
        return self._styles[token]

    @cached_property
    def _styles(self) -> dict[str, Style]:
        return {token: _style(token, colour) for token, colour in self.colors.items()}

    def textual(self) -> TextualTheme:
        """The theme for Textual's stylesheets: `$pi-<token>` variables on the terminal's own ground."""
        from textual.theme import Theme as TextualTheme

        variables = {f"pi-{token}": colour or "ansi_default" for token, colour in self.colors.items()}
        variables |= {"ansi-background": "ansi_default", "ansi-foreground": "ansi_default"}
        return TextualTheme(
            name=f"pi-{self.name}",
            primary=variables["pi-accent"],
            foreground="ansi_default",
            background="ansi_default",
            surface="ansi_default",
            panel="ansi_default",
            boost="ansi_default",
            dark=self.dark,
            ansi=True,
            variables=variables,
        )


def load_theme(name: str, folders: Sequence[Path]) -> Theme:
    """The theme of that name, or at that path. Raises `ConfigError` naming the file and the key."""
    path = _find(name, folders)
    try:
        data = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: cannot be read as a theme: {error}") from None
    if not isinstance(data, dict):
        raise ConfigError(f"{path}: a theme is a JSON object")
    return _check(data, path)


def theme_names(folders: Sequence[Path]) -> list[str]:
    """The names that `load_theme` finds, sorted."""
    return sorted({path.stem for folder in folders if folder.is_dir() for path in folder.glob("*.json")})


def bundled_folder() -> Path:
    """The themes that come along: inside the installed package, or beside it in a checkout."""
    inside = Path(str(files("pi_tui"))) / "themes"
    return inside if inside.is_dir() else inside.parents[1] / "themes"


def default_theme_name(environ: Mapping[str, str] = os.environ) -> str:
    """`light` if the terminal says that its ground is light (COLORFGBG), else `dark`."""
    ground = environ.get("COLORFGBG", "").rpartition(";")[2]
    return "light" if ground in ("7", "15") else "dark"


def _find(name: str, folders: Sequence[Path]) -> Path:
    if name.endswith(".json"):
        return Path(name).expanduser()
    for folder in folders:
        path = folder / f"{name}.json"
        if path.is_file():
            return path
    raise ConfigError(f"there is no theme {name!r}; known are: {', '.join(theme_names(folders))}")


def _check(data: Mapping[str, Any], path: Path) -> Theme:
    colors, variables = data.get("colors"), data.get("vars", {})
    if unknown := sorted(set(data) - _KEYS):
        raise ConfigError(f"{path}: unknown key {unknown[0]!r}")
    if not isinstance(colors, dict) or not isinstance(variables, dict):
        raise ConfigError(f"{path}: `colors` and `vars` must be objects")
    if unknown := sorted(set(colors) - set(TOKENS)):
        raise ConfigError(f"{path}: unknown colour `colors.{unknown[0]}`")
    if missing := [token for token in _REQUIRED if token not in colors]:
        raise ConfigError(f"{path}: `colors.{missing[0]}` is missing")
    resolved = {token: _resolve(value, variables, token, path) for token, value in colors.items()}
    for token, fallback in _FALLBACKS.items():
        resolved.setdefault(token, resolved[fallback])
    return Theme(_name(data, path), data.get("appearance", "dark") != "light", resolved)


def _name(data: Mapping[str, Any], path: Path) -> str:
    name = data.get("name")
    if not isinstance(name, str) or not name or "/" in name or name == "system":
        raise ConfigError(f"{path}: `name` must be a text without `/` and not `system`")
    return name


def _resolve(value: Any, variables: Mapping[str, Any], token: str, path: Path) -> str:
    seen: set[str] = set()
    current = value
    while isinstance(current, str) and current in variables and current not in seen:
        seen.add(current)
        current = variables[current]
    if isinstance(current, str | int) and not isinstance(current, bool):
        colour = parse_colour(current)
        if colour is not None:
            return colour
    raise ConfigError(f"{path}: `colors.{token}` is {value!r}, which is no colour")


def _style(token: str, colour: str) -> Style:
    if not colour:
        return Style()
    rich_name = f"color({ANSI_NAMES.index(colour)})" if colour in ANSI_NAMES else colour
    return Style(bgcolor=rich_name) if token in BACKGROUNDS else Style(color=rich_name)
