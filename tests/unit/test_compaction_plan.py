"""When compaction is due, and what it is to stand for."""

from __future__ import annotations

import pytest

from pi_trio.compaction.estimate import estimate_all, measure
from pi_trio.compaction.plan import CompactionSettings, Nothing, Plan, make_plan
from pi_trio.compaction.summary import Summary
from pi_trio.messages import CompactionSummaryMessage, SystemMessage, Usage, text_of
from pi_trio.session import facts
from pi_trio.session.entries import CompactionEntry, CustomEntry, ModelChangeEntry
from pi_trio.session.session import Session

TEXT = "x" * 400
SIZE = 108


def texts(messages) -> list[str]:
    return [text_of(each.content) or "call" for each in messages]


def planned(session: Session, keep: int) -> Plan:
    plan = make_plan(session, keep=keep, size=measure(session).size)
    assert isinstance(plan, Plan)
    return plan


# ------------------------------------------------------------------ when


@pytest.mark.parametrize(
    ("settings", "window", "size", "due"),
    [
        (CompactionSettings(), 128_000, 111_616, False),
        (CompactionSettings(), 128_000, 111_617, True),
        (CompactionSettings(enabled=False), 128_000, 500_000, False),
        (CompactionSettings(reserve_tokens=0), 128_000, 128_000, False),
        (CompactionSettings(reserve_tokens=0), 128_000, 128_001, True),
        (CompactionSettings(fraction=0.8), 128_000, 102_400, False),
        (CompactionSettings(fraction=0.8), 128_000, 102_401, True),
        (CompactionSettings(), 8_000, 4_000, False),
        (CompactionSettings(), 8_000, 4_001, True),
        (CompactionSettings(), 0, 500_000, False),
    ],
)
def test_due(settings: CompactionSettings, window: int, size: int, due: bool) -> None:
    """E54, F30: the boundaries; never when disabled. L56: below the trigger nothing is done."""
    assert settings.presses(size, window) is due


@pytest.mark.parametrize(
    ("window", "keep", "after_overflow"),
    [(200_000, 20_000, 20_000), (64_000, 20_000, 12_500), (8_000, 2_000, 2_000), (0, 20_000, 12_500)],
)
def test_how_much_is_kept(window: int, keep: int, after_overflow: int) -> None:
    """E55: a small window keeps less, and so does a context that was too large for a window we misjudge."""
    settings = CompactionSettings()
    assert settings.keep(window) == keep
    size = 300_000 if window == 200_000 else 50_000
    assert settings.keep_after_overflow(size, window) == after_overflow


# ------------------------------------------------------------------ what


def test_twenty_thousand_tokens_are_kept(new_log) -> None:
    """E55, F2: at least what was asked for, and no more than one message beyond it."""
    log = new_log()
    for _ in range(300):
        log.user(TEXT)
        log.answer(TEXT)
    plan = planned(log.session, CompactionSettings().keep(128_000))
    assert 20_000 <= plan.kept_tokens < 20_000 + SIZE
    assert plan.covered_tokens + plan.kept_tokens == 600 * SIZE


def test_the_halves_are_disjoint_and_whole(new_log) -> None:
    """F3, F5: the id of the first kept entry, so that nothing is in both halves and nothing in none."""
    log = new_log()
    for number in range(6):
        log.user(f"q{number} {TEXT}")
        log.answer(f"a{number} {TEXT}")
    before = log.session.build_context().messages
    plan = planned(log.session, 4 * SIZE)
    assert (*plan.history, *plan.turn) == plan.covered == before[: len(plan.covered)]
    log.add(Summary("sum", Usage()).entry(plan))
    after = log.session.build_context().messages
    assert after[0].summary == "sum"
    assert after[1:] == before[len(plan.covered) :]


def test_a_parted_turn_is_told_apart(new_log) -> None:
    log = new_log()
    log.user("first")
    log.answer("done")
    log.user("second")
    log.step("1", TEXT)
    log.step("2", TEXT)
    plan = planned(log.session, SIZE)
    assert texts(plan.history) == ["first", "done"]
    assert texts(plan.turn) == ["second", "call", TEXT]
    whole = planned(log.session, 240)
    assert (texts(whole.history), whole.turn) == (["first", "done"], ())


def test_a_second_plan_covers_only_what_is_new(new_log) -> None:
    """E57, F8: from the first entry that the previous summary kept, with that summary."""
    log = new_log()
    for number in range(3):
        log.user(f"old {number} {TEXT}")
    kept = log.user(f"kept {TEXT}")
    log.add(CompactionEntry("what was", kept, details={"readFiles": ["a"], "modifiedFiles": ["b"]}))
    log.user(f"new {TEXT}")
    last = log.user(f"last {TEXT}")
    plan = planned(log.session, SIZE)
    assert [each[:4] for each in texts(plan.history)] == ["kept", "new "]
    assert plan.previous == "what was"
    assert isinstance(plan.covered[0], CompactionSummaryMessage)
    assert plan.covered[1:] == plan.history
    assert plan.first_kept_id == last
    assert plan.covered_tokens == estimate_all(plan.covered)


