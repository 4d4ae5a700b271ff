"""Summaries of a branch that is left."""

from __future__ import annotations

import pytest

from pi_trio.compaction import prompts
from pi_trio.compaction.branch import BranchPlan, plan_branch, summarise_branch
from pi_trio.compaction.plan import Nothing
from pi_trio.errors import SummaryError
from pi_trio.llm.protocol import Context, Done, Failed, Failure, StreamOptions
from pi_trio.messages import AssistantMessage, BranchSummaryMessage, text_of
from pi_trio.session.entries import BranchSummaryEntry, CompactionEntry, ContextEditEntry
from pi_trio.testing import ScriptedModel

TEXT = "x" * 400
SIZE = 108
WINDOW = 128_000


class Asked(ScriptedModel):
    async def ask(self, context: Context) -> AssistantMessage:
        async with self(self.model, context, StreamOptions()) as events:
            *_, last = [event async for event in events]
        assert isinstance(last, (Done, Failed))
        return last.message

    @property
    def prompts(self) -> list[str]:
        return [text_of(each.context.messages[0].content) for each in self.requests]


def planned(log, target: str | None, window: int = WINDOW, **options) -> BranchPlan:
    plan = plan_branch(log.session, target, window=window, **options)
    assert isinstance(plan, BranchPlan)
    return plan


def texts(plan: BranchPlan) -> list[str]:
    return [getattr(each, "summary", None) or text_of(each.content) or "call" for each in plan.messages]


@pytest.fixture
def fork(new_log):
    """A trunk of two messages and two branches from it; the leaf is on the second."""
    log = new_log()
    log.user("trunk")
    log.common = log.answer("here the ways part")
    log.user("one")
    log.first = log.answer("one done")
    log.session.set_leaf_id(log.common)
    log.user("two")
    log.answer("", ("1", "read", "a.py"), ("2", "edit", "b.py"))
    log.result("1", TEXT)
    log.result("2", TEXT)
    log.last = log.answer("two done")
    return log


def test_from_the_old_leaf_up_to_the_common_ancestor(fork) -> None:
    plan = planned(fork, fork.first)
    assert (plan.old_leaf_id, plan.common_id) == (fork.last, fork.common)
    assert texts(plan) == ["two", "call", "two done"]  # the results are left out
    assert plan.files.details() == {"readFiles": ["a.py"], "modifiedFiles": ["b.py"]}


def test_to_the_root(fork) -> None:
    plan = planned(fork, None)
    assert plan.common_id is None
    assert texts(plan)[:2] == ["trunk", "here the ways part"]


def test_nothing_is_left_when_the_leaf_moves_forward(fork, new_log) -> None:
    fork.session.set_leaf_id(fork.common)
    assert isinstance(plan_branch(fork.session, fork.last, window=WINDOW), Nothing)
    assert isinstance(plan_branch(new_log().session, None, window=WINDOW), Nothing)


def test_edits_are_honoured(fork) -> None:
    edited, left_out = fork.user("long"), fork.user("not for models")
    fork.add(ContextEditEntry(edited, {"content": "short"}))
    fork.add(ContextEditEntry(left_out, None))
    assert texts(planned(fork, fork.first))[-2:] == ["two done", "short"]


@pytest.mark.parametrize(("budget", "count"), [(3 * SIZE, 3), (3 * SIZE - 1, 2), (50 * SIZE, 10)])
def test_the_newest_come_first_as_far_as_there_is_room(new_log, budget: int, count: int) -> None:
    log = new_log()
    for number in range(10):
        log.user(f"{number}{TEXT[1:]}")
    plan = planned(log, None, window=2 * budget, reserve=budget)
    assert [text[0] for text in texts(plan)] == [str(number) for number in range(10)][-count:]


def test_a_small_window_has_room_too(new_log) -> None:
    """The reserve may be larger than the window."""
    log = new_log()
    for _ in range(10):
        log.user(TEXT)
    assert len(planned(log, None, window=8 * SIZE).messages) == 4
    assert len(planned(log, None, window=0).messages) == 10


