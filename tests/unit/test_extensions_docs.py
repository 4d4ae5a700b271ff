"""The page about extensions: its sample works, and its table is what there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pi_trio.extensions.api import ExtensionApi
from pi_trio.harness import extension_host
from pi_trio.harness.points import POINTS, Waterfall
from pi_trio.harness.runtime import open_runtime
from pi_trio.llm import demo
from pi_trio.resources.config import RuntimeConfig

PAGE = (Path(__file__).parents[2] / "docs" / "extensions.md").read_text("utf-8")


def _rows(heading: str) -> dict[str, str]:
    """The first column of a section's table, without what is no name, and the rest of each row."""
    section = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return dict(re.findall(r"^\| `([\w/-]+)[^`]*` \|(.*)$", section, re.MULTILINE))


def test_every_hook_point_has_its_row() -> None:
    rows = _rows("Hook points")
    assert set(rows) == extension_host._POINTS | set(POINTS)
    wrapping = {name for name, row in rows.items() if "`next`" in row}
    assert wrapping == {name for name, point in POINTS.items() if isinstance(point, Waterfall)}
    assert {"agent_start", "message_end", "tool_execution_end"} <= extension_host._EVENTS


def test_every_call_has_its_row() -> None:
    public = {name for name in vars(ExtensionApi) if not name.startswith("_")}
    assert set(_rows("The api")) == public - {"on", "start", "unload", "run_command"}


async def test_the_sample_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "DELTA_INTERVAL", 0.0)
    folder = tmp_path / "agent" / "extensions"
    folder.mkdir(parents=True)
    (folder / "sample.py").write_text(PAGE.partition("```python\n")[2].partition("```")[0])
    async with open_runtime(RuntimeConfig(cwd=tmp_path, agent_dir=tmp_path / "agent", demo=True)) as runtime:
        snapshot = await runtime.new_session()
        session_id = snapshot.session.id
        assert snapshot.findings == ()
        assert await runtime.run_command(session_id, "mark", "here") == "Marked: here"
        assert await runtime.renderers(session_id) == {"mark": "== {text} =="}
        await runtime.prompt(session_id, "run `git push --force`")
        await runtime.wait_for_idle(session_id)
        heads = (await runtime.snapshot(session_id)).heads
        bodies = await runtime.entries(session_id, [head.id for head in heads if head.detail == "toolResult"])
        assert "Never force a push here." in str(bodies)
        assert "roll" in [tool.name for tool in runtime._open(session_id).harness.options.tools]
