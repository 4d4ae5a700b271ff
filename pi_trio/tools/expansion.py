"""What a shell would put in the place of a word with braces, `*`, `?` or `[…]`."""

from __future__ import annotations

import os
import re
from fnmatch import fnmatchcase
from pathlib import Path

from pi_trio.tools.commandline import UNKNOWN
from pi_trio.tools.environment import ToolEnvironment
from pi_trio.tools.failure import ToolError

__all__ = ["alternatives", "expanded"]

MOST_FOLDERS = 1000
MOST_ALTERNATIVES = 100

_INNERMOST = re.compile(r"\{([^{}]*)\}")


def alternatives(word: str) -> list[str]:
    """The words that braces stand for: `.{env,x}` is two. What `{a..c}` gives is taken for unknown."""
    words, done = [word], list[str]()
    while words and len(words) + len(done) <= MOST_ALTERNATIVES:
        each = words.pop()
        match = next((found for found in _INNERMOST.finditer(each) if _stands_for_others(found[1])), None)
        if match is None:
            done.append(each)
        else:
            inner = match[1].split(",") if "," in match[1] else [UNKNOWN]
            words += [each[: match.start()] + one + each[match.end() :] for one in inner]
    return done + [_INNERMOST.sub(UNKNOWN, each) for each in words]


def _stands_for_others(inside: str) -> bool:
    return "," in inside or ".." in inside


async def expanded(environment: ToolEnvironment, pattern: Path, *, hidden: bool = False) -> list[Path]:
    """The paths that an absolute pattern stands for; if there are none, the pattern as it is.

    Only with `hidden` does a `*` at the beginning of a name stand for a dot, too.

    Looks into no more than `MOST_FOLDERS` for each part: `/*/*/*` must not search a whole disk.
    """
    found = [Path(pattern.anchor)]
    for part in pattern.parts[1:]:
        if any(sign in part for sign in "*?["):
            found = [
                each / name
                for each in found[:MOST_FOLDERS]
                for name in await _fitting(environment, each, part, hidden)
            ]
        else:
            found = [each / part for each in found]
    return found or [pattern]


async def _fitting(environment: ToolEnvironment, folder: Path, part: str, hidden: bool) -> list[str]:
    """The names in a folder that fit. A dot at the beginning must be written, unless `hidden`."""
    try:
        names = [os.fsdecode(name).rstrip("/") for name in await environment.list_folder(folder)]
    except ToolError:  # not there, or not to be read, by a shell neither
        return []
    part = part.replace("[^", "[!")
    return [
        name
        for name in names
        if fnmatchcase(name, part) and (hidden or name.startswith(".") <= part.startswith("."))
    ]
