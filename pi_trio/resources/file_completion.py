"""Files by parts of their names, for the `@` of a prompt. Ripgrep lists them, without ignored ones."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from heapq import nsmallest
from pathlib import Path

import trio

from pi_trio.errors import UsageError
from pi_trio.tools.failure import ToolError
from pi_trio.tools.ripgrep import run_ripgrep

__all__ = ["FileCompletion", "best_files"]

SHOWN = 20
MOST_FILES = 50_000
"""Files that are looked through; a folder with more than these is no project."""

FRESH = 5.0
"""Seconds after which the files are listed anew."""

_ARGUMENTS = ("--files", "--hidden", "--null", "--no-require-git", "--glob=!.git", "./")


class FileCompletion:
    """The files of one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._paths: Sequence[str] = ()
        self._listed = float("-inf")
        self._listing = trio.Lock()

    async def complete(self, word: str) -> list[str]:
        """The paths that a word may mean, the likeliest first. Raises `UsageError`."""
        async with self._listing:
            if time.monotonic() - self._listed > FRESH:
                self._paths = await self._list()
                self._listed = time.monotonic()
        return await trio.to_thread.run_sync(best_files, word, self._paths)

    async def _list(self) -> list[str]:
        rest, files = b"", list[str]()
        try:
            async with run_ripgrep(_ARGUMENTS, self._folder, os.environ) as search:
                while len(files) < MOST_FILES and (chunk := await search.receive()):
                    *names, rest = (rest + chunk).split(b"\0")
                    files += (os.fsdecode(name).removeprefix("./") for name in names)
        except ToolError as error:
            raise UsageError(str(error)) from error
        return [*files, *_folders(files)]


def best_files(word: str, paths: Iterable[str], most: int = SHOWN) -> list[str]:
    """The paths that have the letters of `word` in this order; whole names first, then shorter paths."""
    wanted = word.lower()
    rated = ((rating, path) for path in paths if (rating := _rating(wanted, path)) is not None)
    return [path for _, path in nsmallest(most, rated)]


def _rating(wanted: str, path: str) -> tuple[int, int] | None:
    """How well a path fits, less being better; None if it does not."""
    lower = path.lower()
    depth = lower.count("/", 0, len(lower) - 1)
    if not wanted:
        return depth, len(path)
    name = lower.rstrip("/").rpartition("/")[2]
    if name == wanted or lower == wanted:
        kind = 0
    elif name.startswith(wanted) or lower.startswith(wanted):
        kind = 1
    elif wanted in name:
        kind = 2
    elif wanted in lower:
        kind = 3
    elif _in_order(wanted, lower):
        kind = 4
    else:
        return None
    return kind, len(path)


def _in_order(wanted: str, text: str) -> bool:
    at = -1
    return all((at := text.find(letter, at + 1)) >= 0 for letter in wanted)


def _folders(files: Iterable[str]) -> Iterator[str]:
    known = {""}
    for file in files:
        folder = file.rpartition("/")[0]
        while folder not in known:
            known.add(folder)
            yield f"{folder}/"
            folder = folder.rpartition("/")[0]
