"""What the rows of a tree show of their entries, known for those that were looked at. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen
from textual.cache import LRUCache

from pi_trio.session.digest import Digest, digest, merged
from pi_tui.tree_rows import Row

__all__ = ["RowFacts", "Unknown"]

MOST_KEPT = 4000
"""Rows that are remembered, the ones seen last."""


@frozen
class Unknown:
    """Entries of a row, from its `since`th on, that must be looked at before its figures are known."""

    row_id: str
    since: int
    ids: Sequence[str]


class RowFacts:
    """Digests by row. A row that has grown is read from where it was known to."""

    def __init__(self) -> None:
        self._known: LRUCache[str, tuple[int, Digest]] = LRUCache(MOST_KEPT)
        self._asked: dict[str, int] = {}

    def clear(self) -> None:
        """Rows stand for other entries now."""
        self._known.clear()
        self._asked.clear()

    def of(self, row: Row) -> Digest | None:
        """What is known of a row; of one that has grown, perhaps not all."""
        known = self._known.get(row.id)
        return known[1] if known is not None else None

    def unknown(self, row: Row, bodies: Mapping[str, Mapping[str, Any]]) -> Unknown | None:
        """What must be asked for, once; what `bodies` have is taken from them."""
        since, _ = self._known.get(row.id) or (0, None)
        if since > len(row.members):  # its end has become a branch
            self._known.discard(row.id)
            since = 0
        unknown = Unknown(row.id, since, row.members[since:])
        if unknown.ids and all(each in bodies for each in unknown.ids):
            self.learn(unknown, digest(bodies[each] for each in unknown.ids))
        elif unknown.ids and self._asked.get(row.id) != since:
            self._asked[row.id] = since
            return unknown
        return None

    def learn(self, asked: Unknown, told: Digest) -> None:
        """Take in what was asked for, if nothing has been learnt meanwhile."""
        since, before = self._known.get(asked.row_id) or (0, Digest())
        if since == asked.since:
            self._known.discard(asked.row_id)  # setting alone would keep what is there
            self._known[asked.row_id] = since + len(asked.ids), merged(before, told) if since else told
            self._asked.pop(asked.row_id, None)
