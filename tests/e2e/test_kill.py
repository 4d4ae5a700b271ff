"""`kill -9` in every phase of a turn, and what the next start makes of it."""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from session_file import check_balance, entries_of

from pi_trio.session.session import Session

PHASES = [
    "agent_start",
    "message_start",
    "auto_retry_start",
    "message_update",
    "tool_execution_start",
    "tool_execution_end",
    "compaction_start",
    "compaction_end",
    "turn_end",
    "agent_end",
]


def _script(program, stub) -> None:
    """A retry, parallel calls and a compaction before the last answer."""
    models = json.loads((program.agent_dir / "models.json").read_bytes())
    models["providers"]["stub"]["models"][0]["contextWindow"] = 20_000
    program.write("models.json", models)
    settings = {
        "defaultProvider": "stub",
        "defaultModel": "m",
        "retry": {"baseDelayMs": 50},
        "compaction": {"reserveTokens": 10_000, "keepRecentTokens": 100},
    }
    program.write("settings.json", settings)
    stub.refuses(503, "busy")
    stub.calls(("bash", {"command": "echo " + "x" * 60_000}), ("bash", {"command": "sleep 0.1"}))
    for text in ("In short: x.", "Done.", "Done."):
        stub.says(text)


@pytest.mark.parametrize("phase", PHASES)
def test_a_killed_turn_is_settled_by_the_next_start(program, stub, phase: str) -> None:
    """L43, L80: nothing acknowledged is lost, every call has its result, and work goes on."""
    _script(program, stub)
    told: list[str] = []
    with program.start("--mode", "json", "-p", "go") as process:
        for line in process.stdout:
            event = json.loads(line)
            if event["type"] == "message_end" and event["message"].get("stopReason") != "error":
                told.append(event["message"]["role"])
            if event["type"] == phase:
                break
        else:
            pytest.fail(f"there was no {phase}")
        process.kill()
        process.stdout.close()
    (path,) = Path(program.agent_dir, "sessions").rglob("*.jsonl")
    stub.forget()
    stub.says("Going on.")
    done = program.run("-c", "-p", "and now?")
    assert (done.returncode, done.stdout) == (0, "Going on.\n")
    check_balance(path)
    kept = [each["message"]["role"] for each in entries_of(path) if each["type"] == "message"]
    assert kept[: len(told)] == told
    size = path.stat().st_size
    Session.open(path).close()
    assert path.stat().st_size == size


@pytest.mark.skipif(sys.platform != "linux", reason="what a command started is found in /proc")
def test_a_killed_program_leaves_no_command_running(program, stub) -> None:
    """BA-03: not even what has a session of its own, ignores signals, or was put into the background."""
    mark = f"{os.getpid()}.{os.urandom(4).hex()}"
    program.environ["PI_TEST_MARK"] = mark
    os.mkfifo(program.project / "started")
    script = "trap '' TERM HUP; (setsid sleep 60 &) ; sleep 60 & echo > started; sleep 60"
    stub.calls(("bash", {"command": script}))
    with program.start("-p", "go") as process:
        try:
            (program.project / "started").read_text()
            assert len(carriers(mark)) >= 4  # the program, the shell, and two in the background
        finally:
            process.kill()
    deadline = time.monotonic() + 20
    while carriers(mark) and time.monotonic() < deadline:
        time.sleep(0.005)
    assert not carriers(mark)


def carriers(mark: str) -> list[str]:
    """The processes that have `mark` in their environment."""
    found = []
    for each in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # it has ended
            if mark.encode() in each.read_bytes():
                found.append(each.parent.name)
    return found
