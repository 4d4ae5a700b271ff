"""Theme files: checked, complete, and readable."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from attrs import evolve

from pi_trio.errors import ConfigError
from pi_trio.resources.config import RuntimeConfig
from pi_tui.colour import contrast, parse_colour
from pi_tui.main import _theme_folders
from pi_tui.theme import BACKGROUNDS, TOKENS, bundled_folder, default_theme_name, load_theme, theme_names

LINES = {
    "border", "borderAccent", "borderMuted", "scrollbarTrack", "scrollbarThumb", "mdHr", "mdQuoteBorder",
    "mdCodeBlockBorder", "thinkingOff", "thinkingMinimal", "thinkingLow",
}  # fmt: skip
"""Tokens that draw lines, never letters."""

ON = {
    "userMessageText": "userMessageBg",
    "customMessageText": "customMessageBg",
    "customMessageLabel": "customMessageBg",
    "searchMatchText": "searchMatchBg",
}


def shipped(name: str):
    return load_theme(name, [bundled_folder()])


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


def test_two_themes_are_shipped():
    assert {"dark", "light"} <= set(theme_names([bundled_folder()]))


@pytest.mark.parametrize(
    ("name", "grounds"), [("dark", ("#000000", "#1e1e1e")), ("light", ("#ffffff", "#f5f5f5"))]
)
def test_all_text_can_be_read(name, grounds):
    """TH-01: 4.5:1 for letters on the terminal's ground and on those of the theme."""
    theme = shipped(name)
    letters = set(TOKENS) - BACKGROUNDS - LINES
    for token in letters:
        colour = theme.colors[token]
        for ground in [theme.colors[ON[token]]] if token in ON else grounds:
            assert not colour or contrast(colour, ground) >= 4.5, (token, colour, ground)


@pytest.mark.parametrize("name", ["dark", "light"])
def test_what_stands_on_the_selection_can_be_read(name):
    theme = shipped(name)
    for token in ("accent", "muted", "dim", "success", "error", "warning"):
        assert contrast(theme.colors[token], theme.colors["selectedBg"]) >= 3, token


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


@pytest.mark.parametrize("top", [{"name": "a/b"}, {"name": "system"}, {"name": ""}, {"extra": 1}])
def test_bad_top_level_keys(edited, top):
    with pytest.raises(ConfigError, match=r"mine\.json"):
        load_theme(edited(top), [])


def test_optional_colours_fall_back(edited):
    theme = load_theme(edited(thinkingMax=None, scrollbarThumb=None), [])
    assert theme.colors["thinkingMax"] == theme.colors["thinkingXhigh"]
    assert theme.colors["scrollbarThumb"] == theme.colors["text"]


def test_an_unknown_theme_lists_the_known_ones():
    with pytest.raises(ConfigError, match="dark, light"):
        load_theme("none", [bundled_folder()])


def test_colour_values():
    assert parse_colour("#abc") == "#aabbcc"
    assert parse_colour("") == ""
    assert parse_colour(1) == "ansi_red"
    assert parse_colour(231) == "#ffffff"
    assert parse_colour(244) == "#808080"
    assert parse_colour("oklch(100% 0 0)") == "#ffffff"
    assert parse_colour("oklch(0.628 0.2577 29.23)") == "#ff0000"


def test_the_terminal_says_which_ground_it_has():
    assert default_theme_name({"COLORFGBG": "0;15"}) == "light"
    assert default_theme_name({"COLORFGBG": "15;default;0"}) == "dark"
    assert default_theme_name({}) == "dark"


def test_without_themes_only_those_that_come_along_are_found(tmp_path: Path) -> None:
    config = RuntimeConfig(cwd=tmp_path, agent_dir=tmp_path)
    assert list(_theme_folders(config)) == [tmp_path / "themes", bundled_folder()]
    assert list(_theme_folders(evolve(config, without=frozenset({"themes"})))) == [bundled_folder()]
