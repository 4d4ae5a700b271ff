"""The write tool: a file's whole content."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pi_trio.tool import OnUpdate, Tool, ToolResult
from pi_trio.tools.changes import touched
from pi_trio.tools.environment import ToolEnvironment
from pi_trio.tools.failure import ToolError

__all__ = ["write_tool"]

_DESCRIPTION = (
    "Make a file with the given content, or replace all of an existing one. Missing folders are made. "
    "Refused if the file was changed by somebody else after you read it."
)

_PARAMETERS = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "The file, relative to the working directory or absolute"},
        "content": {"type": "string", "description": "All that will be in it"},
    },
    "required": ["path", "content"],
}


def write_tool(environment: ToolEnvironment) -> Tool:
    """Writes files of `environment`."""

    async def execute(call_id: str, args: Mapping[str, Any], on_update: OnUpdate) -> ToolResult:
        path = args["path"]
        try:
            data = args["content"].encode()
        except UnicodeEncodeError:
            raise ToolError(
                "The content contains half of a surrogate pair, which no file can hold."
            ) from None
        target = await environment.place(path)
        async with environment.changing(target):
            await environment.check_unchanged(target)
            before = await environment.digest(target)
            after = await environment.write(target, data)
        return ToolResult(f"Successfully wrote to {path}", touched(target, before, after))

    return Tool(
        name="write",
        description=_DESCRIPTION,
        parameters=_PARAMETERS,
        execute=execute,
        prompt_snippet="Make a file, or replace all of one",
        prompt_guidelines=("Use write for new files and complete rewrites only.",),
    )
