"""The find tool: files and folders by their names."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pi_trio.tool import OnUpdate, Tool, ToolResult
from pi_trio.tools.environment import ToolEnvironment
from pi_trio.tools.failure import ToolError, check_text
from pi_trio.tools.globs import Glob
from pi_trio.tools.listing import chosen_limit, listing, shown_name
from pi_trio.tools.truncate import MAX_BYTES, format_size

__all__ = ["find_tool"]

LIMIT = 1000
MOST = 100_000

_DESCRIPTION = (
    "Find files and folders by a glob: '*.py' for names at any depth, 'src/**/*.py' from the searched "
    "folder on. Gives paths relative to that folder; folders end in '/'. Hidden files are found, ignored "
    f"ones (.gitignore) are not. At most {LIMIT} paths or {format_size(MAX_BYTES)} come at once."
)

_PARAMETERS = {
    "type": "object",
    "properties": {
        "pattern": {
            "type": "string",
            "description": "The glob; in small letters it matches capital ones too",
        },
        "path": {"type": "string", "description": "The folder to search; the working directory"},
        "limit": {"type": "number", "description": f"How many paths; {LIMIT} if not given"},
    },
    "required": ["pattern"],
}

_ALL_FILES = ("--files", "--hidden", "--null", "--no-require-git", "--glob=!.git", "./")


def find_tool(environment: ToolEnvironment) -> Tool:
    """Finds files of `environment`."""

    async def execute(call_id: str, args: Mapping[str, Any], on_update: OnUpdate) -> ToolResult:
        folder = await environment.find(args.get("path") or ".")
        if not await environment.is_folder(folder):
            raise ToolError(f"{folder} is not a folder.")
        limit = chosen_limit(args.get("limit"), LIMIT, MOST)
        found = _Found(Glob(_relative(args["pattern"], folder)), limit)
        async with environment.search(_ALL_FILES, folder) as search:
            while not found.full and (chunk := await search.receive()):
                found.feed(chunk)
        if not found.full:
            found.add_unlisted(await environment.unlisted(folder, found.folders))
        return found.result()

    return Tool(
        name="find",
        description=_DESCRIPTION,
        parameters=_PARAMETERS,
        execute=execute,
        prompt_snippet="Find files by name",
    )


def _relative(pattern: str, folder: Path) -> str:
    """The pattern as it is for paths below `folder`."""
    check_text(pattern, "pattern")
    if not pattern:
        raise ToolError("The pattern is empty.")
    if pattern.startswith("/"):
        inside = pattern.removeprefix(f"{folder}/")
        if inside == pattern:
            raise ToolError(f"The pattern is for another folder than {folder}: give that one as the path.")
        return f"./{inside}"
    return pattern


class _Found:
    """Paths that match, up to the limit. Ripgrep lists files alone: folders are told from them."""

    def __init__(self, glob: Glob, limit: int) -> None:
        self.full = False
        self.folders = {b""}
        self._glob = glob
        self._limit = limit
        self._rest = b""
        self._paths: list[bytes] = []

    def feed(self, chunk: bytes) -> None:
        """Take in the next bytes of ripgrep's list."""
        *paths, self._rest = (self._rest + chunk).split(b"\0")
        for path in paths:
            path = path.removeprefix(b"./")
            for folder in self._new_folders(path):
                self._add(folder + b"/")
            self._add(path)

    def add_unlisted(self, paths: list[bytes]) -> None:
        """Take in what ripgrep passed over."""
        for path in paths:
            self._add(path)

    def _new_folders(self, path: bytes) -> Iterator[bytes]:
        while (path := path.rpartition(b"/")[0]) not in self.folders:
            self.folders.add(path)
            yield path

    def _add(self, path: bytes) -> None:
        if not self.full and self._glob.matches(os.fsdecode(path.removesuffix(b"/"))):
            if len(self._paths) == self._limit:
                self.full = True
            else:
                self._paths.append(path)

    def result(self) -> ToolResult:
        """The paths in order."""
        more = ""
        details: dict[str, Any] = {}
        if self.full:
            reached = f"{self._limit} results limit reached"
            more = f"{reached}. Use limit={2 * self._limit} for more, or refine pattern"
            details["resultLimitReached"] = self._limit
        lines = [shown_name(path) for path in sorted(self._paths)]
        return listing(lines, details, empty="No files found matching pattern", more=more)
