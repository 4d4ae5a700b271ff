"""Summaries of a branch that is left for another one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from attrs import frozen

from pi_trio.compaction import prompts
from pi_trio.compaction.estimate import estimate
from pi_trio.compaction.files import Files, files_of
from pi_trio.compaction.plan import Nothing, usable
from pi_trio.compaction.summary import Ask, Questions, Summary, room_for_text
from pi_trio.compaction.surface import nodes_of
from pi_trio.llm.protocol import Model
from pi_trio.messages import (
    AgentMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    ToolResultMessage,
)
from pi_trio.session.context import select
from pi_trio.session.entries import BranchSummaryEntry, CompactionEntry
from pi_trio.session.session import Session
from pi_trio.session.tree import EntryHead

__all__ = ["BranchPlan", "plan_branch", "summarise_branch"]

DEFAULT_WINDOW = 128_000
DEFAULT_RESERVE = 16_384
"""Tokens; for a model whose window is unknown, and what is left for the request and its answer."""

_SUMMARY_FITS = 0.9
"""Up to this part of the budget an older summary is taken although it does not fit: it says much."""


@frozen(kw_only=True)
class BranchPlan:
    """The branch between `common_id` (None: the root) and the leaf `old_leaf_id` that is left."""

    old_leaf_id: str
    common_id: str | None
    messages: tuple[AgentMessage, ...]
    files: Files

    def entry(self, summary: Summary) -> BranchSummaryEntry:
        """What to append at the place that the leaf moves to."""
        return BranchSummaryEntry(
            self.old_leaf_id, summary.text, self.files.details(), summary.usage, from_hook=False
        )


def plan_branch(
    session: Session, target_id: str | None, *, window: int, reserve: int = DEFAULT_RESERVE
) -> BranchPlan | Nothing:
    """What there is to summarise when the leaf moves to `target_id`.

    The newest messages count first, as many as fit into `window` less `reserve` tokens; tool
    results are left out, since the answers tell what came of them.
    """
    old = session.get_leaf_id()
    if old is None:
        return _NOTHING
    tree = session.tree
    common = None if target_id is None else tree.common_ancestor(old, target_id)
    path = tree.branch(old)
    left = path[len(tree.path(common)) :]
    size = window if window > 0 else DEFAULT_WINDOW
    messages = _newest(_messages(session, path, left), usable(size, reserve))
    if not messages:
        return _NOTHING
    files = files_of(node.message for node in nodes_of(left, session.speech) if node.message is not None)
    for head in left:
        files |= Files.from_details(_details(session, head))
    return BranchPlan(old_leaf_id=old, common_id=common, messages=messages, files=files)


_NOTHING = Nothing("There is nothing to summarise on the branch that is left.")


async def summarise_branch(
    plan: BranchPlan, ask: Ask, model: Model, *, focus: str = "", replace_instructions: bool = False
) -> Summary:
    """Have `model` summarise the branch. `focus` is looked at in particular or, with
    `replace_instructions`, is all that the model is told to do. Raises `SummaryError`.
    """
    request = partial(prompts.branch_request, focus=focus, replace=replace_instructions)
    questions = Questions(ask)
    text = await questions.put_in_pieces(request, plan.messages, room_for_text(model))
    return Summary(f"{prompts.BRANCH_PREAMBLE}{text}{plan.files.lists()}", questions.usage)


# ------------------------------------------------------------------ what is on the branch


def _messages(session: Session, path: Sequence[EntryHead], left: Sequence[EntryHead]) -> list[AgentMessage]:
    """What the model saw of the branch; a compaction on it speaks for what it replaced."""
    chosen, ids = select(path, session.entry), {head.id for head in left}
    said: list[AgentMessage] = []
    if chosen.compaction is not None and chosen.compaction.id in ids:
        said.append(CompactionSummaryMessage(chosen.compaction.summary, chosen.compaction.tokens_before))
    nodes = nodes_of([head for head in chosen.heads if head.id in ids], session.speech)
    messages = (node.message for node in nodes if node.message is not None)
    return [*said, *(each for each in messages if not isinstance(each, ToolResultMessage))]


def _newest(messages: Sequence[AgentMessage], budget: int) -> tuple[AgentMessage, ...]:
    chosen: list[AgentMessage] = []
    total = 0
    for message in reversed(messages):
        tokens = estimate(message)
        if total + tokens > budget:
            if _is_summary(message) and total < budget * _SUMMARY_FITS:
                chosen.append(message)
            break
        chosen.append(message)
        total += tokens
    return tuple(reversed(chosen))


def _is_summary(message: AgentMessage) -> bool:
    return isinstance(message, (BranchSummaryMessage, CompactionSummaryMessage))


def _details(session: Session, head: EntryHead) -> Any:
    """The file lists of a summary that was made by us or by pi; an extension's are its own."""
    if head.type not in ("compaction", "branch_summary"):
        return None
    entry = session.entry(head.id)
    if isinstance(entry, (BranchSummaryEntry, CompactionEntry)) and not entry.from_hook:
        return entry.details
    return None
