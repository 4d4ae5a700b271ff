"""Shortening long tool results in the context: the cheapest room there is.

The file keeps the whole result. A `context_edit` says what models see of it from now on, and
a fact directly before it tells why.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs
from attrs import frozen

from pi_trio import codec
from pi_trio.compaction.estimate import estimate
from pi_trio.compaction.surface import Node
from pi_trio.messages import TextContent, ToolResultMessage, UserContent, text_of
from pi_trio.session import facts
from pi_trio.session.entries import ContextEditEntry, CustomEntry

__all__ = ["Pruned", "prune"]

LONGEST = 8_192
HEAD = 4_096
TAIL = 1_024
"""Code points: up to which length a result is left alone, and what is kept of a longer one."""


@frozen
class Pruned:
    """A result that models are to see shortened. `saved` are tokens, `cut` code points."""

    target_id: str
    call_id: str
    content: tuple[UserContent, ...]
    cut: int
    saved: int

    def entries(self, session_id: str) -> tuple[CustomEntry, ContextEditEntry]:
        """The fact and the edit, to be appended together and in this order."""
        fact = facts.fact(
            facts.PRUNE,
            session_id,
            targetId=self.target_id,
            callId=self.call_id,
            charactersCut=self.cut,
            tokensSaved=self.saved,
        )
        replacement = {"content": [codec.to_json(block) for block in self.content]}
        return fact, ContextEditEntry(self.target_id, replacement)


def prune(nodes: Iterable[Node]) -> tuple[Pruned, ...]:
    """What to shorten among these nodes. Results that are short already are left alone.

    Give the nodes before a cut to spare what the model is working with, or all of them when
    the context has to shrink whatever it costs.
    """
    found = (_pruned(node, node.message) for node in nodes if isinstance(node.message, ToolResultMessage))
    return tuple(each for each in found if each is not None)


def _pruned(node: Node, result: ToolResultMessage) -> Pruned | None:
    text = text_of(result.content)
    if len(text) <= LONGEST:
        return None
    cut = len(text) - HEAD - TAIL
    shown = TextContent(f"{text[:HEAD]}\n\n{_MARKER.format(cut)}\n\n{text[-TAIL:]}")
    content = (shown, *_not_text(result.content))
    saved = node.tokens - estimate(attrs.evolve(result, content=content))
    return Pruned(node.id, result.tool_call_id, content, cut, saved)


_MARKER = "[{:,} characters are left out here to save room. Run the tool again if you need them.]"


def _not_text(content: str | Sequence[UserContent]) -> tuple[UserContent, ...]:
    if isinstance(content, str):
        return ()
    return tuple(block for block in content if not isinstance(block, TextContent))
