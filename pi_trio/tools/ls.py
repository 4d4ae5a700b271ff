"""The ls tool: what is in a folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pi_trio.tool import OnUpdate, Tool, ToolResult
from pi_trio.tools.environment import ToolEnvironment
from pi_trio.tools.listing import chosen_limit, listing, shown_name
from pi_trio.tools.truncate import MAX_BYTES, format_size

__all__ = ["ls_tool"]

LIMIT = 500
MOST = 100_000

_DESCRIPTION = (
    "List what is in a folder, hidden files too, sorted by name; folders end in '/'. "
    f"At most {LIMIT} names or {format_size(MAX_BYTES)} come at once."
)

_PARAMETERS = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "The folder; the working directory"},
        "limit": {"type": "number", "description": f"How many names; {LIMIT} if not given"},
    },
}


def ls_tool(environment: ToolEnvironment) -> Tool:
    """Lists folders of `environment`."""

    async def execute(call_id: str, args: Mapping[str, Any], on_update: OnUpdate) -> ToolResult:
        limit = chosen_limit(args.get("limit"), LIMIT, MOST)
        folder = await environment.find(args.get("path") or ".")
        names = sorted(await environment.list_folder(folder), key=lambda name: (name.lower(), name))
        more = ""
        details: dict[str, Any] = {}
        if len(names) > limit:
            more = f"{limit} entries limit reached. Use limit={2 * limit} for more"
            details["entryLimitReached"] = limit
        lines = [shown_name(name) for name in names[:limit]]
        return listing(lines, details, empty="(empty directory)", more=more)

    return Tool(
        name="ls",
        description=_DESCRIPTION,
        parameters=_PARAMETERS,
        execute=execute,
        prompt_snippet="List a folder",
    )
