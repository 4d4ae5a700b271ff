"""The session tree as rows: pure, without Textual.

The tree is reduced to what a row is worth (prompts, summaries; on request every message) and
flattened depth first without recursion. Only branch points indent, so a conversation of any
length stays at the left. Branches are lettered by their tips, `A` first in file order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias

from attrs import define, evolve, field, frozen

from pi_trio.session.tree import EntryHead

__all__ = ["Flat", "Outline", "Row", "RowKind", "branch_letters"]

RowKind: TypeAlias = Literal["prompt", "summary", "compaction", "entry"]

_ENTRY_TYPES = frozenset({"message", "custom_message", "compaction", "branch_summary"})


@frozen
class Row:
    """One row. `prefix` is drawn before it and `rest` before its further lines.

    `number` counts the prompts of the branch from 1; `tools` the calls that followed the
    prompt; `end` is the entry that going to this row leads to.
    """

    id: str
    kind: RowKind
    number: int
    prefix: str
    rest: str
    active: bool
    tools: int
    end: str
    detail: str | None = None


@frozen
class Flat:
    """The rows of a tree. `branch` is the letter of the tip that the leaf is at, `""` inside the tree."""

    rows: list[Row]
    branch: str
    branches: int


@define(eq=False)
class _Node:
    head: EntryHead
    kind: RowKind
    number: int
    parent: _Node | None
    children: list[_Node] = field(factory=list)
    tools: int = 0
    end: str = ""


@define
class _Pending:
    """A node still to be flattened, with what is drawn before it and before what follows it."""

    node: _Node
    prefix: str
    rest: str


class Outline:
    """Grows by `add`, in file order; `flatten` gives its rows. `entries` shows all messages."""

    def __init__(self, heads: Iterable[EntryHead] = (), *, entries: bool = False) -> None:
        self.entries = entries
        self._roots: list[_Node] = []
        self._nearest: dict[str, _Node | None] = {}
        for head in heads:
            self.add(head)

    def add(self, head: EntryHead) -> None:
        """Take in the next entry. One with an id already seen is ignored."""
        if head.id in self._nearest:
            return
        above = self._nearest.get(head.parent_id) if head.parent_id is not None else None
        kind = self._kind(head)
        if kind is None:
            self._nearest[head.id] = above
            if above is not None:
                _count(above, head)
            return
        number = (above.number if above else 0) + (kind == "prompt")
        node = _Node(head, kind, number, above, end=head.id)
        self._nearest[head.id] = node
        (above.children if above else self._roots).append(node)

    def flatten(self, leaf_id: str | None) -> Flat:
        """All rows from top to bottom; those of the path to `leaf_id` are active."""
        path = self._path(leaf_id)
        active = {id(node) for node in path}
        letters = branch_letters()
        rows: list[Row] = []
        unlettered: list[int] = []
        branch, branches = "", 0
        stack = _fan_out(self._roots, "")
        while stack:
            pending = stack.pop()
            node = pending.node
            if pending.prefix != pending.rest:
                unlettered.append(len(rows))
            rows.append(_row(pending, id(node) in active))
            if not node.children:
                letter, branches = next(letters), branches + 1
                for at in unlettered:
                    rows[at] = evolve(rows[at], prefix=rows[at].prefix + letter)
                unlettered.clear()
                branch = letter if path and node is path[0] else branch
            stack.extend(_fan_out(node.children, pending.rest))
        return Flat(rows, branch, branches)

    def _kind(self, head: EntryHead) -> RowKind | None:
        if head.type == "message" and head.detail == "user":
            return "prompt"
        if head.type == "compaction":
            return "compaction"
        if head.type == "branch_summary":
            return "summary"
        shown = self.entries and head.type in _ENTRY_TYPES and head.detail != "system"
        return "entry" if shown else None

    def _path(self, leaf_id: str | None) -> list[_Node]:
        """The nodes from the leaf up to the root."""
        node = self._nearest.get(leaf_id) if leaf_id is not None else None
        path: list[_Node] = []
        while node is not None:
            path.append(node)
            node = node.parent
        return path


def branch_letters() -> Iterator[str]:
    """The names of branches without end: A, B, … Z, AA, AB."""
    number = 0
    while True:
        number += 1
        letters, rest = "", number
        while rest:
            rest, digit = divmod(rest - 1, 26)
            letters = chr(ord("A") + digit) + letters
        yield letters


def _count(node: _Node, head: EntryHead) -> None:
    """An entry that has no row belongs to the row above it."""
    if head.detail == "toolResult":
        node.tools += 1
    if head.type == "message" or head.detail == "turn/end":
        node.end = head.id


def _fan_out(nodes: list[_Node], rest: str) -> list[_Pending]:
    """The children of one node, the first on top of the stack."""
    if len(nodes) == 1:
        return [_Pending(nodes[0], rest, rest)]
    last = len(nodes) - 1
    pending = [
        _Pending(node, rest + ("└─" if at == last else "├─"), rest + ("   " if at == last else "│  "))
        for at, node in enumerate(nodes)
    ]
    return pending[::-1]


def _row(pending: _Pending, active: bool) -> Row:
    node = pending.node
    return Row(
        node.head.id,
        node.kind,
        node.number,
        pending.prefix,
        pending.rest,
        active,
        node.tools,
        node.end,
        node.head.detail,
    )
