"""Compactions that pi made: where it cut, what it counted, and what came of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pi_trio.compaction.branch import BranchPlan, plan_branch
from pi_trio.compaction.estimate import measure
from pi_trio.compaction.files import without_lists
from pi_trio.compaction.plan import Plan, make_plan
from pi_trio.messages import text_of
from pi_trio.session.entries import BranchSummaryEntry, CompactionEntry
from pi_trio.session.session import Session

KEEP = 1_500
"""What these files were written with."""

COMPACTIONS = [("compacted", 0), ("compacted", 1), ("autocompacted", 0), ("splitturn", 0), ("overflow", 0)]


def before_compaction(shared: Path, name: str, number: int) -> tuple[Session, CompactionEntry]:
    """A recorded session as it was just before its compaction of that number, and pi's entry."""
    recorded = Session.open(shared / "sessions" / "real-pi" / f"{name}.jsonl", writable=False)
    place = [at for at, head in enumerate(recorded.heads) if head.type == "compaction"][number]
    entry = recorded.entry(recorded.heads[place].id)
    assert isinstance(entry, CompactionEntry)
    session = Session.new("/p", lines=[recorded.line(head.id) for head in recorded.heads[:place]])
    session.set_leaf_id(entry.parent_id)
    return session, entry


@pytest.mark.parametrize(("name", "number"), COMPACTIONS)
def test_the_size_is_what_pi_counted(shared: Path, name: str, number: int) -> None:
    """Where a provider told it, the same to the token. Else our estimate, which counts a little
    more for each message and block, is within a twentieth of pi's.
    """
    session, entry = before_compaction(shared, name, number)
    meter = measure(session)
    assert meter.measured is (name != "overflow")
    if meter.measured:
        assert meter.size == entry.tokens_before
    else:
        assert meter.size == pytest.approx(entry.tokens_before, rel=0.05)


@pytest.mark.parametrize(("name", "number"), COMPACTIONS)
def test_the_plan_is_pis_or_keeps_more(shared: Path, name: str, number: int) -> None:
    """pi cuts at or after the entry that reaches the budget, we at or before it; both in the same turn
    or at its begin, with the same files so far.
    """
    session, entry = before_compaction(shared, name, number)
    plan = make_plan(session, keep=KEEP, size=entry.tokens_before)
    assert isinstance(plan, Plan)
    path = session.tree.path(session.get_leaf_id())
    assert path.index(plan.first_kept_id) <= path.index(entry.first_kept_entry_id)
    assert plan.kept_tokens >= KEEP
    files, theirs = plan.files.details(), entry.details
    for key in ("readFiles", "modifiedFiles"):
        assert set(files[key]) <= set(theirs[key])
    assert plan.system is not None
    assert entry.system_message is not None
    assert plan.system.sections == entry.system_message.sections
    assert plan.system.tools_added == entry.system_message.tools_added


def test_the_second_compaction_goes_on_from_the_first(shared: Path) -> None:
    """E57 over pi's file: its first summary, and the tail that this kept."""
    session, _ = before_compaction(shared, "compacted", 1)
    plan = make_plan(session, keep=KEEP, size=8_000)
    assert isinstance(plan, Plan)
    first = next(each for each in session.get_branch() if isinstance(each, CompactionEntry))
    assert plan.previous == first.summary
    assert plan.covered[0].summary == first.summary
    kept = session.entry(first.first_kept_entry_id)
    assert plan.covered[1] == kept.message
    assert set(first.details["modifiedFiles"]) <= set(plan.files.details()["modifiedFiles"])


@pytest.mark.parametrize(("name", "number"), COMPACTIONS)
def test_pis_entry_gives_the_context_that_pi_had(shared: Path, name: str, number: int) -> None:
    session, entry = before_compaction(shared, name, number)
    before = session.build_context().messages
    session.append(entry)
    context = session.build_context()
    assert context.messages[0].summary == entry.summary
    kept = context.messages[1:]
    assert kept == before[-len(kept) :]
    assert context.system_message == entry.system_message
    assert not measure(session).measured
    assert measure(session).size < entry.tokens_before
    lists = entry.summary[len(without_lists(entry.summary)) :]
    assert all(f"\n{path}\n" in lists for paths in entry.details.values() for path in paths)


@pytest.mark.parametrize("name", ["tree-summary", "tree-custom-summary"])
def test_the_branch_that_pi_summarised(shared: Path, name: str) -> None:
    recorded = Session.open(shared / "sessions" / "real-pi" / f"{name}.jsonl", writable=False)
    place, head = next((at, each) for at, each in enumerate(recorded.heads) if each.type == "branch_summary")
    entry = recorded.entry(head.id)
    assert isinstance(entry, BranchSummaryEntry)
    session = Session.new("/p", lines=[recorded.line(each.id) for each in recorded.heads[:place]])
    plan = plan_branch(session, entry.parent_id, window=128_000)
    assert isinstance(plan, BranchPlan)
    assert (plan.old_leaf_id, plan.common_id) == (entry.from_id, entry.parent_id)
    assert plan.files.details() == entry.details
    assert text_of(plan.messages[0].content).startswith("Way one.")
