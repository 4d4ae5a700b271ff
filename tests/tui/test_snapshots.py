"""Each main state looks as it did, letter for letter and colour for colour, from narrow to wide.

After a change that is meant, write the snapshots anew and read what changed in them:

    .venv/bin/pytest tests/tui/test_snapshots.py --snapshot-update
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import groupby

import pytest
from rich.style import Style
from screen_states import ANSWERS, NOW, STATES, State
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode
from textual.scrollbar import ScrollBar, ScrollBarRender
from textual.strip import Strip

from pi_trio.llm.protocol import Model
from pi_tui.store import SessionStore

pytestmark = pytest.mark.asyncio

SIZES = ((60, 20), (80, 24), (120, 40), (200, 60))
THEMES = ("dark", "light")


class Pictures(SingleFileSnapshotExtension):
    """A text file for each picture."""

    _write_mode = WriteMode.TEXT
    file_extension = "txt"


class Today(datetime):
    """Always the same one."""

    @classmethod
    def now(cls, tz=None):
        return NOW


@pytest.fixture
def pictures(snapshot):
    return snapshot.use_extension(Pictures)


def _without_thumb(**about):
    """Where a thumb is depends on heights, which are guesses for what was never in view."""
    return ScrollBarRender(**{**about, "window_size": 0})


@pytest.fixture(autouse=True)
def nothing_moves(monkeypatch):
    """Ages, seconds, spinners, and what the environment has to say; and each frame is drawn to its end."""
    monkeypatch.setattr("pi_tui.widgets.transcript.DRAWING", 3600.0)
    monkeypatch.setattr("pi_tui.items.words.datetime", Today)
    monkeypatch.setattr("pi_tui.live.SessionStore", functools.partial(SessionStore, clock=lambda: 0.0))
    monkeypatch.setattr("pi_tui.screens.chrome.SPINNER_INTERVAL", 3600.0)
    monkeypatch.setattr("fake_runtime.MODEL", Model("demo", provider="demo", context_window=100_000))
    monkeypatch.setattr(ScrollBar, "renderer", staticmethod(_without_thumb))
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.delenv("NO_COLOR", raising=False)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: "{}x{}".format(*size))
@pytest.mark.parametrize("state", STATES, ids=lambda state: state.name)
async def test_a_state_looks_as_it_did(state: State, size, open_screen, pictures):
    looks = []
    async with open_screen(size=size, entries=state.entries(), answers=ANSWERS) as screen:
        await state.go(screen)
        await screen.until(screen.sees(state.shows))
        for theme in THEMES:
            screen.app.theming.choose(theme)
            looks.append(await _settled(screen))
    assert "\n".join(_picture(looks)) == pictures


async def _settled(screen) -> list[Strip]:
    """What is seen once nothing is drawn any more."""
    before: list[Strip] = []
    while (now := screen.strips()) != before:
        before = now
        for _ in range(3):
            await screen.pilot.pause()
    return now


# ------------------------------------------------------------------ as text


def _picture(looks: list[list[Strip]]) -> Iterator[str]:
    """The text, then for each line how many cells have which style, then what the styles are."""
    texts = ["\n".join(strip.text.rstrip() for strip in strips) for strips in looks]
    assert texts[0] == texts[1]
    yield texts[0]
    names: dict[tuple[str, ...], str] = {}
    yield "─ styles, a letter and a number of cells ─"
    for y, strips in enumerate(zip(*looks, strict=True)):
        cells = zip(*map(_styles, strips), strict=True)
        runs = (
            (names.setdefault(style, _letter(len(names))), len(list(run))) for style, run in groupby(cells)
        )
        yield f"{y:2} " + " ".join(f"{name}{count}" for name, count in runs)
    yield f"─ {' │ '.join(THEMES)} ─"
    for style, name in names.items():
        yield f"{name:2} " + " │ ".join(style)


def _styles(strip: Strip) -> Iterable[str]:
    """The style of each cell."""
    return [words for segment in strip for words in [_words(segment.style)] * segment.cell_length]


def _words(style: Style | None) -> str:
    return str(style.without_color + Style(color=style.color, bgcolor=style.bgcolor)) if style else ""


def _letter(number: int) -> str:
    return chr(ord("a") + number) if number < 26 else chr(ord("A") + number - 26)
