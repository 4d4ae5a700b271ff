"""Versions 1 and 2 of pi's format, read as version 3 in memory.

The file stays as it is until something is appended: then a file in version 3 takes its place,
and the old one is kept beside it, byte for byte, as `.v1.bak` or `.v2.bak`.

Version 1 is a list without ids, and names the first kept entry of a compaction by its line.
Its ids are made of the line's place, so that the same file always gives the same tree.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

from pi_trio.errors import StorageError
from pi_trio.session.files import sync_directory
from pi_trio.session.storage import JsonlStorage, Write

__all__ = ["replace_file", "upgrade"]


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


def replace_file(
    older: JsonlStorage, version: int, header: bytes, lines: list[bytes], *, write: Write = os.write
) -> JsonlStorage:
    """Put a file with these lines in the place of an older one, which is kept beside it.

    Raises `StorageError`; then the older file is where it was. The path names a whole file at
    any time, whenever the program may be stopped.
    """
    older.check_writable()
    path = older.path
    unfinished = path.with_name(f".{path.name}.new")
    unfinished.unlink(missing_ok=True)  # of an attempt that was stopped: only who has the lock makes one
    with ExitStack() as undo:
        undo.callback(unfinished.unlink, missing_ok=True)
        storage = JsonlStorage.create(unfinished, header, lines, write=write)
        undo.callback(storage.close)
        storage.sync()
        try:
            _keep_beside(path, version)
            unfinished.replace(path)
            sync_directory(path.parent)
        except OSError as error:
            raise StorageError(f"cannot replace {path}: {error.strerror}", path) from error
        undo.pop_all()
    storage.path = path
    older.close()
    return storage


def _keep_beside(path: Path, version: int) -> None:
    """A second name for the file, so that it stays when the first one goes to another."""
    for number in count():
        kept = path.with_name(f"{path.name}.v{version}{f'.{number}' * (number > 0)}.bak")
        try:
            os.link(path, kept)
        except FileExistsError:
            if not kept.samefile(path):
                continue
        return
