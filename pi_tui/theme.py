"""Themes: pi's theme JSON, checked and turned into Rich styles and Textual variables.

A theme names every colour by its use (a *token*). An empty value is the terminal's own
colour; a theme without a `base` has no ground of its own and sits on whatever the user chose.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import define, field
from rich.style import Style

from pi_trio.errors import ConfigError
from pi_trio.plain_file import read_plain_file
from pi_trio.written_path import home_expanded
from pi_tui.colour import ANSI_NAMES, nearest_of_256, parse_colour

if TYPE_CHECKING:
    from textual.theme import Theme as TextualTheme

__all__ = [
    "BACKGROUNDS",
    "TOKENS",
    "Theme",
    "bundled_folder",
    "find_theme",
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

_BASE_NAMES = "background foreground surface panel boost primary secondary accent success warning error"
_BASE = frozenset(_BASE_NAMES.split())
_KEYS = frozenset({"$schema", "name", "appearance", "pair", "vars", "base", "colors", "export"})


@define(slots=False, eq=False)
class Theme:
    """A checked theme. `colors` maps every token to `#rrggbb`, an ANSI name, or `""`.

    `base` has the ground of the screen and further colours of Textual's, where the theme says
    any; `pair` names the theme for the other ground, and `path` is the file. The screen has one
    theme for all its parts, which `become`s another when the user chooses one.
    """

    name: str
    dark: bool
    colors: Mapping[str, str]
    base: Mapping[str, str] = field(factory=dict)
    pair: str | None = None
    path: Path | None = None
    _styles: dict[str, Style] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._styles = {token: _style(token, colour) for token, colour in self.colors.items()}

    def __getitem__(self, token: str) -> Style:
        """The Rich style of a token: a ground for `BACKGROUNDS`, else the colour of letters."""
        return self._styles[token]

    def become(self, other: Theme) -> None:
        """Look like another theme from now on. Whoever keeps something drawn must draw it again."""
        self.__dict__.update(other.__dict__)

    def of_256(self) -> Theme:
        """The theme for a terminal with 256 colours: each colour the one that looks most like it."""
        colors, base = (
            {key: nearest_of_256(value) if value.startswith("#") else value for key, value in table.items()}
            for table in (self.colors, self.base)
        )
        return Theme(self.name, self.dark, colors, base, self.pair, self.path)

    @property
    def ground(self) -> Style:
        """The screen's own ground and letters; of those that it leaves to the terminal, nothing."""
        letters, ground = self.base.get("foreground"), self.base.get("background")
        return Style(color=_rich(letters), bgcolor=_rich(ground))

    def textual(self, name: str) -> TextualTheme:
        """The theme under a name for Textual's stylesheets, with `$pi-<token>` variables."""
        from textual.theme import Theme as TextualTheme

        variables = {f"pi-{token}": colour or "ansi_default" for token, colour in self.colors.items()}
        base = dict.fromkeys(_BASE_NAMES.split()[:5], "ansi_default")
        base |= {key: colour for key, colour in self.base.items() if colour}
        theme = TextualTheme(
            name=name,
            primary=variables["pi-accent"],
            dark=self.dark,
            ansi=True,
            variables={**variables, "ansi-background": "ansi_default", "ansi-foreground": "ansi_default"},
        )
        return replace(theme, **base)  # type: ignore[arg-type]  # keys of Textual's theme, all of them texts


def load_theme(name: str, folders: Sequence[Path]) -> Theme:
    """The theme of that name, or at that path. Raises `ConfigError` naming the file and the key."""
    path = find_theme(name, folders)
    try:
        data = json.loads(read_plain_file(path).decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: cannot be read as a theme: {error}") from None
    if not isinstance(data, dict):
        raise ConfigError(f"{path}: a theme is a JSON object")
    return _check(data, path)


def theme_names(folders: Sequence[Path]) -> list[str]:
    """The names that `load_theme` finds, sorted."""
    names = {path.stem for folder in folders if folder.is_dir() for path in folder.glob("*.json")}
    return sorted(name for name in names if not name.endswith(".schema"))


def bundled_folder() -> Path:
    """The themes that come along: inside the installed package, or beside it in a checkout."""
    inside = Path(str(files("pi_tui"))) / "themes"
    return inside if inside.is_dir() else inside.parents[1] / "themes"


def find_theme(name: str, folders: Sequence[Path]) -> Path:
    """The file of a theme: the first of that name, or the path that the name is."""
    if name.endswith(".json"):
        return home_expanded(name)
    for folder in folders:
        path = folder / f"{name}.json"
        if "/" not in name and path.is_file():
            return path
    raise ConfigError(f"there is no theme {name!r}; known are: {', '.join(theme_names(folders))}")


# ------------------------------------------------------------------ checks


def _check(data: Mapping[str, Any], path: Path) -> Theme:
    if unknown := sorted(set(data) - _KEYS):
        raise ConfigError(f"{path}: unknown key `{unknown[0]}`")
    for key in ("vars", "base", "colors"):
        if not isinstance(data.get(key, {}), dict):
            raise ConfigError(f"{path}: `{key}` must be an object")
    colors, base, variables = data.get("colors", {}), data.get("base", {}), data.get("vars", {})
    if missing := [token for token in _REQUIRED if token not in colors]:
        raise ConfigError(f"{path}: `colors.{missing[0]}` is missing")
    resolved = _resolved("colors", colors, frozenset(TOKENS), variables, path)
    for token, fallback in _FALLBACKS.items():
        resolved.setdefault(token, resolved[fallback])
    dark = _word(data, "appearance", path) or "dark"
    if dark not in ("dark", "light"):
        raise ConfigError(f"{path}: `appearance` must be dark or light")
    name = _word(data, "name", path)
    if not name or name == "system":
        raise ConfigError(f"{path}: `name` must be there, and not be `system`")
    bases = _resolved("base", base, _BASE, variables, path)
    return Theme(name, dark == "dark", resolved, bases, _word(data, "pair", path), path)


def _word(data: Mapping[str, Any], key: str, path: Path) -> str | None:
    """A name, or None if it is not there."""
    word = data.get(key)
    if word is not None and (not isinstance(word, str) or not word or "/" in word):
        raise ConfigError(f"{path}: `{key}` must be a text without `/`")
    return word


def _resolved(
    table: str, colours: Mapping[str, Any], known: frozenset[str], variables: Mapping[str, Any], path: Path
) -> dict[str, str]:
    """The colours of a table, with the names of `vars` replaced."""
    if unknown := sorted(set(colours) - known):
        raise ConfigError(f"{path}: unknown colour `{table}.{unknown[0]}`")
    return {key: _resolve(value, variables, f"{table}.{key}", path) for key, value in colours.items()}


def _resolve(value: Any, variables: Mapping[str, Any], key: str, path: Path) -> str:
    seen: set[str] = set()
    current = value
    while isinstance(current, str) and current in variables and current not in seen:
        seen.add(current)
        current = variables[current]
    if isinstance(current, str | int) and not isinstance(current, bool):
        colour = parse_colour(current)
        if colour is not None:
            return colour
    raise ConfigError(f"{path}: `{key}` is {value!r}, which is no colour")


def _style(token: str, colour: str) -> Style:
    return Style(bgcolor=_rich(colour)) if token in BACKGROUNDS else Style(color=_rich(colour))


def _rich(colour: str | None) -> str | None:
    """A colour's name in Rich; None for the terminal's own."""
    return f"color({ANSI_NAMES.index(colour)})" if colour in ANSI_NAMES else colour or None
