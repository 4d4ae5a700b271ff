"""What a branch shows to a model, entry by entry: where a summary may begin to stand for it."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from pi_trio.compaction.estimate import estimate
from pi_trio.loop.convert import convert_message
from pi_trio.messages import AgentMessage, AssistantMessage, SystemMessage, ToolResultMessage
from pi_trio.session.context import select
from pi_trio.session.entries import CompactionEntry
from pi_trio.session.repair import fit
from pi_trio.session.session import Session
from pi_trio.session.speech import Speech
from pi_trio.session.tree import EntryHead

__all__ = ["Node", "Surface", "nodes_of", "surface_of"]


@frozen
class Node:
    """An entry, what models see of it (None: nothing), and the tokens of that.

    An entry of which a projector makes several messages has a node for each.
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
    return Surface(chosen.compaction, nodes_of(chosen.heads, session.speech))


def nodes_of(heads: Sequence[EntryHead], speech: Speech) -> tuple[Node, ...]:
    """The nodes of these entries, with the latest edit that is among them applied.

    As in a context, a result without a call, or a second one, is nothing, and nor is a blank turn.
    """
    edits = {head.detail: head.id for head in heads if head.type == "context_edit"}
    nodes: list[Node] = []
    owed: set[str] = set()
    for head in heads:
        said = map(fit, speech.said(head, edits.get(head.id)))
        shown = [message for message in said if message is not None and _is_shown(message, owed)]
        nodes += [Node(head.id, message, estimate(message)) for message in shown] or [Node(head.id)]
    return tuple(nodes)


def _is_shown(message: AgentMessage, owed: set[str]) -> bool:
    """Whether models see it here. `owed` are the calls of the last answer that have no result yet."""
    if isinstance(message, AssistantMessage):
        owed.clear()
        owed.update(call.id for call in message.tool_calls)
    elif isinstance(message, ToolResultMessage):
        if message.tool_call_id not in owed:
            return False
        owed.remove(message.tool_call_id)
    return not isinstance(message, SystemMessage) and convert_message(message) is not None
