"""docs/lifecycle.md: its diagram is a recorded run, its tables name all that there is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from harness_bench import Bench, open_bench

from pi_trio.events import AgentEvent
from pi_trio.harness.points import POINTS
from pi_trio.loop.driver import TurnEndReason
from pi_trio.session import facts
from pi_trio.session.repository import SessionRepository
from pi_trio.testing import Call

PAGE = Path(__file__).parents[2] / "docs" / "lifecycle.md"
SKIPPED = {"queue_update", "message_update", "entry_appended"}


async def _recorded(tmp_path: Path) -> list[tuple[str, str]]:
    """(who is told, what) of a run with one tool call, in the order in which it happened."""
    trace: list[tuple[str, str]] = []
    session = SessionRepository(tmp_path / "agent", tmp_path).create()

    def listen(event: AgentEvent) -> None:
        if event.type not in SKIPPED:
            trace.append(("Listeners", event.type))

    async with open_bench(session, Call("echo"), "done") as bench:
        tell = session.on_append

        def written(entry: Mapping[str, Any]) -> None:
            trace.append(("File", _entry_name(entry)))
            if tell is not None:
                tell(entry)

        session.on_append = written
        bench.harness.hub.subscribe(listen)
        for name, point in POINTS.items():
            bench.harness.handlers.add(name, _noting(trace, name, bench))
            assert point.name == name
        await bench.say("go")
    return trace


def _noting(trace: list[tuple[str, str]], name: str, bench: Bench) -> Any:
    async def waterfall(context: Any, following: Any = None) -> Any:
        trace.append(("Handlers", name))
        return await following(context) if following is not None else None

    return waterfall


def _entry_name(entry: Mapping[str, Any]) -> str:
    if entry["type"] == "message":
        return f"message ({entry['message']['role']})"
    return str(entry.get("customType") or entry["type"])


def _diagram(trace: list[tuple[str, str]]) -> str:
    lines = ["sequenceDiagram", "    participant Driver"]
    lines += [f"    participant {name}" for name in ("Handlers", "File", "Listeners")]
    lines += [f"    Driver->>{who}: {what}" for who, what in trace]
    return "\n".join(lines)


async def test_the_diagram_is_what_happens(tmp_path: Path) -> None:
    (shown,) = re.findall(r"```mermaid\n(.*?)\n```", PAGE.read_text("utf-8"), re.DOTALL)
    assert shown == _diagram(await _recorded(tmp_path))


def _first_column(title: str) -> set[str]:
    section = PAGE.read_text("utf-8").split(f"## {title}\n")[1].split("\n## ")[0]
    return set(re.findall(r"^\| `([^`]+)`", section, re.MULTILINE))


def test_every_fact_point_and_reason_is_explained() -> None:
    names = {value for key, value in vars(facts).items() if key.isupper() and isinstance(value, str)}
    assert _first_column("Facts") == names
    assert _first_column("Points") == set(POINTS)
    assert _first_column("How a turn ends") == {*get_args(TurnEndReason), "interrupted"}
