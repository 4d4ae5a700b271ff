"""What a branch shows to a model, entry by entry: where a summary may begin to stand for it."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from pi_trio.compaction.estimate import estimate
from pi_trio.loop.convert import convert_message
from pi_trio.messages import (
    AgentMessage,
    AssistantMessage,
    CustomMessage,
    ToolResultMessage,
    UserMessage,
    is_blank,
    sendable,
)
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
    """The nodes of these entries, with the latest edit that is among them applied.

    As in a context, a result without a call, or a second one, is nothing, and nor is a blank turn.
    """
    edits = {head.detail: head.id for head in heads if head.type == "context_edit"}
    nodes: list[Node] = []
    owed: set[str] = set()
    for head in heads:
        message = _message(head, edits.get(head.id), read)
        if isinstance(message, AssistantMessage):
            owed = {call.id for call in message.tool_calls}
        elif isinstance(message, ToolResultMessage):
            if message.tool_call_id not in owed:
                message = None
            else:
                owed.remove(message.tool_call_id)
        nodes.append(Node(head.id) if message is None else Node(head.id, message, estimate(message)))
    return tuple(nodes)


def _message(head: EntryHead, edit_id: str | None, read: Read) -> AgentMessage | None:
    if head.type not in SPEAKING or head.detail == "system":
        return None
    entry = read(head.id)
    kept = entry if edit_id is None else edited(entry, read(edit_id))
    message = None if kept is None else message_of(kept)
    if isinstance(message, AssistantMessage):
        message = sendable(message)
    elif isinstance(message, (UserMessage, CustomMessage)) and is_blank(message.content):
        return None
    return message if message is not None and convert_message(message) is not None else None
