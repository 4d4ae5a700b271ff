"""What docs/rpc.md shows is what happens."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from pi_trio.remote.rpc.commands import COMMANDS

PAGE = (Path(__file__).parents[2] / "docs" / "rpc.md").read_text("utf-8")


def test_the_client_runs(program) -> None:
    (client,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    path = f"{Path(sys.executable).parent}:{program.environ['PATH']}"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", client],
        cwd=program.project,
        env={**program.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip()


def test_every_command_and_field_is_told() -> None:
    rows = dict(re.findall(r"^\| (`.*?`) \| (.*?) \|", PAGE, re.MULTILINE))
    told = {name: fields for names, fields in rows.items() for name in re.findall(r"`(\w+)`", names)}
    assert told.keys() == COMMANDS.keys()
    for name, command in COMMANDS.items():
        expected = {each.name: each.required for each in command.parameters if each.name != "id"}
        found = re.findall(r"`(\w+)`(\??)", told[name])
        assert {field: not mark for field, mark in found if field in expected} == expected, name
