"""Where a branch may be cut."""

from __future__ import annotations

import pytest

from pi_trio.compaction.cut import Cut, find_cut
from pi_trio.compaction.surface import Node, surface_of
from pi_trio.messages import (
    AssistantMessage,
    BashExecutionMessage,
    CustomMessage,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from pi_trio.session.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    ContextEditEntry,
    CustomEntry,
    CustomMessageEntry,
)

KINDS = {
    "u": UserMessage("q"),
    "a": AssistantMessage((), stop_reason="stop"),
    "c": AssistantMessage((ToolCall("1", "bash"),), stop_reason="toolUse"),
    "r": ToolResultMessage("1", "bash", "done"),
    "b": BashExecutionMessage("ls", ""),
    "n": CustomMessage("note", "n"),
    "-": None,
}


def nodes(kinds: str, size: int = 10) -> list[Node]:
    return [
        Node(str(place), KINDS[kind], 0 if KINDS[kind] is None else size) for place, kind in enumerate(kinds)
    ]


@pytest.mark.parametrize(
    ("kinds", "keep", "cut"),
    [
        ("uaua", 10, Cut(3, 2)),
        ("uaua", 11, Cut(2)),
        ("uaua", 20, Cut(2)),  # the node that reaches the budget is kept
        ("uaua", 0, Cut(3, 2)),
        ("uaua", 30, Cut(1, 0)),
        ("uaua", 40, None),  # all of it is kept
        ("uaua", 41, None),  # there is not so much
        ("", 0, None),
        ("--", 0, None),
        ("u", 0, None),
        ("ucra", 20, Cut(1, 0)),  # a result takes its call along
        ("uacrra", 15, Cut(2, 0)),
        ("cra", 20, None),  # … and if that is everything, there is nothing to do
        ("uacrura", 10, Cut(6, 4)),
        ("uacuru", 30, Cut(2, 0)),  # what was said between a call and its result cannot begin
        ("uarr", 10, Cut(1, 0)),  # results without a call belong to what is before them
        ("ua--ua", 20, Cut(2)),  # what models do not see stays with what follows
        ("ua-ca-", 10, Cut(4, 0)),
        ("--ua--", 20, None),
        ("aaba", 20, Cut(2)),  # a command of the user and a note open a turn
        ("aana", 20, Cut(2)),
        ("aaaa", 20, Cut(2)),  # no turn begins before: all of it is history
    ],
)
def test_cuts(kinds: str, keep: int, cut: Cut | None) -> None:
    """E55, E56, F2, F9, CP-10"""
    assert find_cut(nodes(kinds), keep) == cut


def test_three_parallel_calls_stay_together() -> None:
    """CP-10: whatever the budget, a cut inside a group of results moves before their call."""
    group = nodes("uacrrrua")
    assert {find_cut(group, keep).kept for keep in (30, 40, 50)} == {2}  # type: ignore[union-attr]


# ------------------------------------------------------------------ what counts of a branch


def test_the_nodes_are_what_the_context_is_made_of(new_log) -> None:
    """F6: of older summaries only the latest counts. F4, F7: nothing that it stands for."""
    log = new_log()
    log.user("forgotten")
    second = log.user("kept")
    log.add(CompactionEntry("one", second))
    third = log.user("three")
    log.add(CompactionEntry("two", second))
    shown = log.add(CustomMessageEntry("note", "seen"))
    log.add(CustomEntry("note", "not seen"))
    summary = log.add(BranchSummaryEntry("root", "a branch"))
    edited = log.user("long " * 100)
    left_out = log.user("left out")
    failed = log.answer("half", stop="error")
    log.add(ContextEditEntry(edited, {"content": "short"}))
    log.add(ContextEditEntry(left_out, None))
    surface = surface_of(log.session)
    assert surface.previous is not None
    assert surface.previous.summary == "two"
    seen = [node.id for node in surface.nodes if node.message is not None]
    assert seen == [second, third, shown, summary, edited]
    sizes = {node.id: node.tokens for node in surface.nodes}
    assert sizes[edited] == 10
    assert sizes[left_out] == sizes[failed] == 0
