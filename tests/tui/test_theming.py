"""Choosing and changing the theme while the program runs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from pi_tui.app import PiApp
from pi_tui.colour import contrast
from pi_tui.screens.pick import PickScreen
from pi_tui.terminal import GroundTold
from pi_tui.theme import bundled_folder, load_theme, theme_names
from pi_tui.theme_choice import Themes

pytestmark = pytest.mark.asyncio

STREAM = """\
# A heading

Text with `code` and a [link](http://example.org).

| a | b |
|---|---|
| 1 | 2 |

```python
def f(x: int) -> str:  # comment
    return "text" + str(x)
```

> quoted

- item
"""


def colours(screen) -> set[str]:
    """The names of all colours that are on the screen, as they go out."""
    screen.app.screen.refresh()
    strips = screen.app.screen._compositor.render_strips(screen.app.size)
    styles = [style for strip in strips for text, style, _ in strip if style]
    return {
        part.name for style in styles for part in (style.color, style.bgcolor) if part and not part.is_default
    }


def of(name: str) -> set[str]:
    theme = load_theme(name, [bundled_folder()])
    return {*theme.colors.values(), *theme.base.values()} - {""}


@pytest.fixture
def kept(monkeypatch) -> list[str]:
    """The choices that the program keeps."""
    choices: list[str] = []
    made = PiApp.__init__

    def init(self, *args, **options):
        made(self, *args, save_theme=choices.append, **options)

    monkeypatch.setattr(PiApp, "__init__", init)
    monkeypatch.setenv("COLORTERM", "truecolor")
    return choices


@pytest.mark.command("theme")
async def test_the_picker_shows_what_it_is_on_and_escape_goes_back(open_screen, kept):
    async with open_screen() as screen:
        await screen.send("/theme")
        await screen.until(lambda: isinstance(screen.app.screen, PickScreen))
        await screen.until(lambda: screen.app.screen.query_one("Rule").label == "theme")
        await screen.press(*"nord")
        await screen.until(lambda: screen.app.theming._theme.name == "nord")
        await screen.until(lambda: of("nord") >= colours(screen))
        await screen.press("escape")
        await screen.until(lambda: screen.app.theming._theme.name == "dark")
        await screen.until(lambda: of("dark") >= colours(screen))
        assert kept == []


@pytest.mark.command("theme")
async def test_what_is_chosen_stays_and_is_kept(open_screen, kept):
    async with open_screen() as screen:
        await screen.send("/theme")
        await screen.until(lambda: isinstance(screen.app.screen, PickScreen))
        await screen.press(*"dracula", "enter")
        await screen.until(lambda: kept == ["dracula"])
        await screen.until(lambda: screen.app.screen is screen.main)
        assert screen.app.theming._theme.name == "dracula"
        await screen.send("/theme solarized-light")
        await screen.until(lambda: kept == ["dracula", "solarized-light"])
        await screen.send("/settings theme nord")
        await screen.until(lambda: kept == ["dracula", "solarized-light", "nord"])
        await screen.send_kept("/theme no-such")
        await screen.until(screen.sees("there is no theme 'no-such'"))
        assert screen.app.theming._theme.name == "nord"


async def test_switching_loses_neither_text_nor_colours(open_screen, kept):
    """TH-03: twenty changes over fences, diffs and tables, while something runs."""
    async with open_screen(answers={"wait": STREAM}, size=(120, 60)) as screen:
        await screen.send("hello")
        await screen.idle()
        await screen.send("wait")
        await screen.until(lambda: screen.prompt.running)
        await screen.until(screen.sees("item"))
        before = screen.transcript_text()
        for number in range(20):
            name = ["nord", "light", "terminal", "dracula"][number % 4]
            screen.app.theming.choose(name)
            allowed = {colour.replace("ansi_", "") for colour in of(name)}
            allowed |= {f"color({number})" for number in range(16)}
            await screen.until(lambda: screen.transcript_text() == before)  # drawn anew over a few frames
            await screen.until(lambda allowed=allowed: colours(screen) <= allowed)


async def test_a_changed_file_is_shown_and_a_broken_one_told_once(open_screen, kept, tmp_path: Path):
    async with open_screen() as screen:
        theming = screen.app.theming
        theming.themes = Themes([tmp_path, bundled_folder()])
        path = tmp_path / "mine.json"
        data = json.loads((bundled_folder() / "nord.json").read_text())
        path.write_text(json.dumps(data))
        theming.choose("mine")
        data["vars"]["soft"] = "#123456"
        path.write_text(json.dumps(data))
        os.utime(path, ns=(1, 1))
        theming._look()
        await screen.until(lambda: "#123456" in colours(screen))
        for broken in ('{"name": "mine"}', '{"name": "mine" }'):
            path.write_text(broken)
            theming._look()
        await screen.until(screen.sees("the theme stays as it was"))
        notices = [item.text for item in screen.main.live.store.items if item.kind == "notice"]
        assert [text.rpartition("/")[2] for text in notices] == ["mine.json: `colors.accent` is missing"]
        assert "#123456" in colours(screen)
        data["vars"]["soft"] = "#654321"
        path.write_text(json.dumps(data))
        theming._look()
        await screen.until(lambda: "#654321" in colours(screen))


async def test_the_terminals_ground_counts_unless_a_theme_was_chosen(open_screen, kept):
    """TH-02: what is told late is used; what the user chose wins."""
    async with open_screen() as screen:
        theming = screen.app.theming
        theming.choose("system")
        screen.app.post_message(GroundTold(dark=False))
        await screen.until(lambda: theming._theme.name == "light")
        theming.choose("gruvbox-light/gruvbox-dark")
        screen.app.post_message(GroundTold(dark=True))
        await screen.until(lambda: theming._theme.name == "gruvbox-dark")
        theming.choose("dark")
        screen.app.post_message(GroundTold(dark=False))
        await screen.until(lambda: not theming.themes.dark)
        assert theming._theme.name == "dark"


async def test_dialogs_that_are_open_change_with_the_screen(open_screen, kept):
    async with open_screen() as screen:
        await screen.press("question_mark")
        await screen.until(screen.sees("In the prompt"))
        screen.app.theming.choose("gruvbox-light")
        await screen.until(lambda: of("gruvbox-light") >= colours(screen))
        assert load_theme("gruvbox-light", [bundled_folder()]).base["background"] in colours(screen)


def letters(screen) -> set[tuple[str, str, str]]:
    """Letters on the screen, their colour, and that of their ground; an empty one is the terminal's."""
    screen.app.screen.refresh()
    found = set()
    for strip in screen.app.screen._compositor.render_strips(screen.app.size):
        for text, style, _ in strip:
            if style and any(character.isalnum() for character in text):
                pair = [style.color, style.bgcolor]
                fore, back = ("" if part is None or part.is_default else part.name for part in pair)
                found.add((text, back, fore) if style.reverse else (text, fore, back))
    return found


async def test_what_is_on_the_screen_can_be_read(open_screen, kept):
    """TH-01: not only the colours of the files: the letters as they are drawn, on what they are drawn on."""
    async with open_screen(answers={"show": STREAM, "tool output": "some output"}, size=(130, 60)) as screen:
        for text in ("show", "use a tool", "!make"):
            await screen.send(text)
            await screen.idle()
        await screen.until(screen.sees("exit 3"))
        await screen.press("ctrl+t", "up")
        for name in theme_names([bundled_folder()]):
            if name == "terminal":
                continue
            screen.app.theming.choose(name)
            await screen.pilot.pause()
            theme = load_theme(name, [bundled_folder()])
            usual = theme.base or {
                "foreground": "#ffffff" if theme.dark else "#000000",
                "background": "#1e1e1e" if theme.dark else "#f5f5f5",
            }
            for text, fore, back in letters(screen):
                pair = (fore or usual["foreground"], back or usual["background"])
                assert contrast(*pair) >= 4.5, (name, text, pair)
