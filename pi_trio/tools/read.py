"""The read tool: lines of a text file, or an image."""

from __future__ import annotations

import base64
import codecs
import math
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import evolve

from pi_trio.messages import ImageContent, TextContent
from pi_trio.tool import OnUpdate, Tool, ToolResult
from pi_trio.tools.environment import ReadableFile, ToolEnvironment
from pi_trio.tools.failure import ToolError
from pi_trio.tools.images import ImageHeader, is_whole, read_header
from pi_trio.tools.truncate import MAX_BYTES, MAX_LINES, Truncation, format_size, truncate_head

__all__ = ["read_tool"]

MAX_IMAGE_PIXELS = 2000
MAX_IMAGE_BYTES = 4_718_592 * 3 // 4
"""4.5 MiB as base64."""

_CHUNK = 1 << 20
_SNIFF = 8192

_DESCRIPTION = (
    f"Read a file: the lines of a text file, or an image (PNG, JPEG, GIF, WebP). At most {MAX_LINES} lines "
    f"or {format_size(MAX_BYTES)} come at once, whichever is less; a note at the end says how to go on. "
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
        found = await environment.find(path)
        async with environment.open(found) as file:
            head = await file.read(_CHUNK)
            header = read_header(head)
            if header is not None:
                return await _read_image(path, header, head, file)
            window = _Window(int(args.get("offset", 1)), args.get("limit"))
            await _scan(window, head, file)
        return _text_result(path, found, window)

    return Tool(
        name="read",
        description=_DESCRIPTION,
        parameters=_PARAMETERS,
        execute=execute,
        prompt_snippet="Show the lines of a file, or an image",
        prompt_guidelines=("Look at files with read rather than with cat or sed.",),
    )


# ---------------------------------------------------------------- text


class _Window:
    """The wanted lines of a file that comes in chunks: kept as far as they can be shown, and counted."""

    def __init__(self, first: int, limit: int | None) -> None:
        self.first = first
        self.past = math.inf if limit is None else first + int(limit)
        self.binary = False
        self.kept = bytearray()
        self.size = 0
        self.first_line_size = 0
        self._first_line_ended = False
        self._file_size = 0
        self._line_ends = 0
        self._open_line = False

    def feed(self, chunk: bytes) -> None:
        """Take in the next bytes of the file."""
        if not self._file_size:
            self.binary = b"\0" in chunk[:_SNIFF]
        start = self._offset(chunk, self.first)
        part = chunk[start : self._offset(chunk, self.past)]
        self._count_first_line(part)
        self.size += len(part)
        self.kept += part[: MAX_BYTES + 64 - len(self.kept)]  # a little more than can be shown
        self._file_size += len(chunk)
        self._line_ends += chunk.count(b"\n")
        self._open_line = not chunk.endswith(b"\n")

    @property
    def total_lines(self) -> int:
        """Lines of the whole file."""
        return self._line_ends + self._open_line

    @property
    def lines(self) -> int:
        """Wanted lines that exist."""
        return int(min(self.total_lines + 1, self.past)) - self.first

    def decoded(self) -> tuple[str, bool]:
        """What was kept, and whether it is UTF-8; else it is taken for Latin-1."""
        whole = self.size == len(self.kept)
        try:
            text = codecs.getincrementaldecoder("utf-8")().decode(self.kept, whole)
        except UnicodeDecodeError:
            return self.kept.decode("latin-1"), False
        return text.removeprefix("\ufeff") if self.first == 1 else text, True

    def _offset(self, chunk: bytes, line: float) -> int:
        """Where the line, counted from 1, begins in `chunk`, or the nearest end of it."""
        ends = line - 1 - self._line_ends
        if ends <= 0:
            return 0
        if ends > len(chunk) or len(pieces := chunk.split(b"\n", int(ends))) <= ends:
            return len(chunk)
        return len(chunk) - len(pieces[-1])

    def _count_first_line(self, part: bytes) -> None:
        if not self._first_line_ended:
            end = part.find(b"\n")
            self._first_line_ended = end >= 0
            self.first_line_size += end if end >= 0 else len(part)


async def _scan(window: _Window, head: bytes, file: ReadableFile) -> None:
    chunk = head
    while chunk and not window.binary:
        window.feed(chunk)
        chunk = await file.read(_CHUNK)


def _text_result(path: str, found: Path, window: _Window) -> ToolResult:
    if window.binary or b"\0" in window.kept:
        return ToolResult(
            f"{path} is a binary file, or text in UTF-16. Look into it with bash, such as with xxd or iconv."
        )
    if window.total_lines < window.first and window.first > 1:
        lines = f"{window.total_lines} lines total"
        raise ToolError(f"Offset {window.first} is beyond end of file ({lines})")
    text, is_utf8 = window.decoded()
    part = truncate_head(text)
    notes = [] if is_utf8 else ["[Not UTF-8: shown as Latin-1.]"]
    notes += _notes(path, found, window, part)
    details = None
    if part.truncated:
        whole = evolve(part, total_lines=window.lines, total_bytes=window.size)
        details = {"truncation": whole.details()}
    content = part.content or ("" if notes else "(empty file)")
    return ToolResult(
        "\n\n".join(filter(None, [content.rstrip("\n") if notes else content, *notes])), details
    )


def _notes(path: str, found: Path, window: _Window, part: Truncation) -> list[str]:
    """What the model must know beside the lines, and how it gets at the rest."""
    as_asked = found.name in (Path(path).name, Path(path.removeprefix("@")).name)
    notes = [] if as_asked else [f"[The file is named {found.name!r}.]"]
    first, total = window.first, window.total_lines
    limit = format_size(MAX_BYTES)
    last = first + part.output_lines - 1
    if part.first_line_exceeds_limit:
        size = format_size(window.first_line_size)
        command = f"sed -n '{first}p' {shlex.quote(path)} | head -c {MAX_BYTES}"
        notes.append(f"[Line {first} is {size}, exceeds {limit} limit. Use bash: {command}]")
    elif part.truncated:
        why = f" ({limit} limit)" if part.truncated_by == "bytes" else ""
        notes.append(f"[Showing lines {first}-{last} of {total}{why}. Use offset={last + 1} to continue.]")
    elif last < total:
        notes.append(f"[{total - last} more lines in file. Use offset={last + 1} to continue.]")
    return notes


# ---------------------------------------------------------------- images


async def _read_image(path: str, header: ImageHeader, head: bytes, file: ReadableFile) -> ToolResult:
    """The image as it is; one that a provider would refuse is refused here, before it is stored."""
    size = f"{header.width}×{header.height}"
    if header.mime_type == "image/bmp":
        raise ToolError(f"{path} is a BMP image of {size}. Convert it to PNG with bash to look at it.")
    if max(header.width, header.height) > MAX_IMAGE_PIXELS:
        raise ToolError(
            f"{path} is an image of {size} pixels; at most {MAX_IMAGE_PIXELS} a side can be shown. "
            "Make a smaller copy with bash to look at it."
        )
    data = bytearray(head)
    while len(data) <= MAX_IMAGE_BYTES and (chunk := await file.read(_CHUNK)):
        data += chunk
    if len(data) > MAX_IMAGE_BYTES:
        limit = format_size(MAX_IMAGE_BYTES)
        raise ToolError(
            f"{path} is an image of more than {limit}. Make a smaller copy with bash to look at it."
        )
    if not is_whole(header.mime_type, data):
        raise ToolError(f"{path} is an image that is damaged: its end is missing.")
    image = ImageContent(base64.b64encode(data).decode(), header.mime_type)
    return ToolResult((TextContent(f"Read image file [{header.mime_type}]"), image))
