"""What a shell would put in the place of a word with `*`, `?` or `[…]`."""

from __future__ import annotations

import os
from fnmatch import fnmatchcase
from pathlib import Path

from pi_trio.tools.environment import ToolEnvironment
from pi_trio.tools.failure import ToolError

__all__ = ["expanded"]

MOST_FOLDERS = 1000


async def expanded(environment: ToolEnvironment, pattern: Path) -> list[Path]:
    """The paths that an absolute pattern stands for; if there are none, the pattern as it is.

    Looks into no more than `MOST_FOLDERS` for each part: `/*/*/*` must not search a whole disk.
    """
    found = [Path(pattern.anchor)]
    for part in pattern.parts[1:]:
        if any(sign in part for sign in "*?["):
            found = [
                each / name
                for each in found[:MOST_FOLDERS]
                for name in await _fitting(environment, each, part)
            ]
        else:
            found = [each / part for each in found]
    return found or [pattern]


async def _fitting(environment: ToolEnvironment, folder: Path, part: str) -> list[str]:
    """The names in a folder that fit. A dot at the beginning must be written."""
    try:
        names = [os.fsdecode(name).rstrip("/") for name in await environment.list_folder(folder)]
    except ToolError:  # not there, or not to be read, by a shell neither
        return []
    part = part.replace("[^", "[!")
    return [
        name for name in names if fnmatchcase(name, part) and name.startswith(".") <= part.startswith(".")
    ]
