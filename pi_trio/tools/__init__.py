"""The tools that a coding agent works with, and where they act."""

from __future__ import annotations

from pi_trio.tool import Tool
from pi_trio.tools.bash import bash_tool
from pi_trio.tools.edit import edit_tool
from pi_trio.tools.environment import LocalEnvironment, ToolEnvironment
from pi_trio.tools.failure import ToolError
from pi_trio.tools.read import read_tool
from pi_trio.tools.write import write_tool

__all__ = [
    "LocalEnvironment",
    "ToolEnvironment",
    "ToolError",
    "bash_tool",
    "coding_tools",
    "edit_tool",
    "read_tool",
    "write_tool",
]


def coding_tools(environment: ToolEnvironment) -> list[Tool]:
    """The tools that are on from the start, all acting in `environment`."""
    return [read_tool(environment), bash_tool(environment), edit_tool(environment), write_tool(environment)]
