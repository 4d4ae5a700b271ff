"""Which file a model means by a path."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

from pi_trio.tools.failure import ToolError, check_text
from pi_trio.written_path import home_expanded

__all__ = ["existing_path", "new_path"]

_SPACES = re.compile("[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]")
_QUOTES = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"'})


def existing_path(path: str, cwd: Path) -> Path:
    """The file or folder that `path` names, else the only one that looks the same.

    Names look the same if they differ in their Unicode form, kind of space or kind of quote.
    Where nothing or more than one is found, the path as written. Raises `ToolError` for a
    path that cannot be one, and `OSError`. Blocks.
    """
    candidates = _candidates(path, cwd)
    for candidate in candidates:
        if candidate.exists() or candidate.is_symlink():
            return candidate
    return next(filter(None, map(_lookalike, candidates)), candidates[-1])


def new_path(path: str, cwd: Path) -> Path:
    """Where a file named `path` is, or would be made. Raises as `existing_path` does. Blocks."""
    candidates = _candidates(path, cwd)
    return next((each for each in candidates if each.exists() or each.parent.exists()), candidates[-1])


def _candidates(path: str, cwd: Path) -> list[Path]:
    """As written; models also put `@` in front, which may however be part of the name."""
    if not path:
        raise ToolError("The path is empty.")
    check_text(path, "path")
    if path.startswith("@") and len(path) > 1:
        return [cwd / path, cwd / _home_expanded(path[1:])]
    return [cwd / _home_expanded(path)]


def _home_expanded(path: str) -> Path:
    """Only the own home: a file may be called `~name`."""
    return home_expanded(path) if path == "~" or path.startswith("~/") else Path(path)


def _lookalike(path: Path) -> Path | None:
    """The one existing path whose parts look like those of `path`."""
    found = Path(path.anchor)
    for part in path.parts[1:]:
        exact = found / part
        same = (
            [exact]
            if exact.exists()
            else [each for each in _inside(found) if _look(each.name) == _look(part)]
        )
        if len(same) != 1:
            return None
        found = same[0]
    return found


def _inside(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:  # not a folder, or a private one: nothing in it looks like anything
        return []


def _look(name: str) -> str:
    return _SPACES.sub(" ", unicodedata.normalize("NFC", name)).translate(_QUOTES)
