"""The system prompt, as named sections in a fixed order.

The transcript keeps the sections, so a later change is stored as a patch of one section,
and a provider's cache keeps the rest. The names and the form (`<name>` … `</name>` around
all but the preamble) are pi's.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pi_trio.resources.context_files import ContextFile
from pi_trio.resources.skills import Skill, skills_section
from pi_trio.tool import Tool

__all__ = ["build_system_prompt", "join_sections"]

_PREAMBLE = """\
You are a careful software engineer who works in a terminal together with the person at the \
keyboard. You read code, run commands and change files with the tools below, in the working \
directory. What you do there is real and is not undone for you."""

_RULES = (
    "Look before you change: read the code that is there and follow its style.",
    "Do what was asked, no more; say what you noticed beside it.",
    "Check your work by running it or its tests, and say honestly what you did not check.",
    "Ask before anything that cannot be taken back, such as deleting work or publishing.",
    "Answer briefly and plainly, name files by their paths, and use no more Markdown than helps.",
)

_READERS = ("read", "bash")


def build_system_prompt(
    tools: Sequence[Tool],
    context_files: Iterable[ContextFile],
    cwd: Path,
    today: datetime.date,
    *,
    custom: str | None = None,
    addendum: str | None = None,
    skills: Sequence[Skill] = (),
) -> dict[str, str]:
    """The sections for these tools and files; empty ones are left out.

    `custom` stands in for what we say of ourselves, the tools and the rules. Skills are listed
    if there is a tool that their files can be read with.
    """
    readable = any(tool.name in _READERS for tool in tools)
    bodies = {
        "tools": "" if custom else _lines(_tool_line(tool) for tool in tools),
        "rules": "" if custom else _lines(_rules(tools)),
        "addendum": addendum,
        "project_context": "\n".join(_file_element(file) for file in context_files),
        "skills": skills_section(skills) if readable else "",
        "cwd": f"Working directory: {cwd}\nDate: {today.isoformat()}",
    }
    wrapped = {name: f"<{name}>\n{body}\n</{name}>" for name, body in bodies.items() if body}
    return {"preamble": custom or _PREAMBLE, **wrapped}


def join_sections(sections: Mapping[str, str | None]) -> str:
    """The text that is sent to a model."""
    return "\n\n".join(text for text in sections.values() if text)


def _lines(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)


def _tool_line(tool: Tool) -> str:
    first_line, *_ = tool.description.splitlines() or [""]
    return f"{tool.name}: {tool.prompt_snippet or first_line}"


def _rules(tools: Sequence[Tool]) -> Iterable[str]:
    """Ours, then those of the tools, each once."""
    return dict.fromkeys([*_RULES, *(rule for tool in tools for rule in tool.prompt_guidelines)])


def _file_element(file: ContextFile) -> str:
    path = str(file.path).replace('"', "&quot;")
    return f'<file path="{path}">\n{file.text}\n</file>'
