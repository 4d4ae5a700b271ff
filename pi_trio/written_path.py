"""A path as it was written, by a person or by another program, whatever they wrote."""

from __future__ import annotations

import os
from pathlib import Path

from pi_trio.errors import UsageError

__all__ = ["checked_path", "home_expanded", "written_path"]


def written_path(text: str) -> Path:
    """The path, as `home_expanded` gives it. Raises `UsageError` as `checked_path` does."""
    return home_expanded(checked_path(text))


def home_expanded(text: str) -> Path:
    """The path with `~` and `~name` replaced by these homes; where there is none it stays as it is."""
    try:
        return Path(text).expanduser()
    except RuntimeError:  # no home, or nobody of that name
        return Path(text)


def checked_path(text: str) -> str:
    """The text itself. Raises `UsageError` for one that no file can have as its name."""
    try:
        possible = b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:  # half of a surrogate pair
        possible = False
    if not possible:
        raise UsageError(f"{text!r} cannot be the name of a file")
    return text
