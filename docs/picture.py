"""Draws the pictures of README.md and docs/tour.md: the real program on the demo model.

.venv/bin/python docs/picture.py

It does what the tour says, key by key; tests/tui/test_tour.py takes the same walk and holds
what it sees against the page.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from textual.pilot import Pilot

from pi_trio.harness.runtime import LocalRuntime, open_runtime
from pi_trio.resources.config import RuntimeConfig
from pi_tui import terminal
from pi_tui.app import PiApp
from pi_tui.screens.main import MainScreen
from pi_tui.store import SessionStore
from pi_tui.theme import bundled_folder, load_theme

SIZE = (120, 34)
FOLDER = Path(__file__).parent
PICTURES = ("screen", "stopped", "queue", "tools", "tree")


async def main() -> None:
    """Take the walk, and a picture at each of its stations."""
    with tempfile.TemporaryDirectory() as place:

        def draw(name: str, app: PiApp) -> None:
            if name in PICTURES:
                (FOLDER / f"{name}.svg").write_text(app.export_screenshot(title="pi-tui"))

        await walk(Path(place), draw)


async def walk(place: Path, seen: Callable[[str, PiApp], None]) -> None:
    """Go through docs/tour.md in a folder made for it. `seen` is called at each station."""
    terminal.install()
    project = place / "garden"
    (project / "src").mkdir(parents=True)
    (project / "README.md").write_text("# Garden\n\nWaters the plants when it is dry.\n")
    (project / "src" / "water.py").write_text("def water(days_dry: int) -> bool:\n    return days_dry > 2\n")
    os.chdir(project)
    config = RuntimeConfig(cwd=project, agent_dir=place / "agent", demo=True)

    @asynccontextmanager
    async def opened() -> AsyncIterator[LocalRuntime]:
        async with open_runtime(config) as runtime:
            yield runtime

    app = PiApp(opened, lambda runtime: runtime.new_session(), load_theme("dark", [bundled_folder()]))
    try:
        async with app.run_test(size=SIZE) as pilot:
            await _Walker(app, pilot, seen).go()
    finally:
        await app.stop_runtime()


class _Walker:
    def __init__(self, app: PiApp, pilot: Pilot[None], seen: Callable[[str, PiApp], None]) -> None:
        self._app = app
        self._pilot = pilot
        self._seen = seen
        self._screen: MainScreen = app.get_default_screen()

    async def go(self) -> None:
        """All of the tour, in its order."""
        await self._idle()
        await self._say("read README.md and list src")
        await self._idle()
        await self._say("in src/water.py replace > 2 by > 3")
        await self._idle()
        await self._branch()
        await self._stop()
        await self._queue()
        await self._press("f3", "]", "]", "]")
        await self._station("tools")
        await self._press("escape", "ctrl+t", "ctrl+t", *("up",) * 3)
        await self._station("tree")
        await self._press("escape")
        await self._say("/theme")
        await self._station("themes")
        await self._press("escape", "ctrl+s")
        await self._station("sessions")

    async def _branch(self) -> None:
        """Say the second prompt in other words, from where it was said."""
        await self._press("ctrl+t", "up", "down", "b")
        await self._until(lambda: bool(self._screen.prompt.text))
        await self._press("ctrl+a", "ctrl+k")
        await self._say("in src/water.py replace > 3 by >= 3")
        await self._idle()
        await self._say("run `for i in 1 2 3 4 5; do echo test $i passed; sleep 0.6; done`")
        await self._pilot.pause(2)
        self._seen("screen", self._app)
        await self._idle()

    async def _stop(self) -> None:
        await self._say("run `sleep 60`")
        await self._until(lambda: bool(self._store.running_calls))
        await self._press("escape")
        await self._idle()
        await self._station("stopped")

    async def _queue(self) -> None:
        await self._say("run `sleep 60`")
        await self._until(lambda: bool(self._store.running_calls))
        await self._press(*"list src", "enter")
        await self._press(*"read README.md", "tab")
        await self._station("queue")
        await self._press("escape")
        await self._idle()
        await self._station("returned")
        await self._press("ctrl+c")

    # ------------------------------------------------------------------ steps

    @property
    def _store(self) -> SessionStore:
        live = self._screen.live
        if live is None:
            raise RuntimeError("no session is shown")
        return live.store

    async def _station(self, name: str) -> None:
        await self._pilot.pause(0.5)
        self._seen(name, self._app)

    async def _press(self, *keys: str) -> None:
        await self._pilot.press(*keys)
        await self._pilot.pause(0.1)

    async def _say(self, text: str) -> None:
        await self._press(*text, "enter")
        await self._pilot.pause(0.3)

    async def _idle(self) -> None:
        await self._until(lambda: self._screen.live is not None and not self._store.running)

    async def _until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            await self._pilot.pause(0.05)


if __name__ == "__main__":
    asyncio.run(main())
