"""The grep tool: lines that match a pattern."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import define, field

from pi_trio.tool import OnUpdate, Tool, ToolResult
from pi_trio.tools.environment import ToolEnvironment
from pi_trio.tools.failure import check_text
from pi_trio.tools.listing import chosen_limit, listing, shown_name
from pi_trio.tools.secrets import is_secret, leave_secrets_out
from pi_trio.tools.truncate import MAX_BYTES, MAX_LINE_CHARACTERS, cut_line, format_size

__all__ = ["grep_tool"]

LIMIT = 100
MOST = 10_000
MAX_CONTEXT = 1000
MAX_COLUMNS = 4 * MAX_LINE_CHARACTERS + 64
"""Bytes of a line that ripgrep hands over: more than can be shown, whatever the letters."""

_DESCRIPTION = (
    "Search files for a regular expression (Rust's syntax) with ripgrep. Gives `file:line: text`, and "
    "`file-line- text` for context. Hidden files are searched, ignored ones (.gitignore) are not, nor files "
    f"that keep secrets, unless one is named as the path. At most {LIMIT} matches or "
    f"{format_size(MAX_BYTES)} come at once; lines are cut at {MAX_LINE_CHARACTERS} characters."
)

_PARAMETERS = {
    "type": "object",
    "properties": {
        "pattern": {"type": "string", "description": "What to look for"},
        "path": {"type": "string", "description": "The folder or file to search; the working directory"},
        "glob": {"type": "string", "description": "Search only these files, such as '*.ts' or 'src/**/*.py'"},
        "ignoreCase": {"type": "boolean", "description": "Take capital and small letters for the same"},
        "literal": {"type": "boolean", "description": "The pattern is plain text"},
        "context": {"type": "number", "description": "How many lines to show around each match"},
        "limit": {"type": "number", "description": f"How many matches; {LIMIT} if not given"},
    },
    "required": ["pattern"],
}


def grep_tool(environment: ToolEnvironment) -> Tool:
    """Searches files of `environment`."""

    async def execute(call_id: str, args: Mapping[str, Any], on_update: OnUpdate) -> ToolResult:
        place = await environment.find(args.get("path") or ".")
        is_folder = await environment.is_folder(place)
        limit = chosen_limit(args.get("limit"), LIMIT, MOST)
        context = min(max(0, int(args.get("context") or 0)), MAX_CONTEXT)
        arguments = [*_arguments(args, context, limit), *_where(place, is_folder)]
        found = _Found(limit, context)
        async with environment.search(arguments, place if is_folder else place.parent) as search:
            while not found.full and (chunk := await search.receive()):
                found.feed(chunk)
        return found.result()

    return Tool(
        name="grep",
        description=_DESCRIPTION,
        parameters=_PARAMETERS,
        execute=execute,
        prompt_snippet="Search the content of files",
        prompt_guidelines=(
            "Search with grep and find rather than with bash: they are quick and skip ignored files.",
        ),
    )


def _arguments(args: Mapping[str, Any], context: int, limit: int) -> list[str]:
    for name in ("pattern", "glob"):
        check_text(args.get(name) or "", name)
    arguments = [
        "--line-number",
        "--with-filename",
        "--no-heading",
        "--null",  # the one character that no name contains, between name and line
        "--no-context-separator",
        "--hidden",
        f"--max-count={limit + 1}",
        f"--max-columns={MAX_COLUMNS}",
        "--max-columns-preview",
        f"--context={context}",
    ]
    if args.get("ignoreCase"):
        arguments.append("--ignore-case")
    if args.get("literal"):
        arguments.append("--fixed-strings")
    if glob := args.get("glob"):
        arguments.append(f"--glob={glob.removeprefix('./')}")
    return [*arguments, f"--regexp={args['pattern']}"]


def _where(place: Path, is_folder: bool) -> list[str]:
    if not is_folder:
        return ["--", f"./{place.name}"]
    return ["--glob=!.git", *([] if is_secret(place) else leave_secrets_out()), "./"]


_LINE = re.compile(rb"(?P<file>[^\0]+)\0(?P<number>\d+)(?P<kind>[:-])(?P<text>[^\n]*)\n")

_BINARY = re.compile(rb"^.*: binary file matches \(found .*\)\n")
"""Said without a name before it, where a match is followed by a NUL."""


@define
class _Found:
    """Matches with their context, up to the limit. There may be thousands: each costs little."""

    _limit: int
    _context: int
    full: bool = False
    _count: int = 0
    _cut: bool = False
    _rest: bytearray = field(factory=bytearray)
    _files: dict[bytes, tuple[str, list[str]]] = field(factory=dict)
    _last: tuple[bytes, int] = (b"", 0)

    def feed(self, chunk: bytes) -> None:
        """Take in the next bytes of ripgrep's output."""
        self._rest += chunk
        end = 0
        for match in _LINE.finditer(self._rest):
            file, number, kind, text = match.groups()
            if b"\n" in file:
                file = _BINARY.sub(b"", file)
            matches = kind == b":"
            if self._count == self._limit:
                if not self._is_after_the_last(file, number):  # a further match, or the context before it
                    self.full = True
                    return
                matches = False
            if matches:
                self._count += 1
                self._last = file, int(number)
            self._add(file, number, ":" if matches else "-", text)
            end = match.end()
        del self._rest[:end]

    def _is_after_the_last(self, file: bytes, number: bytes) -> bool:
        last_file, last_number = self._last
        return file == last_file and int(number) <= last_number + self._context

    def _add(self, file: bytes, number: bytes, mark: str, text: bytes) -> None:
        found = self._files.get(file)
        if found is None:
            found = self._files[file] = shown_name(file.removeprefix(b"./")), []
        name, lines = found
        whole = text.decode("utf-8", "replace").removesuffix("\r")
        shown = cut_line(whole)
        self._cut = self._cut or shown is not whole
        lines.append(f"{name}{mark}{number.decode()}{mark} {shown}")

    def result(self) -> ToolResult:
        """What was found, file by file; ripgrep itself hands files over as its threads end."""
        more, cut = "", ""
        details: dict[str, Any] = {}
        if self.full:
            reached = f"{self._limit} matches limit reached"
            more = f"{reached}. Use limit={2 * self._limit} for more, or refine pattern"
            details["matchLimitReached"] = self._limit
        if self._cut:
            cut = f"Some lines truncated to {MAX_LINE_CHARACTERS} chars. Use read tool to see full lines"
            details["linesTruncated"] = True
        lines = [line for file in sorted(self._files) for line in self._files[file][1]]
        if self._rest and not self.full:  # what it says of a binary file
            lines.append(self._rest.decode("utf-8", "replace").strip().removeprefix("./"))
        return listing(lines, details, empty="No matches found", more=more, cut=cut)
