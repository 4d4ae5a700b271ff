"""The screen on a fake runtime, in a headless terminal of a given size."""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from textual import events
from textual.keys import _character_to_key
from textual.pilot import Pilot
from textual.strip import Strip

sys.path.insert(0, str(Path(__file__).parent))  # tests are not a package; the fake is shared

from fake_runtime import FakeRuntime, open_fake

from pi_tui.app import Ask, PiApp
from pi_tui.history import PromptHistory
from pi_tui.screens.main import MainScreen
from pi_tui.theme import bundled_folder, load_theme
from pi_tui.tree_shown import Show
from pi_tui.widgets.body import Body
from pi_tui.widgets.chrome import StatusLine
from pi_tui.widgets.prompt import Prompt
from pi_tui.widgets.transcript import Transcript


class Screen:
    """What a test does with a running program, and what it sees."""

    def __init__(self, app: PiApp, pilot: Pilot[None], runtimes: list[FakeRuntime]) -> None:
        self.app = app
        self.pilot = pilot
        self._runtimes = runtimes

    @property
    def main(self) -> MainScreen:
        return self.app.get_default_screen()

    @property
    def prompt(self) -> Prompt:
        return self.main.query_one(Prompt)

    @property
    def body(self) -> Body:
        return self.main.query_one(Body)

    @property
    def transcript(self) -> Transcript:
        return self.body.transcript

    @property
    def runtime(self) -> FakeRuntime:
        return self._runtimes[0]

    async def runtime_call(self, command: Callable[[FakeRuntime], Awaitable[Any]]) -> None:
        """Have something happen in the runtime, as another client would."""
        await self.main.work.bridge.call(command)

    @property
    def log(self) -> list[str]:
        return self._runtimes[0].log

    @property
    def status(self) -> str:
        line = self.main.query_one(StatusLine)
        return line.strip(line.size.width).text

    def text(self) -> str:
        """All that is on the screen, as lines."""
        return "\n".join(strip.text for strip in self.strips())

    def strips(self) -> list[Strip]:
        """All that is on the screen, with its styles."""
        self.app.screen.refresh()
        return self.app.screen._compositor.render_strips(self.app.size)

    async def until(self, holds: Callable[[], object]) -> None:
        """Let the program run until something holds. Its loop may swallow what a timer of pytest raises."""
        end = time.monotonic() + PATIENCE
        while not holds():
            assert time.monotonic() < end, self.text()
            await self.pilot.pause()

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    def burst(self, *keys: str) -> None:
        """Type keys and letters at once: Textual's pilot rests after each key."""
        for each in keys:
            letter = each if len(each) == 1 else None
            key = _character_to_key(each) if letter and not each.isalnum() else each
            self.app._driver.send_message(events.Key(key, letter))

    async def write(self, text: str) -> None:
        """Type a text into the prompt, and fast."""
        self.burst(*text)
        await self.until(lambda: self.prompt.text.endswith(text))

    async def send(self, text: str) -> None:
        await self.write(text)
        await self.press("enter")
        await self.until(lambda: not self.prompt.text)

    async def send_kept(self, text: str) -> None:
        """Send what will come back."""
        await self.write(text)
        await self.press("enter")

    async def idle(self) -> None:
        """Until nothing runs and everything is drawn."""
        await self.until(lambda: self.main.live is not None and not self.main.live.store.running)
        await self.pilot.pause()

    def transcript_text(self) -> str:
        """What the stream shows now."""
        lines = (self.transcript.render_line(y) for y in range(self.transcript.size.height))
        return "\n".join(line.text for line in lines)

    def sees(self, text: str) -> Callable[[], bool]:
        return lambda: text in self.text()


PATIENCE = 45.0
"""Seconds until something that must happen is given up."""

Settle: TypeAlias = Callable[[Ask], Awaitable[None]]
OpenScreen: TypeAlias = Callable[..., AbstractAsyncContextManager[Screen]]


@pytest.fixture(autouse=True)
def messages_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the status line says for a moment is there until a slow machine has looked."""
    monkeypatch.setattr("pi_tui.screens.telling.ARMED_FOR", 3600.0)


@pytest.fixture
def open_screen() -> OpenScreen:
    """Opens the program: `async with open_screen(size=(120, 40), entries=…, answers=…) as screen`."""

    @asynccontextmanager
    async def opening(
        *,
        size: tuple[int, int] = (120, 40),
        entries: Sequence[Mapping[str, Any]] = (),
        answers: Mapping[str, str] | None = None,
        theme: str = "dark",
        settle: Settle | None = None,
        ready: bool = True,
        history: PromptHistory | None = None,
        tree_shows: Show = "turns",
    ) -> AsyncIterator[Screen]:
        runtimes: list[FakeRuntime] = []

        @asynccontextmanager
        async def runtime() -> AsyncIterator[FakeRuntime]:
            async with open_fake(entries, answers) as opened:
                runtimes.append(opened)
                yield opened

        chosen = load_theme(theme, [bundled_folder()])
        app = PiApp(
            runtime,
            lambda opened: opened.new_session(),
            chosen,
            settle=settle,
            history=history,
            tree_shows=tree_shows,
        )
        try:
            async with app.run_test(size=size) as pilot:
                screen = Screen(app, pilot, runtimes)
                await screen.until(lambda: not ready or (screen.main.live and screen.main.query(Body)))
                await pilot.pause()
                yield screen
        finally:
            await app.stop_runtime()

    return opening
