"""Versions 1 and 2 of pi's format, read as version 3 in memory. The file stays as it is.

Version 1 is a list without ids, and names the first kept entry of a compaction by its line.
Its ids are made of the line's place, so that the same file always gives the same tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

__all__ = ["upgrade"]


def upgrade(entries: Iterable[Mapping[str, Any]], version: int) -> Iterator[dict[str, Any]]:
    """The JSON objects of the entries (without the header) of a file, in version 3."""
    linked = _link(entries) if version < 2 else (dict(entry) for entry in entries)
    return (_rename_hook_message(entry) for entry in linked)


def _link(entries: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    parent: str | None = None
    for place, entry in enumerate(entries, 1):
        entry_id = _id_at(place)
        linked = {"type": entry.get("type"), "id": entry_id, "parentId": parent, **entry}
        linked.update(id=entry_id, parentId=parent)
        if linked["type"] == "compaction":
            kept = linked.pop("firstKeptEntryIndex", None)  # counts the header as 0
            linked["firstKeptEntryId"] = _id_at(kept) if isinstance(kept, int) and kept > 0 else entry_id
        yield linked
        parent = entry_id


def _id_at(place: int) -> str:
    return f"{place:08x}"


def _rename_hook_message(entry: dict[str, Any]) -> dict[str, Any]:
    message = entry.get("message")
    if isinstance(message, dict) and message.get("role") == "hookMessage":
        entry["message"] = {**message, "role": "custom"}
    return entry
