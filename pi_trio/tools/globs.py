"""Matching paths against globs, in time that does not depend on how wicked a glob is.

`*`, `?` and `[…]` stay within a name, `**` stands for any number of folders, `{a,b}` for
alternatives. A glob without a slash is for names at any depth.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fnmatch import translate
from typing import TypeAlias

from pi_trio.tools.failure import ToolError

__all__ = ["Glob"]

MAX_ALTERNATIVES = 256

_BRACES = re.compile(r"\{([^{}]*)\}")
_Name: TypeAlias = Callable[[str], object] | None
"""Whether a name matches; None stands for `**`."""


class Glob:
    """A glob for paths relative to the searched folder. In small letters it matches all letters.

    Raises `ToolError` for one with too many alternatives.
    """

    def __init__(self, pattern: str) -> None:
        flags = re.IGNORECASE if pattern == pattern.lower() else re.NOFLAG
        self._anchored = "/" in pattern
        self._alternatives = [
            [_name(part, flags) for part in each.split("/") if part not in ("", ".")]
            for each in _expanded(pattern)
        ]

    def matches(self, path: str) -> bool:
        """Whether the glob is for this path, which has no slash at its end."""
        parts = path.split("/") if self._anchored else [path.rpartition("/")[2]]
        return any(_fits(names, parts) for names in self._alternatives)


def _expanded(pattern: str) -> list[str]:
    """One glob for each combination of alternatives, inner braces first."""
    done: list[str] = []
    waiting = [pattern]
    while waiting:
        if len(done) + len(waiting) > MAX_ALTERNATIVES:
            raise ToolError(f"The pattern has more than {MAX_ALTERNATIVES} alternatives.")
        each = waiting.pop()
        braces = _BRACES.search(each)
        if braces is None:
            done.append(each)
        else:
            head, tail = each[: braces.start()], each[braces.end() :]
            waiting += [f"{head}{choice}{tail}" for choice in braces[1].split(",")]
    return done


def _name(part: str, flags: re.RegexFlag) -> _Name:
    return None if part == "**" else re.compile(translate(part.replace("[^", "[!")), flags).match


def _fits(names: Sequence[_Name], parts: Sequence[str]) -> bool:
    """Whether the names stand for the parts. Only the last `**` ever has to give way."""
    at = place = 0
    retry: tuple[int, int] | None = None
    while place < len(parts):
        if at < len(names) and (name := names[at]) is None:
            at, retry = at + 1, (at + 1, place)
        elif at < len(names) and name and name(parts[place]):
            at, place = at + 1, place + 1
        elif retry is not None:
            at, place = retry[0], retry[1] + 1
            retry = at, place
        else:
            return False
    return all(name is None for name in names[at:])
