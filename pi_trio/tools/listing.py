"""Results that are lists of lines: what grep, find and ls have in common."""

from __future__ import annotations

import codecs
import re
import sys
from collections.abc import Sequence
from typing import Any

from pi_trio.codec import dumps
from pi_trio.tool import ToolResult
from pi_trio.tools.truncate import MAX_BYTES, format_size, truncate_head

__all__ = ["chosen_limit", "listing", "shown_name"]

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def chosen_limit(wanted: float | None, default: int, most: int) -> int:
    """How many items a call gets; `most` bounds the memory that a call can take."""
    return min(max(1, int(wanted)), most) if wanted is not None else default


def shown_name(name: bytes) -> str:
    """A name on one line: one with control characters as JSON text, what is not UTF-8 as `�`."""
    text = codecs.decode(name, "utf-8", "replace")
    return dumps(text).decode() if _CONTROL.search(text) else text


def listing(
    lines: Sequence[str], details: dict[str, Any], *, empty: str, more: str = "", cut: str = ""
) -> ToolResult:
    """The lines as far as they fit; `empty` stands for none.

    `more` says that the limit of the call left items out, `cut` that lines were shortened;
    both are sentences without their full stop.
    """
    part = truncate_head("\n".join(lines), max_lines=sys.maxsize)
    size = f"{format_size(MAX_BYTES)} limit reached" if part.truncated else ""
    if part.truncated:
        details = {**details, "truncation": part.details()}
    notes = ". ".join(filter(None, (more, size, cut)))
    text = f"{part.content}\n\n[{notes}]" if notes else part.content
    return ToolResult(text if lines else empty, details or None)
