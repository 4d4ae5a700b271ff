"""The session tree: pure, in memory, without I/O.

Entries come in file order. A file from elsewhere may be odd: an id may repeat (the first one
counts), a parent may be missing (its child is a root) or come later, parents may run in a
circle (cut once). Each kind of oddity costs one finding, never the session.

`leaf` entries only say where the leaf is. They are in `heads`, but no path or list of
children has them: what hangs on one hangs on the entry that it points at.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pi_trio.collector import paused_collector
from pi_trio.text import plural

__all__ = ["EntryHead", "Tree"]


class EntryHead(NamedTuple):
    """What is known of an entry without its body.

    `detail` is the role of a message, the custom type of a custom entry or message, the
    target of a leaf, label or context edit, else None.
    """

    id: str
    parent_id: str | None
    type: str
    detail: str | None = None


class Tree:
    """Ids, parents and types. Adding is O(1), a path is linear in its length."""

    def __init__(self) -> None:
        self.heads: list[EntryHead] = []
        self._positions: dict[str, int] = {}
        self._last: EntryHead | None = None
        self._repeated: list[str] = []
        self._awaited: set[str] = set()  # parents that were named before they came
        self._cut: set[str] = set()  # entries whose parent would close a circle
        self._may_have_circle = False
        self._children: dict[str | None, list[str]] | None = None  # made when first asked for

    def __len__(self) -> int:
        return len(self.heads)

    def __contains__(self, entry_id: object) -> bool:
        return entry_id in self._positions

    def add(self, head: EntryHead) -> bool:
        """Take in the next entry of the file. False, and no change, if its id is there already."""
        positions = self._positions
        self._last = head
        if head.id in positions:
            self._repeated.append(head.id)
            return False
        if head.parent_id is not None and head.parent_id not in positions:
            self._awaited.add(head.parent_id)
        positions[head.id] = len(self.heads)
        self.heads.append(head)
        if head.id in self._awaited:
            self._may_have_circle = True
            self._children = None
        elif self._children is not None:
            self._hang(head, self._children)
        return True

    def get(self, entry_id: str) -> EntryHead | None:
        """The entry's head, or None if there is no such entry."""
        position = self._positions.get(entry_id)
        return None if position is None else self.heads[position]

    def position(self, entry_id: str) -> int:
        """The entry's place in `heads`. Raises `KeyError`."""
        return self._positions[entry_id]

    def parent(self, entry_id: str) -> str | None:
        """The entry that this one hangs on; None for a root."""
        parent = self._link(entry_id)
        while parent is not None and self._is_pointer(parent):
            parent = self._link(parent)
        return parent

    def anchor(self, entry_id: str) -> str | None:
        """The entry itself; of a `leaf` entry, the one that it stands for in a chain."""
        return self.parent(entry_id) if self._is_pointer(entry_id) else entry_id

    def children(self, entry_id: str | None) -> list[str]:
        """What hangs on the entry (None: the roots), in file order."""
        if self._children is None:
            with paused_collector():
                self._children = self._all_children()
        return list(self._children.get(entry_id, ()))

    def path(self, entry_id: str | None) -> list[str]:
        """The ids from the root to the entry, both included. Empty for None."""
        return [head.id for head in self.branch(entry_id)]

    def branch(self, entry_id: str | None) -> list[EntryHead]:
        """The heads of `path`."""
        heads = list(self.up(entry_id))
        heads.reverse()
        return heads

    def up(self, entry_id: str | None) -> Iterator[EntryHead]:
        """The entry and its ancestors, nearest first."""
        return (head for head in self._links(entry_id) if head.type != "leaf")

    def common_ancestor(self, one: str, other: str) -> str | None:
        """The last entry that both paths share, or None."""
        shared = set(self.path(one))
        return next((head.id for head in self.up(other) if head.id in shared), None)

    def leaf_after_load(self) -> str | None:
        """Where the next append hangs if this is the whole file: the last line decides."""
        last = self._last
        if last is None:
            return None
        if last.type == "leaf":
            if last.detail is None:
                return None
            if last.detail in self._positions:
                return self.anchor(last.detail)
        return self.anchor(last.id)

    @property
    def findings(self) -> list[str]:
        """What was odd, a sentence each."""
        self._cut_circles()
        found = []
        if self._repeated:
            repeated = plural(len(self._repeated), "entry")
            found.append(f"{repeated} left out for repeating an id, {_some(self._repeated)}")
        if self._cut:
            cut = plural(len(self._cut), "entry")
            found.append(f"the parents of {cut} run in a circle, {_some(sorted(self._cut))}")
        missing = [each for each in self._awaited if each not in self._positions]
        if missing:
            found.append(f"not in the file: {plural(len(missing), 'parent')}, {_some(sorted(missing))}")
        return found

    # ---- raw links, `leaf` entries included

    def _is_pointer(self, entry_id: str) -> bool:
        return self.heads[self._positions[entry_id]].type == "leaf"

    def _link(self, entry_id: str) -> str | None:
        if self._may_have_circle:
            self._cut_circles()
        parent = self.heads[self._positions[entry_id]].parent_id
        return parent if parent in self._positions and entry_id not in self._cut else None

    def _links(self, entry_id: str | None) -> Iterator[EntryHead]:
        """The entry and what its raw links lead to. What is cut meanwhile is not followed."""
        if self._may_have_circle:
            self._cut_circles()
        heads, positions, cut = self.heads, self._positions, self._cut
        while entry_id is not None:
            head = heads[positions[entry_id]]
            yield head
            parent = head.parent_id
            entry_id = parent if parent in positions and entry_id not in cut else None

    def _hang(self, head: EntryHead, children: dict[str | None, list[str]]) -> None:
        if head.type != "leaf":
            children.setdefault(self.parent(head.id), []).append(head.id)

    def _all_children(self) -> dict[str | None, list[str]]:
        """Looks only at what `_hang` would, where there is nothing odd about a parent."""
        self._cut_circles()
        heads, positions, children = self.heads, self._positions, dict[str | None, list[str]]()
        for head in heads:
            parent = head.parent_id
            position = positions.get(parent) if parent is not None else None
            if position is None or self._cut or head.type == "leaf" or heads[position].type == "leaf":
                self._hang(head, children)
            else:
                children.setdefault(parent, []).append(head.id)
        return children

    def _cut_circles(self) -> None:
        """Look at every link once. Needed only after a parent came later than its child."""
        if not self._may_have_circle:
            return
        self._may_have_circle = False
        settled: set[str] = set()
        for head in self.heads:
            trail: set[str] = set()
            for each in self._links(head.id):
                if each.id in settled:
                    break
                if each.id in trail:
                    self._cut.add(each.id)
                    break
                trail.add(each.id)
            settled |= trail


def _some(ids: list[str]) -> str:
    return f"such as {ids[0]}"
