"""The edit tool: replace exact pieces of a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import trio

from pi_trio import codec
from pi_trio.tool import OnUpdate, Tool, ToolResult
from pi_trio.tools.changes import touched
from pi_trio.tools.diff import Diff
from pi_trio.tools.document import Document
from pi_trio.tools.environment import ToolEnvironment
from pi_trio.tools.failure import ToolError
from pi_trio.tools.matching import Edit, find_replacements
from pi_trio.tools.truncate import format_size

__all__ = ["edit_tool", "preview_edit"]

MAX_FILE_BYTES = 64 * 1024 * 1024
MAX_PATCH_CHARACTERS = 256 * 1024
"""Longer patches, which only files with very long lines have, are not kept."""

_DESCRIPTION = (
    "Replace pieces of a file. Each oldText must be in the file exactly once, blanks and line ends "
    "included, and pieces must not overlap. All of them are looked for in the file as it is now, not "
    "one after the other. Line ends and the rest of the file stay as they are."
)

_PARAMETERS = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "The file, relative to the working directory or absolute"},
        "edits": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "properties": {
                    "oldText": {
                        "type": "string",
                        "description": "What is there, enough of it to be found once",
                    },
                    "newText": {"type": "string", "description": "What takes its place"},
                },
                "required": ["oldText", "newText"],
            },
        },
    },
    "required": ["path", "edits"],
}


def edit_tool(environment: ToolEnvironment) -> Tool:
    """Edits files of `environment`."""

    async def execute(call_id: str, args: Mapping[str, Any], on_update: OnUpdate) -> ToolResult:
        path, edits = args["path"], _edits(args)
        target = await environment.find(path)
        async with environment.changing(target):
            before, digest = await _read(environment, target, path)
            after, details = await trio.to_thread.run_sync(_edited, before, edits, path)
            details |= touched(target, digest, await environment.write(target, after))
        return ToolResult(f"Successfully replaced {len(edits)} block(s) in {path}.", details)

    return Tool(
        name="edit",
        description=_DESCRIPTION,
        parameters=_PARAMETERS,
        execute=execute,
        prepare_arguments=_repaired,
        prompt_snippet="Replace exact pieces of a file",
        prompt_guidelines=(
            "Make all changes of one file in one edit call, each with the least oldText that is found once.",
        ),
    )


async def preview_edit(environment: ToolEnvironment, args: Mapping[str, Any]) -> str:
    """The diff that a call with these arguments would make now. Raises `ToolError` as the call would."""
    target = await environment.find(args["path"])
    before, _ = await _read(environment, target, args["path"])
    _, details = await trio.to_thread.run_sync(_edited, before, _edits(args), args["path"])
    return str(details["diff"])


def _edits(args: Mapping[str, Any]) -> list[Edit]:
    return [Edit(each["oldText"], each["newText"]) for each in args["edits"]]


def _repaired(args: Mapping[str, Any]) -> Mapping[str, Any]:
    """Edits as JSON text, a single edit, or the texts beside the path, as models send them."""
    edits = args.get("edits")
    if isinstance(edits, str):
        try:
            edits = codec.loads(edits)
        except ValueError:
            return args
    if isinstance(edits, Mapping):
        edits = [edits]
    if edits is None and "oldText" in args and "newText" in args:
        edits = [{"oldText": args["oldText"], "newText": args["newText"]}]
    rest = {name: value for name, value in args.items() if name not in ("edits", "oldText", "newText")}
    return args if edits is None else {**rest, "edits": edits}


async def _read(environment: ToolEnvironment, target: Path, path: str) -> tuple[bytes, str]:
    """The file's content and its digest."""
    data = bytearray()
    async with environment.open(target) as file:
        while chunk := await file.read(1 << 20):
            data += chunk
            if len(data) > MAX_FILE_BYTES:
                raise ToolError(f"{path} is larger than {format_size(MAX_FILE_BYTES)}: change it with bash.")
        return bytes(data), file.sha256


def _edited(before: bytes, edits: Sequence[Edit], path: str) -> tuple[bytes, dict[str, Any]]:
    """The file after the edits, and the details of the result."""
    document = Document.parse(before, path)
    replacements = find_replacements(document.text, edits, path)
    diff = Diff.of(document.text, replacements)
    details = {"diff": diff.display(), "firstChangedLine": diff.first_changed_line}
    patch = diff.patch(path)
    if len(patch) <= MAX_PATCH_CHARACTERS:
        details["patch"] = patch
    return document.replaced(replacements), details
