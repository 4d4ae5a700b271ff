"""What a call did to files, in its details: from these the state of a tree can be told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = ["touched"]


def touched(path: Path, before: str | None, after: str | None) -> dict[str, Any]:
    """`files` in a tool's details: one file, with the SHA-256 of its content before and after.

    They are the same if it was only read, and None where there was no file.
    """
    return {"files": [{"path": str(path), "before": before, "after": after}]}