@pytest.mark.parametrize("from_hook", [False, True, None])
def test_files_go_on_from_summary_to_summary(new_log, from_hook: bool | None) -> None:
    """E58, F26: an extension's own details are its own."""
    log = new_log()
    log.user(TEXT)
    details = {"readFiles": ["a", "c", 7], "modifiedFiles": ["b"]}
    log.add(CompactionEntry("sum", "none", details=details, from_hook=from_hook))
    log.user(TEXT)
    log.answer("", ("1", "read", "b"), ("2", "edit", "c"), ("3", "write", "d"), ("4", "write", "e"))
    log.result("1")
    log.result("2")
    log.result("3", error=True)
    log.user(TEXT)
    expected = {"readFiles": ["a"], "modifiedFiles": ["b", "c", "e"]}
    if from_hook:
        expected = {"readFiles": ["b"], "modifiedFiles": ["c", "e"]}
    assert planned(log.session, SIZE).files.details() == expected


def test_the_entry_has_all_that_a_reader_needs(new_log) -> None:
    """E59, CP-09: the rules of a project are in the prompt, and the prompt goes through compaction."""
    log = new_log()
    log.message(SystemMessage("", {"rules": "Never push.", "cwd": "/a"}))
    log.user(TEXT)
    log.message(SystemMessage("", {"cwd": "/b"}))
    log.answer("", ("1", "read", "a.py"))
    log.result("1")
    last = log.user(TEXT)
    for _ in range(2):
        plan = planned(log.session, SIZE)
        entry = log.session.append(Summary("sum", Usage(input=7)).entry(plan))
        assert entry.system_message is not None
        assert entry.system_message.sections == {"rules": "Never push.", "cwd": "/b"}
        assert log.session.build_context().system_message == entry.system_message
        assert entry.first_kept_entry_id == last
        assert entry.tokens_before == plan.tokens_before > 2 * SIZE
        assert entry.details == {"readFiles": ["a.py"], "modifiedFiles": []}
        assert (entry.usage, entry.from_hook) == (Usage(input=7), False)
        last = log.user(TEXT)


def test_facts_stay_with_what_they_are_about(new_log) -> None:
    """The start of a call goes where its answer goes, so that a repair after a crash still knows it."""
    log = new_log()
    log.user(TEXT)
    log.answer("ok")
    begin = log.add(facts.fact(facts.STEP_START, log.session.id))
    log.add(ModelChangeEntry("p", "m"))
    log.answer("", "1", "2")
    log.add(facts.fact(facts.TOOL_CALL, log.session.id, callId="1"))
    log.add(CustomEntry("note", TEXT))
    plan = planned(log.session, 1)
    assert plan.first_kept_id == begin
    log.add(Summary("sum", Usage()).entry(plan))
    results = log.session.build_context().messages[-2:]
    assert [each.details["code"] for each in results] == ["outcome_unknown", "not_started"]


# ------------------------------------------------------------------ nothing


def test_a_small_session_has_nothing_to_compact(new_log) -> None:
    """F2"""
    log = new_log()
    assert isinstance(make_plan(log.session, keep=0, size=0), Nothing)
    log.user()
    assert isinstance(make_plan(log.session, keep=0, size=10), Nothing)
    log.answer("ok")
    nothing = make_plan(log.session, keep=20_000, size=20)
    assert isinstance(nothing, Nothing)
    assert "little enough to keep" in nothing.reason


def test_what_was_just_compacted_is_not_compacted_again(new_log) -> None:
    """CP-02: facts may follow the summary; nothing that is said does."""
    log = new_log()
    log.user()
    log.user()
    log.add(CompactionEntry("sum", "none"))
    log.add(CustomEntry("compaction/end"))
    nothing = make_plan(log.session, keep=0, size=20)
    assert isinstance(nothing, Nothing)
    assert nothing.reason.startswith("Already compacted")


def test_nothing_after_a_compaction_that_kept_a_tail(new_log) -> None:
    """CP-02: asked for twice at once, the second one finds the tail of the first and leaves it."""
    log = new_log()
    for _ in range(8):
        log.user(TEXT)
    log.add(Summary("sum", Usage()).entry(planned(log.session, 2 * SIZE)))
    nothing = make_plan(log.session, keep=2 * SIZE, size=300)
    assert isinstance(nothing, Nothing)
    assert nothing.reason.startswith("Already compacted")
    assert texts(planned(log.session, SIZE).history) == [TEXT]  # an overflow may ask for more
