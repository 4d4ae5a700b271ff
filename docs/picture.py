"""Draws docs/screen.svg: the real program on the demo model, in a folder made for the picture.

.venv/bin/python docs/picture.py
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
from pi_tui.theme import bundled_folder, load_theme

SIZE = (120, 34)
PICTURE = Path(__file__).with_name("screen.svg")


async def main() -> None:
    """Talk to the program as a person would, then take its picture while it works."""
    terminal.install()
    with tempfile.TemporaryDirectory() as place:
        project = Path(place) / "garden"
        (project / "src").mkdir(parents=True)
        (project / "README.md").write_text("# Garden\n\nWaters the plants when it is dry.\n")
        (project / "src" / "water.py").write_text(
            "def water(days_dry: int) -> bool:\n    return days_dry > 2\n"
        )
        os.chdir(project)
        config = RuntimeConfig(cwd=project, agent_dir=Path(place) / "agent", demo=True)

        @asynccontextmanager
        async def opened() -> AsyncIterator[LocalRuntime]:
            async with open_runtime(config) as runtime:
                yield runtime

        app = PiApp(opened, lambda runtime: runtime.new_session(), load_theme("dark", [bundled_folder()]))
        async with app.run_test(size=SIZE) as pilot:
            await _converse(app, pilot)
            PICTURE.write_text(app.export_screenshot(title="pi-tui"))
        await app.stop_runtime()


async def _converse(app: PiApp, pilot: Pilot[None]) -> None:
    screen = app.get_default_screen()
    await _say(screen, pilot, "read README.md and list src")
    await _say(screen, pilot, "in src/water.py replace > 2 by > 3")
    await pilot.press("ctrl+t", "up", "down", "b")
    await pilot.pause(0.5)
    await pilot.press("ctrl+a", "ctrl+k")
    await _say(screen, pilot, "in src/water.py replace > 3 by >= 3")
    await _say(screen, pilot, "run `for i in 1 2 3 4 5; do echo test $i passed; sleep 0.6; done`", wait=False)
    await pilot.pause(2)


async def _say(screen: MainScreen, pilot: Pilot[None], text: str, *, wait: bool = True) -> None:
    await _until(pilot, lambda: screen.live is not None and not screen.live.store.running)
    await pilot.press(*text, "enter")
    await pilot.pause(0.3)
    if wait:
        await _until(pilot, lambda: screen.live is not None and not screen.live.store.running)


async def _until(pilot: Pilot[None], holds: Callable[[], bool]) -> None:
    while not holds():
        await pilot.pause(0.05)


if __name__ == "__main__":
    asyncio.run(main())
