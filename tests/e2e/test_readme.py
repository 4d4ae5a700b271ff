"""What the README shows is what happens."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

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


def test_the_first_two_commands_are_the_screen_and_the_tests() -> None:
    start, test = _blocks("sh")[:2]
    for command, end in ((start, ".venv/bin/pi-tui --demo\n"), (test, ".venv/bin/pytest -q\n")):
        assert command.count("\n") == 1
        assert command.startswith("python3 -m venv .venv && ")
        assert command.endswith(end)


@pytest.mark.parametrize("link", re.findall(r"\]\((?!http)([^)#]+)", README))
def test_links_lead_to_files(link: str) -> None:
    assert (ROOT / link).is_file()
