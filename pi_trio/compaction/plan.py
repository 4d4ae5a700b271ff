"""When to make room, and what a summary is to stand for."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve, field, frozen

from pi_trio.compaction.cut import Cut, find_cut
from pi_trio.compaction.estimate import estimate_all
from pi_trio.compaction.files import Files, files_of
from pi_trio.compaction.surface import Node, Surface, surface_of
from pi_trio.messages import AgentMessage, SystemMessage
from pi_trio.session.context import context_before
from pi_trio.session.session import Session

__all__ = ["TOO_SMALL", "CompactionSettings", "Nothing", "Plan", "make_plan", "usable"]


@frozen(kw_only=True)
class CompactionSettings:
    """Sizes are tokens.

    Compaction is due when less than `reserve_tokens` of the window are free or, with
    `fraction`, when more than that part of the window is full. `keep_recent_tokens` of the
    conversation stay as they are. `overrides` says otherwise for single models, by their
    references (`provider/id`), in everything but `enabled`.
    """

    enabled: bool = True
    reserve_tokens: int = 16_384
    keep_recent_tokens: int = 20_000
    fraction: float | None = None
    overrides: Mapping[str, CompactionSettings] = field(factory=dict)

    def of(self, reference: str) -> CompactionSettings:
        """Those of a model."""
        return evolve(self.overrides.get(reference, self), enabled=self.enabled)

    def threshold(self, window: int) -> int:
        """The largest context that is left alone."""
        return usable(window, self.reserve_tokens) if self.fraction is None else int(window * self.fraction)

    def presses(self, size: int, window: int) -> bool:
        """Whether a context of this size is to be made smaller. Never for an unknown window."""
        return self.enabled and window > 0 and size > self.threshold(window)

    def keep(self, window: int) -> int:
        """How much of the conversation stays: at most half of what fits."""
        if window <= 0:
            return self.keep_recent_tokens
        return min(self.keep_recent_tokens, self.threshold(window) // 2)

    def keep_after_overflow(self, size: int, window: int) -> int:
        """How much stays of a context that was too large, perhaps since the window is not what
        we think it is: at most a quarter of that context.
        """
        return min(self.keep(window), size // 4)


def usable(window: int, reserve: int) -> int:
    """What of a window may be filled. At least half of it: a reserve that is made for large
    windows must not leave a small one without any use.
    """
    return max(window - reserve, window // 2)


@frozen
class Nothing:
    """There is nothing to summarise. `reason` is a sentence for the person who asked for it."""

    reason: str


ALREADY = Nothing("Already compacted: nothing was said since the last summary.")
TOO_SMALL = Nothing("Nothing to compact: what was said so far is little enough to keep.")


@frozen(kw_only=True)
class Plan:
    """What a summary is to stand for. Sizes are tokens.

    `covered` is what the summary replaces, as it begins the next request, the previous
    summary included. `history` and `turn` are the messages that are new in it: whole turns,
    then the first part of a turn that the cut parts. `covered_tokens` is the estimate of all
    of `covered`, `kept_tokens` of what stays, the system prompt excepted.
    """

    first_kept_id: str
    covered: tuple[AgentMessage, ...]
    history: tuple[AgentMessage, ...]
    turn: tuple[AgentMessage, ...]
    previous: str | None
    files: Files
    system: SystemMessage | None
    tokens_before: int
    covered_tokens: int
    kept_tokens: int


def make_plan(session: Session, *, keep: int, size: int) -> Plan | Nothing:
    """Plan a summary that leaves `keep` tokens or more of a context of `size` tokens."""
    surface = surface_of(session)
    cut = find_cut(surface.nodes, keep)
    if cut is None:
        return ALREADY if _ends_with_summary(session) else TOO_SMALL
    return _planned(session, surface, cut, size)


def _ends_with_summary(session: Session) -> bool:
    """Whether nothing was said since the last compaction."""
    for head in session.tree.up(session.get_leaf_id()):
        if head.type == "compaction" or session.speech.speaks(head):
            return head.type == "compaction"
    return False


def _planned(session: Session, surface: Surface, cut: Cut, size: int) -> Plan:
    nodes, previous = surface.nodes, surface.previous
    turn_begin = cut.kept if cut.turn is None else cut.turn
    branch = session.tree.branch(session.get_leaf_id())
    first_kept_id = nodes[cut.kept].id
    new = _messages(nodes[: cut.kept])
    files = files_of(new)
    covered = context_before(branch, first_kept_id, session.speech).messages
    if previous is not None and not previous.from_hook:
        files |= Files.from_details(previous.details)
    return Plan(
        first_kept_id=first_kept_id,
        covered=covered,
        history=_messages(nodes[:turn_begin]),
        turn=_messages(nodes[turn_begin : cut.kept]),
        previous=previous.summary if previous else None,
        files=files,
        system=session.build_context().system_message,
        tokens_before=size,
        covered_tokens=estimate_all(covered),
        kept_tokens=sum(node.tokens for node in nodes[cut.kept :]),
    )


def _messages(nodes: tuple[Node, ...]) -> tuple[AgentMessage, ...]:
    return tuple(node.message for node in nodes if node.message is not None)
