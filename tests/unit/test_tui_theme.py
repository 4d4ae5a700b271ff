"""Theme files: checked, complete, and readable."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from rich.segment import Segment
from rich.style import Style
from textual.color import Color

from pi_trio.errors import ConfigError
from pi_trio.resources.config import RuntimeConfig
from pi_tui import terminal
from pi_tui.colour import ANSI_NAMES, contrast, nearest_of_256, parse_colour
from pi_tui.ground import Ground
from pi_tui.main import _theme_folders
from pi_tui.replies import is_dark
from pi_tui.terminal import GroundTold, KeyParser
from pi_tui.theme import BACKGROUNDS, TOKENS, Theme, bundled_folder, load_theme, theme_names
from pi_tui.theme_choice import Themes, dark_by_environment

LINES = {
    "border", "borderAccent", "borderMuted", "scrollbarTrack", "scrollbarThumb", "mdHr", "mdQuoteBorder",
    "mdCodeBlockBorder", "thinkingOff", "thinkingMinimal", "thinkingLow", "thinkingMedium", "thinkingHigh",
    "thinkingXhigh", "thinkingMax",
}  # fmt: skip
"""Tokens that draw lines, never letters."""

FOLDERS = [bundled_folder()]
SHIPPED = theme_names(FOLDERS)
COLOURED = [name for name in SHIPPED if name != "terminal"]
DARK, LIGHT = ("#000000", "#1e1e1e"), ("#ffffff", "#f5f5f5")
"""Grounds that terminals have, for themes that have none of their own."""


def shipped(name: str) -> Theme:
    return load_theme(name, FOLDERS)


def pairs(theme: Theme) -> Iterator[tuple[str, str, str]]:
    """Every token of letters, its colour, and each ground that it can stand on."""
    own = theme.base.get("background")
    root = [own] if own else [*(DARK if theme.dark else LIGHT)]
    grounds = {token: theme.colors[token] for token in BACKGROUNDS}
    found = grounds.pop("searchMatchBg")
    for token in sorted(set(TOKENS) - BACKGROUNDS - LINES):
        letters = (
            theme.colors[token] or theme.base.get("foreground") or ("#ffffff" if theme.dark else "#000000")
        )
        for ground in [found] if token == "searchMatchText" else [*root, *grounds.values()]:
            yield token, letters, ground


@pytest.fixture
def edited(tmp_path: Path):
    """Writes the dark theme with changes; a value of None removes a key of `colors`."""

    def write(top: dict[str, object] | None = None, **colors: object) -> str:
        data = json.loads((bundled_folder() / "dark.json").read_text())
        data.update(top or {})
        data["colors"] = {
            key: value for key, value in {**data["colors"], **colors}.items() if value is not None
        }
        path = tmp_path / "mine.json"
        path.write_text(json.dumps(data))
        return str(path)

    return write


def test_what_is_shipped():
    assert {
        "dark", "light", "terminal", "high-contrast-dark", "high-contrast-light", "colour-blind-dark",
        "colour-blind-light", "catppuccin-mocha", "catppuccin-latte", "dracula", "gruvbox-dark",
        "gruvbox-light", "nord", "solarized-dark", "solarized-light", "tokyo-night",
    } == set(SHIPPED)  # fmt: skip
    for name in SHIPPED:
        theme = shipped(name)
        assert theme.name == name
        assert theme.pair is None or (
            shipped(theme.pair).pair == name and shipped(theme.pair).dark != theme.dark
        )


@pytest.mark.parametrize("name", COLOURED)
def test_all_text_can_be_read(name):
    """TH-01: 4.5:1 for all letters on all grounds, with all colours and with 256 of them."""
    least = 7.0 if name.startswith("high-contrast") else 4.5
    for token, letters, ground in pairs(shipped(name)):
        assert contrast(letters, ground) >= least, (token, letters, ground)
    for token, letters, ground in pairs(shipped(name).of_256()):
        assert contrast(letters, ground) >= 4.5, (token, letters, ground)


def test_the_terminals_own_colours_stay_its_own():
    """TH-01: nothing of the user's palette is presumed; letters stand on the terminal's own ground."""
    theme = shipped("terminal")
    assert all(colour == "" or colour in ANSI_NAMES for colour in theme.colors.values())
    assert all(theme.colors[token] == "" for token in BACKGROUNDS)
    assert not theme.ground


@pytest.mark.parametrize("name", ["colour-blind-dark", "colour-blind-light"])
@pytest.mark.parametrize("pair", [("success", "error"), ("toolDiffAdded", "toolDiffRemoved")])
def test_good_and_bad_are_told_apart_without_red_or_green(name, pair):
    """What eyes without one kind of receptor see of the two (Viénot 1999) stays far apart."""
    first, second = (shipped(name).colors[token] for token in pair)
    for matrix in (PROTANOPIA, DEUTERANOPIA):
        assert math.dist(seen(first, matrix), seen(second, matrix)) > 0.3


PROTANOPIA = ((0.11238, 0.88762, 0), (0.11238, 0.88762, 0), (0.00401, -0.00401, 1))
DEUTERANOPIA = ((0.29275, 0.70725, 0), (0.29275, 0.70725, 0), (-0.02234, 0.02234, 1))


def seen(colour: str, matrix) -> list[float]:
    channels = [(int(colour[at : at + 2], 16) / 255) ** 2.2 for at in (1, 3, 5)]
    linear = [sum(a * b for a, b in zip(row, channels, strict=True)) for row in matrix]
    return [max(value, 0) ** (1 / 2.2) for value in linear]


# ------------------------------------------------------------------ the schema


SCHEMA = json.loads((bundled_folder() / "theme.schema.json").read_text())
VALID = Draft202012Validator(SCHEMA)


def test_the_schema_is_one_and_names_the_same_tokens():
    Draft202012Validator.check_schema(SCHEMA)
    colors = SCHEMA["properties"]["colors"]
    assert tuple(colors["properties"]) == TOKENS
    assert set(TOKENS) - set(colors["required"]) == {
        "scrollbarTrack", "scrollbarThumb", "searchMatchBg", "searchMatchText", "thinkingMax",
    }  # fmt: skip


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_theme_fits_the_schema(name):
    VALID.validate(json.loads((bundled_folder() / f"{name}.json").read_text()))


@pytest.mark.parametrize(
    "change",
    [
        {"name": ""}, {"name": "a/b"}, {"name": "system"}, {"name": None}, {"name": 3}, {"extra": 1},
        {"appearance": "grey"}, {"pair": "a/b"}, {"pair": 1}, {"vars": []}, {"base": []},
        {"base": {"ground": "#fff"}}, {"base": {"panel": 256}},
    ],
)  # fmt: skip
def test_the_schema_and_the_program_refuse_the_same(edited, change):
    path = edited(change)
    assert not VALID.is_valid(json.loads(Path(path).read_text()))
    with pytest.raises(ConfigError, match=r"mine\.json: .*`\w+"):
        load_theme(path, [])


# ------------------------------------------------------------------ files


def test_an_unknown_or_missing_colour_names_file_and_key(edited):
    with pytest.raises(ConfigError, match=r"mine\.json: unknown colour `colors\.colour`"):
        load_theme(edited(colour="#fff"), [])
    with pytest.raises(ConfigError, match=r"mine\.json: `colors\.mdLink` is missing"):
        load_theme(edited(mdLink=None), [])


@pytest.mark.parametrize("value", ["#12345", "nope", 256, -1, True, None, ["#fff"]])
def test_a_value_that_is_no_colour_is_named(edited, value):
    path = edited()
    data = json.loads(Path(path).read_text())
    data["colors"]["text"] = value
    Path(path).write_text(json.dumps(data))
    with pytest.raises(ConfigError, match=r"colors\.text"):
        load_theme(path, [])


def test_circular_variables_are_named(edited):
    with pytest.raises(ConfigError, match=r"colors\.accent"):
        load_theme(edited({"vars": {"blue": "red", "red": "blue"}}), [])


def test_optional_colours_fall_back(edited):
    theme = load_theme(edited(thinkingMax=None, scrollbarThumb=None), [])
    assert theme.colors["thinkingMax"] == theme.colors["thinkingXhigh"]
    assert theme.colors["scrollbarThumb"] == theme.colors["text"]


def test_an_unknown_theme_lists_the_known_ones():
    with pytest.raises(ConfigError, match=r"known are: .*dark, dracula, .*nord"):
        load_theme("none", [bundled_folder()])


def test_colour_values():
    assert parse_colour("#abc") == "#aabbcc"
    assert parse_colour("") == ""
    assert parse_colour(1) == "ansi_red"
    assert parse_colour(231) == "#ffffff"
    assert parse_colour(244) == "#808080"
    assert parse_colour("oklch(100% 0 0)") == "#ffffff"
    assert parse_colour("oklch(0.628 0.2577 29.23)") == "#ff0000"


def test_a_base_is_resolved_and_fills_the_ground(edited):
    theme = load_theme(edited({"base": {"background": "#102030", "foreground": "ink"}}), [])
    assert theme.base == {"background": "#102030", "foreground": "#e6e9ee"}
    red = Style(color="red")
    filled = Ground(theme.ground).apply([Segment("a", Style()), Segment("b", red)], Color(0, 0, 0))
    assert [(each.style.color.name, each.style.bgcolor.name) for each in filled if each.style] == [
        ("#e6e9ee", "#102030"),
        ("red", "#102030"),
    ]
    assert theme.textual("x").background == "#102030"
    assert not Ground(shipped("dark").ground).enabled


def test_a_theme_becomes_another_for_all_who_hold_it():
    theme, other = load_theme("dark", FOLDERS), shipped("nord")
    theme.become(other)
    assert (theme.name, theme["error"], theme.ground) == ("nord", other["error"], other.ground)


def test_256_colours_are_colours_of_the_palette():
    assert nearest_of_256("#2e3440") == "#303030"
    assert nearest_of_256("#ff0000") == "#ff0000"
    terminal = {"ansi_red", ""}
    assert {shipped("terminal").of_256().colors[token] for token in ("error", "text")} == terminal


# ------------------------------------------------------------------ which one is meant


def test_the_terminal_says_which_ground_it_has():
    assert not dark_by_environment({"COLORFGBG": "0;15"})
    assert dark_by_environment({"COLORFGBG": "15;default;0"})
    assert dark_by_environment({})


def test_without_themes_only_those_that_come_along_are_found(tmp_path: Path) -> None:
    config = RuntimeConfig(cwd=tmp_path, agent_dir=tmp_path)
    assert list(_theme_folders(config)) == [tmp_path / "themes", bundled_folder()]
    assert list(_theme_folders(evolve(config, without=frozenset({"themes"})))) == [bundled_folder()]


@pytest.mark.parametrize(
    ("choice", "environ", "name"),
    [
        ("system", {}, "dark"),
        ("system", {"COLORFGBG": "0;15"}, "light"),
        ("nord", {"COLORFGBG": "0;15"}, "nord"),
        ("gruvbox-light/gruvbox-dark", {}, "gruvbox-dark"),
        ("gruvbox-light/gruvbox-dark", {"COLORFGBG": "0;7"}, "gruvbox-light"),
        ("system", {"TERM": "screen", "COLORTERM": ""}, "terminal"),
    ],
)
def test_a_choice_comes_to_a_theme(choice, environ, name):
    assert Themes(FOLDERS, {"TERM": "xterm", "COLORTERM": "truecolor", **environ}).load(choice).name == name


def test_what_can_be_chosen(tmp_path):
    (tmp_path / "bad.json").write_text("{}")
    names = {choice.name: choice.note for choice in Themes([tmp_path, *FOLDERS], {}).choices()}
    assert next(iter(names)) == "system"
    assert names["gruvbox-light/gruvbox-dark"] == "goes by the terminal"
    assert names["nord"] == ""
    assert "bad.json: `colors.accent` is missing" in names["bad"]
    assert "theme.schema" not in names


def test_a_theme_that_cannot_be_used_gives_the_usual_one_and_a_reason(tmp_path):
    (tmp_path / "bad.json").write_text("{")
    theme, odd = Themes([tmp_path, *FOLDERS], {"COLORTERM": "truecolor", "TERM": "x"}).load_or_system("bad")
    assert theme.name == "dark"
    assert "bad.json: cannot be read as a theme" in odd


def test_the_nearest_folder_wins_and_its_file_is_watched(tmp_path):
    themes = Themes([tmp_path, *FOLDERS], {"COLORTERM": "truecolor", "TERM": "x"})
    mine = tmp_path / "nord.json"
    mine.write_text((bundled_folder() / "dracula.json").read_text())
    assert themes.load("nord").name == "dracula"
    assert not themes.file_changed()
    mine.write_text("{")
    assert themes.file_changed()
    assert not themes.file_changed()
    mine.unlink()
    assert themes.file_changed()


# ------------------------------------------------------------------ what the terminal says


@pytest.mark.parametrize(
    ("reply", "dark"),
    [
        ("rgb:0000/0000/0000", True),
        ("rgb:ffff/ffff/ffff", False),
        ("rgb:28/28/28", True),
        ("rgba:fdfd/f6f6/e3e3/ffff", False),
        ("nonsense", None),
    ],
)
def test_the_ground_in_a_reply(reply, dark):
    assert is_dark(reply) is dark


REPLIES = ["\x1b]11;rgb:0000/0000/0000\x07", "\x1b]11;rgb:ffff/ffff/ffff\x1b\\"]


@given(
    st.lists(
        st.sampled_from([*REPLIES, "a", "é", "\r", "\x1b[A", "\x1b[1;3A", "x\x1b[<35;10;5M"]), max_size=6
    ),
    st.data(),
)
def test_a_reply_is_never_typed_wherever_it_is_cut(parts, data):
    """TH-02: what the terminal says of its ground takes no key away and adds none."""
    wire = "".join(parts)
    parser = KeyParser(input_comes=lambda _seconds: True)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(wire)), max_size=4)))
    events = []
    for begin, end in zip([0, *cuts], [*cuts, len(wire)], strict=True):
        if begin < end:
            events += [*parser.feed(wire[begin:end]), *parser.tick()]
    told = [event.dark for event in events if isinstance(event, GroundTold)]
    assert told == ["0000" in part for part in parts if part in REPLIES]
    keys = [repr(event) for event in events if not isinstance(event, GroundTold)]
    typed = "".join(part for part in parts if part not in REPLIES)
    assert keys == [repr(event) for event in KeyParser().feed(typed)] if typed else not keys


def test_what_only_begins_like_a_reply_is_typed(monkeypatch):
    """TH-02: Alt+] and what follows it are keys."""
    now = [0.0]
    monkeypatch.setattr(terminal, "get_time", lambda: now[0])
    parser = KeyParser(input_comes=lambda _seconds: False)
    assert list(parser.feed("\x1b]")) == []
    now[0] = terminal.SEQUENCE_WAIT + 0.1
    assert [event.key for event in parser.tick()] == ["right_square_bracket"]
