"""The read tool: lines of a text file, or an image."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import trio
from attrs import evolve

from pi_trio.images import ImageHeader, read_header
from pi_trio.messages import TextContent
from pi_trio.tool import OnUpdate, Tool, ToolResult
from pi_trio.tools.changes import touched
from pi_trio.tools.environment import ReadableFile, ToolEnvironment
from pi_trio.tools.failure import ToolError
from pi_trio.tools.picture import check_openable, picture
from pi_trio.tools.truncate import MAX_BYTES, MAX_LINES, Truncation, format_size, truncate_head
from pi_trio.tools.window import Window

__all__ = ["read_tool"]

_CHUNK = 1 << 20
_COUNTED_BYTES = 16 << 20
"""Larger files are read only as far as they are shown, so their lines are not counted."""

_KINDS = {
    b"\x7fELF": "a program",
    b"\xcf\xfa\xed\xfe": "a program",
    b"PK\x03\x04": "a ZIP archive",
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"\x28\xb5\x2f\xfd": "Zstandard",
    b"%PDF": "a PDF document",
    b"SQLite format 3": "an SQLite database",
}

_DESCRIPTION = (
    f"Read a file: the lines of a text file, or an image (PNG, JPEG, GIF, WebP, BMP). At most {MAX_LINES} "
    f"lines or {format_size(MAX_BYTES)} come at once, whichever is less; a note at the end says how to go "
    "on. "
    "Binary files are described, not shown."
)

_PARAMETERS = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "The file, relative to the working directory or absolute"},
        "offset": {"type": "integer", "minimum": 1, "description": "The first line, counted from 1"},
        "limit": {"type": "integer", "minimum": 1, "description": "How many lines"},
    },
    "required": ["path"],
}


def read_tool(environment: ToolEnvironment) -> Tool:
    """Reads files of `environment`."""

    async def execute(call_id: str, args: Mapping[str, Any], on_update: OnUpdate) -> ToolResult:
        path = args["path"]
        async with environment.open(path) as file:
            head = await file.read(_CHUNK)
            header = read_header(head)
            if header is not None:
                return await _read_image(path, header, head, file)
            window = Window(int(args.get("offset", 1)), args.get("limit"))
            await _scan(window, head, file)
            if window.binary:
                return ToolResult(f"{path} is {_kind(head)} of {format_size(file.size)}, which is not shown.")
            return _text_result(path, window, file)

    return Tool(
        name="read",
        description=_DESCRIPTION,
        parameters=_PARAMETERS,
        execute=execute,
        prompt_snippet="Show the lines of a file, or an image",
        prompt_guidelines=("Look at files with read rather than with cat or sed.",),
    )


# ---------------------------------------------------------------- text


async def _scan(window: Window, head: bytes, file: ReadableFile) -> None:
    """Read what is wanted, and all of the file unless it is large: then its lines stay uncounted."""
    chunk = head
    while chunk and not window.binary:
        window.feed(chunk)
        if len(chunk) < _CHUNK or (file.size > _COUNTED_BYTES and window.full):
            break  # less than was asked for: that was the end
        chunk = await file.read(_CHUNK)


def _kind(head: bytes) -> str:
    """What a binary file is, by its first bytes."""
    named = next((kind for start, kind in _KINDS.items() if head.startswith(start)), None)
    return f"a binary file ({named})" if named else "a binary file"


def _text_result(path: str, window: Window, file: ReadableFile) -> ToolResult:
    if window.total_lines < window.first and window.first > 1:
        lines = f"{window.total_lines} lines total"
        raise ToolError(f"Offset {window.first} is beyond end of file ({lines})")
    part = truncate_head(window.decoded())
    notes = _notes(path, window, part, file)
    digest = file.sha256 if window.taken >= file.size else None
    details = touched(file.path, digest, digest)
    if part.truncated:
        whole = evolve(part, total_lines=window.lines, total_bytes=window.size)
        details["truncation"] = whole.details()
    content = part.content or ("" if notes else "(empty file)")
    return ToolResult(
        "\n\n".join(filter(None, [content.rstrip("\n") if notes else content, *notes])), details
    )


def _notes(path: str, window: Window, part: Truncation, file: ReadableFile) -> list[str]:
    """What the model must know beside the lines, and how it gets at the rest."""
    found = file.path
    as_asked = found.name in (Path(path).name, Path(path.removeprefix("@")).name)
    notes = [] if as_asked else [f"[The file is named {found.name!r}.]"]
    if window.encoding != "UTF-8":
        notes.append(f"[Not UTF-8: shown as {window.encoding}.]")
    if rest := _rest(path, window, part, file.size):
        notes.append(rest)
    return notes


def _rest(path: str, window: Window, part: Truncation, size: int) -> str | None:
    """What of the file is not shown."""
    first, total = window.first, window.total_lines
    limit = format_size(MAX_BYTES)
    last = first + part.output_lines - 1
    counted = window.taken >= size
    if part.first_line_exceeds_limit:
        line = f"{'' if counted else 'more than '}{format_size(window.first_line_size)}"
        command = f"sed -n '{first}p' {shlex.quote(path)} | head -c {MAX_BYTES}"
        return f"[Line {first} is {line}, exceeds {limit} limit. Use bash: {command}]"
    if part.truncated:
        why = f" ({limit} limit)" if part.truncated_by == "bytes" else ""
        of = total if counted else f"a file of {format_size(size)}"
        return f"[Showing lines {first}-{last} of {of}{why}. Use offset={last + 1} to continue.]"
    if not counted:
        return f"[More lines in this file of {format_size(size)}. Use offset={last + 1} to continue.]"
    if last < total:
        return f"[{total - last} more lines in file. Use offset={last + 1} to continue.]"
    return None


# ---------------------------------------------------------------- images


async def _read_image(path: str, header: ImageHeader, head: bytes, file: ReadableFile) -> ToolResult:
    try:
        check_openable(header, file.size)
        data = bytearray(head)
        while chunk := await file.read(_CHUNK):
            data += chunk
        shown = await trio.to_thread.run_sync(picture, header, bytes(data))
    except ToolError as error:
        raise ToolError(f"{path}: {error}") from None
    note = TextContent("\n".join((f"Read image file [{shown.image.mime_type}]", *shown.notes)))
    return ToolResult((note, shown.image), touched(file.path, file.sha256, file.sha256))