def test_an_older_summary_is_taken_although_it_does_not_fit(new_log) -> None:
    log = new_log()
    log.user("old")
    log.add(BranchSummaryEntry("root", "s" * 40_000))
    for _ in range(4):
        log.user(TEXT)
    budget = 5 * SIZE
    plan = planned(log, None, window=2 * budget, reserve=budget)
    assert isinstance(plan.messages[0], BranchSummaryMessage)
    assert len(plan.messages) == 5
    tight = planned(log, None, window=8 * SIZE + 20, reserve=4 * SIZE)
    assert len(tight.messages) == 4  # more than nine tenths are used


def test_nested_summaries_speak_for_what_they_replaced(fork) -> None:
    fork.add(CompactionEntry("compacted", "none", details={"readFiles": ["c.py"], "modifiedFiles": ["a.py"]}))
    fork.add(BranchSummaryEntry("root", "visited", details={"readFiles": ["d.py"], "modifiedFiles": []}))
    fork.add(BranchSummaryEntry("root", "theirs", details={"readFiles": ["e.py"]}, from_hook=True))
    plan = planned(fork, fork.first)
    assert texts(plan) == ["compacted", "visited", "theirs"]
    assert plan.files.details() == {"readFiles": ["c.py", "d.py"], "modifiedFiles": ["a.py", "b.py"]}


def test_a_compaction_that_kept_some_of_the_branch(fork) -> None:
    fork.add(CompactionEntry("compacted", fork.last))
    fork.user("three")
    assert texts(planned(fork, fork.first)) == ["compacted", "two done", "three"]
    branch = fork.session.tree.path(fork.session.get_leaf_id())
    assert texts(planned(fork, branch[-2])) == ["three"]  # the summary itself is not left


async def test_the_entry_hangs_where_the_leaf_goes(fork) -> None:
    """F10: the summary reaches the model on the other branch."""
    model = Asked(["## Goal\nThe second way."])
    plan = planned(fork, fork.first)
    summary = await summarise_branch(plan, model.ask, model.model)
    entry = fork.session.append_at(fork.first, plan.entry(summary))
    assert (entry.parent_id, entry.from_id, entry.from_hook) == (fork.first, fork.last, False)
    assert entry.summary == (
        f"{prompts.BRANCH_PREAMBLE}## Goal\nThe second way."
        "\n\n<read-files>\na.py\n</read-files>\n\n<modified-files>\nb.py\n</modified-files>"
    )
    assert entry.details == {"readFiles": ["a.py"], "modifiedFiles": ["b.py"]}
    message = fork.session.build_context().messages[-1]
    assert isinstance(message, BranchSummaryMessage)
    assert message.summary == entry.summary
    (prompt,) = model.prompts
    assert prompt.startswith("<conversation>\n[User]: two\n\n[Assistant tool calls]: read(")
    for heading in ("Goal", "Constraints & Preferences", "Progress", "Key Decisions", "Next Steps"):
        assert f"## {heading}\n" in prompt


async def test_instructions_are_added_or_replace_ours(fork) -> None:
    model = Asked(["a", "b", "c"])
    plan = planned(fork, fork.first)
    await summarise_branch(plan, model.ask, model.model, focus="the numbers")
    await summarise_branch(plan, model.ask, model.model, focus="Name one file.", replace_instructions=True)
    await summarise_branch(plan, model.ask, model.model, replace_instructions=True)
    added, replaced, ours = model.prompts
    assert added.endswith("Additional focus: the numbers")
    assert "## Goal" in added
    assert replaced.endswith("</conversation>\n\nName one file.")
    assert "## Goal" in ours


async def test_a_failure_leaves_the_branch_as_it_was(fork) -> None:
    model = Asked([Failure("No.", "server")])
    leaf = fork.session.get_leaf_id()
    with pytest.raises(SummaryError, match="There is no summary: No"):
        await summarise_branch(planned(fork, fork.first), model.ask, model.model)
    assert fork.session.get_leaf_id() == leaf
