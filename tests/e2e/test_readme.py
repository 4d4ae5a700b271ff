"""What the README shows is what happens."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from pi_trio import Agent, AgentEvent, MessageEnd, function_tool
from pi_trio.loop.grammar import State, check_events

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def test_the_example_runs(tmp_path: Path) -> None:
    (example,) = _blocks("python")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", example],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (done.returncode, done.stderr) == (0, "")
    *events, answer = done.stdout.splitlines()
    assert (events[0], events[-1]) == ("agent_start", "agent_settled")
    assert "tool_execution_end" in events
    assert answer == "Take an umbrella."


async def test_the_example_can_be_cancelled_from_outside() -> None:
    (example,) = _blocks("python")
    events: list[AgentEvent] = []

    class Watched(Agent):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self.subscribe(events.append)

    @function_tool(name="weather")
    async def stuck(city: str) -> None:
        """Never says anything."""
        await trio.sleep_forever()

    names: dict[str, Any] = {}
    exec(example.removesuffix("trio.run(main)\n"), names)
    names.update(Agent=Watched, weather=stuck, print=lambda line: None)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(names["main"])
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert check_events(events) is State.IDLE
    assert [event.message.role for event in events if isinstance(event, MessageEnd)] == [
        "user",
        "assistant",
        "toolResult",
    ]


def test_the_first_two_commands_are_the_screen_and_the_tests() -> None:
    start, test = _blocks("sh")[:2]
    for command, end in ((start, ".venv/bin/pi-tui --demo\n"), (test, ".venv/bin/pytest -q\n")):
        assert command.count("\n") == 1
        assert command.startswith("python3 -m venv .venv && ")
        assert command.endswith(end)


@pytest.mark.parametrize("link", re.findall(r"\]\((?!http)([^)#]+)", README))
def test_links_lead_to_files(link: str) -> None:
    assert (ROOT / link).is_file()
