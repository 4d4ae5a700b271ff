"""Where a branch may be cut: what is before goes into a summary, what is after stays."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from pi_trio.compaction.surface import Node
from pi_trio.messages import AssistantMessage, ToolResultMessage

__all__ = ["Cut", "find_cut"]


@frozen
class Cut:
    """Places in the nodes: of the first that is kept, and of the turn that the cut parts.

    `turn` is the place of that turn's first message; None where the cut is between two turns.
    """

    kept: int
    turn: int | None = None


def find_cut(nodes: Sequence[Node], keep: int) -> Cut | None:
    """The latest cut that keeps `keep` tokens or more; None if nothing would be before it.

    The node that reaches `keep` is kept. A call is never parted from its result, so what is
    kept may begin earlier. Entries that models do not see stay with what follows them.
    """
    reached = _reached(nodes, keep)
    if reached is None:
        return None
    places = _legal_places(nodes)
    place = max((each for each in places if each <= reached), default=None)
    begin = next(index for index, node in enumerate(nodes) if node.message is not None)
    if place is None or place <= begin:
        return None
    turn = None if _opens_turn(nodes[place]) else _turn_before(nodes, place)
    while nodes[place - 1].message is None or nodes[place - 1].id == nodes[place].id:
        place -= 1
    return Cut(place, turn if turn is None or turn < place else None)


def _reached(nodes: Sequence[Node], keep: int) -> int | None:
    """The place, from the end, at which `keep` tokens are together."""
    total = 0
    for place in reversed(range(len(nodes))):
        total += nodes[place].tokens
        if total >= keep and nodes[place].message is not None:
            return place
    return None


def _legal_places(nodes: Sequence[Node]) -> list[int]:
    """The places of messages before which a cut parts no call from its result."""
    legal: list[int] = []
    parted = False  # whether results follow whose answer has not come yet, walking back
    for place in reversed(range(len(nodes))):
        match nodes[place].message:
            case None:
                pass
            case ToolResultMessage():
                parted = True
            case AssistantMessage():
                parted = False
                legal.append(place)
            case _:
                if not parted:
                    legal.append(place)
    return legal


def _opens_turn(node: Node) -> bool:
    """Whether a turn may begin here: with all that speaks to the model, not for it."""
    return node.message is not None and not isinstance(node.message, (AssistantMessage, ToolResultMessage))


def _turn_before(nodes: Sequence[Node], place: int) -> int | None:
    return next((each for each in reversed(range(place)) if _opens_turn(nodes[each])), None)
