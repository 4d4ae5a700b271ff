"""The tools that a coding agent works with, and where they act."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from pi_trio.tool import Tool
from pi_trio.tools.bash import bash_tool
from pi_trio.tools.edit import edit_tool
from pi_trio.tools.environment import LocalEnvironment, ToolEnvironment
from pi_trio.tools.failure import ToolError
from pi_trio.tools.find import find_tool
from pi_trio.tools.grep import grep_tool
from pi_trio.tools.ls import ls_tool
from pi_trio.tools.read import read_tool
from pi_trio.tools.write import write_tool

__all__ = [
    "DEFAULT_TOOLS",
    "READING_TOOLS",
    "TOOL_NAMES",
    "LocalEnvironment",
    "ToolEnvironment",
    "ToolError",
    "bash_tool",
    "chosen_tools",
    "coding_tools",
    "edit_tool",
    "find_tool",
    "grep_tool",
    "ls_tool",
    "read_tool",
    "write_tool",
]

_TOOLS: Mapping[str, Callable[[ToolEnvironment], Tool]] = {
    "read": read_tool,
    "bash": bash_tool,
    "edit": edit_tool,
    "write": write_tool,
    "grep": grep_tool,
    "find": find_tool,
    "ls": ls_tool,
}

TOOL_NAMES = tuple(_TOOLS)

DEFAULT_TOOLS = ("read", "bash", "edit", "write")
"""The tools that are on from the start."""

READING_TOOLS = ("read", "grep", "find", "ls")
"""The tools that change nothing."""


def coding_tools(environment: ToolEnvironment, names: Iterable[str] = DEFAULT_TOOLS) -> list[Tool]:
    """The tools of these names, all acting in `environment`; unknown names are passed over."""
    return [_TOOLS[name](environment) for name in names if name in _TOOLS]


def chosen_tools(choice: Sequence[str]) -> tuple[str, ...]:
    """The names that a choice comes to: plain names, or changes of the default as `+grep` and `-bash`.

    With a plain name in it the choice begins with nothing.
    """
    plain = any(not each.startswith(("+", "-")) for each in choice)
    names = dict.fromkeys(() if plain else DEFAULT_TOOLS)
    for each in choice:
        if each.startswith("-"):
            names.pop(each[1:], None)
        else:
            names[each.removeprefix("+")] = None
    return tuple(names)
