"""Entries that were read or written last, so that they need not be decoded again."""

from __future__ import annotations

from collections import OrderedDict

from pi_trio.session.entries import Entry

__all__ = ["EntryCache"]

CACHE_BYTES = 8 << 20
"""How much encoded text the decoded entries that are kept at hand may stand for."""


class EntryCache:
    """Decoded entries, the ones used last, bounded by the size of their lines."""

    def __init__(self) -> None:
        self._entries: OrderedDict[str, tuple[Entry, int]] = OrderedDict()
        self._size = 0

    def get(self, entry_id: str) -> Entry | None:
        found = self._entries.get(entry_id)
        if found is None:
            return None
        self._entries.move_to_end(entry_id)
        return found[0]

    def put(self, entry: Entry, size: int) -> None:
        self._entries[entry.id] = (entry, size)
        self._size += size
        while self._size > CACHE_BYTES:
            _, (_, dropped) = self._entries.popitem(last=False)
            self._size -= dropped
