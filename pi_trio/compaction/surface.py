"""What a branch shows to a model, entry by entry: where a summary may begin to stand for it."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from pi_trio.compaction.estimate import estimate
from pi_trio.messages import AgentMessage
from pi_trio.session.context import SPEAKING, Read, edited, message_of, select
from pi_trio.session.entries import CompactionEntry
from pi_trio.session.session import Session
from pi_trio.session.tree import EntryHead

__all__ = ["Node", "Surface", "nodes_of", "surface_of"]


@frozen
class Node:
    """An entry, what models see of it (None: nothing), and the tokens of that.

    System messages count as nothing here: they make one state, which no summary replaces.
    """

    id: str
    message: AgentMessage | None = None
    tokens: int = 0


@frozen
class Surface:
    """What counts of a branch: the latest summary, if any, and the entries after it."""

    previous: CompactionEntry | None
    nodes: tuple[Node, ...]


def surface_of(session: Session) -> Surface:
    """The surface of the session's branch. Reads what counts, and nothing older."""
    branch = session.tree.branch(session.get_leaf_id())
    chosen = select(branch, session.entry)
    return Surface(chosen.compaction, nodes_of(chosen.heads, session.entry))


def nodes_of(heads: Sequence[EntryHead], read: Read) -> tuple[Node, ...]:
    """The nodes of these entries, with the latest edit that is among them applied."""
    edits = {head.detail: head.id for head in heads if head.type == "context_edit"}
    return tuple(_node(head, edits.get(head.id), read) for head in heads)


def _node(head: EntryHead, edit_id: str | None, read: Read) -> Node:
    if head.type not in SPEAKING or head.detail == "system":
        return Node(head.id)
    entry = read(head.id)
    kept = entry if edit_id is None else edited(entry, read(edit_id))
    message = None if kept is None else message_of(kept)
    tokens = 0 if message is None else estimate(message)
    return Node(head.id, message, tokens) if tokens else Node(head.id)
