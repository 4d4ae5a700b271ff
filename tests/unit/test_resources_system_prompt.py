"""The sections of the system prompt."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pi_trio.resources.context_files import ContextFile
from pi_trio.resources.system_prompt import build_system_prompt, join_sections
from pi_trio.tool import OnUpdate, Tool, ToolResult

TODAY = datetime.date(2030, 1, 2)


async def _nothing(call_id: str, args: Mapping[str, Any], on_update: OnUpdate) -> ToolResult:
    return ToolResult("")


def _tool(name: str, **options: Any) -> Tool:
    return Tool(name=name, description="First.\nMore.", parameters={}, execute=_nothing, **options)


def test_sections_are_named_ordered_and_wrapped() -> None:
    files = [ContextFile(Path("/p/AGENTS.md"), "Use tabs. ${HOME} {x} %s")]
    sections = build_system_prompt([_tool("look")], files, Path("/p"), TODAY)
    assert list(sections) == ["preamble", "tools", "rules", "project_context", "cwd"]
    assert sections["tools"] == "<tools>\n- look: First.\n</tools>"
    assert sections["cwd"] == "<cwd>\nWorking directory: /p\nDate: 2030-01-02\n</cwd>"
    assert '<file path="/p/AGENTS.md">\nUse tabs. ${HOME} {x} %s\n</file>' in sections["project_context"]
    assert not sections["preamble"].startswith("<")


def test_empty_sections_are_left_out() -> None:
    assert list(build_system_prompt([], [], Path("/"), TODAY)) == ["preamble", "rules", "cwd"]


def test_tools_bring_their_line_and_their_rules_once() -> None:
    guideline = ("Prefer look to cat.",)
    tools = [
        _tool("a", prompt_snippet="does a", prompt_guidelines=guideline),
        _tool("b", prompt_guidelines=guideline),
    ]
    sections = build_system_prompt(tools, [], Path("/"), TODAY)
    assert "- a: does a\n- b: First." in sections["tools"]
    assert sections["rules"].count("Prefer look to cat.") == 1


def test_sections_are_joined_by_an_empty_line() -> None:
    assert join_sections({"preamble": "A", "gone": None, "rules": "B"}) == "A\n\nB"
