"""How large a context is."""

from __future__ import annotations

import pytest

from pi_trio.compaction.estimate import Meter, estimate, estimate_text, measure, told_size
from pi_trio.messages import (
    AssistantMessage,
    BashExecutionMessage,
    BranchSummaryMessage,
    CustomMessage,
    ImageContent,
    OpaqueContent,
    OpaqueMessage,
    SystemMessage,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    ToolSchema,
    Usage,
    UserMessage,
)
from pi_trio.session.entries import CompactionEntry, ContextEditEntry, CustomEntry, MessageEntry

TEXT = "x" * 401
SIZE = 101
"""Tokens of TEXT: rounded up."""


def answer(*blocks, **fields) -> AssistantMessage:
    return AssistantMessage(blocks, "a", "p", "m", **fields)


@pytest.mark.parametrize(
    ("message", "tokens"),
    [
        (UserMessage(TEXT), SIZE + 8),
        (UserMessage.of(TEXT), SIZE + 8),
        (answer(TextContent(TEXT)), SIZE + 8),
        (answer(TextContent(TEXT), TextContent(TEXT)), 2 * SIZE + 12),
        (answer(ThinkingContent(TEXT)), SIZE + 8),
        (answer(ThinkingContent("", TEXT, redacted=True)), SIZE + 8),
        (answer(ToolCall("c", "read", {"path": "a.py"})), 1 + 4 + 8),
        (ToolResultMessage("c", "read", (TextContent(TEXT),)), SIZE + 8),
        (UserMessage.of("", [ImageContent("A" * 100_000, "image/png")]), 4 + 4 + 4 + 1200),
        (UserMessage((OpaqueContent("audio", extra={"data": "0123456789"}),)), 4 + 4 + 6),
        (CustomMessage("note", TEXT), SIZE + 8),
        (SystemMessage("", {"rules": TEXT, "gone": None}, timestamp=0), SIZE + 4 + 8),
    ],
)
def test_one_rule_for_all_roles(message, tokens: int) -> None:
    """F1: rounded up block by block, a little for each block and role, whole numbers, images at a price."""
    assert estimate(message) == tokens


def test_the_form_that_models_know_is_what_counts() -> None:
    """F1, F10"""
    assert estimate(BashExecutionMessage(TEXT, TEXT)) > 2 * SIZE
    assert estimate(BashExecutionMessage(TEXT, TEXT, exclude_from_context=True)) == 0
    assert estimate(BranchSummaryMessage(TEXT)) > SIZE + 8
    assert estimate(answer(TextContent(TEXT), stop_reason="error")) == 0
    assert estimate(OpaqueMessage("other", extra={"content": TEXT})) == 0
    tools = (ToolSchema("read", "Reads.", {"type": "object"}),)
    assert estimate(SystemMessage("", tools_added=tools)) > estimate(SystemMessage("")) + 10


def test_text_is_rounded_up() -> None:
    assert [estimate_text("x" * length) for length in (0, 1, 4, 5)] == [0, 1, 1, 2]


@pytest.mark.parametrize(
    ("message", "size"),
    [
        (answer(usage=Usage(10, 5, 100, 20, total_tokens=135)), 135),
        (answer(usage=Usage(10, 5, 100, 20)), 135),  # a total is not always told
        (answer(usage=Usage(0, 5, 0, 0, total_tokens=5)), None),  # nor what was sent
        (answer(usage=Usage(10, 5, total_tokens=15), stop_reason="aborted"), None),
        (answer(usage=Usage(10, 5, total_tokens=15), stop_reason="error"), None),
        (answer(usage=Usage(10, 5, total_tokens=15), stop_reason="length"), 15),
        (answer(), None),
        (UserMessage.of("x"), None),
    ],
)
def test_what_providers_tell(message, size: int | None) -> None:
    assert told_size(message) == size


# ------------------------------------------------------------------ the meter


def test_a_told_size_is_the_base_of_what_follows(new_log) -> None:
    log = new_log()
    log.user(TEXT)
    log.step("c", TEXT, told=5_000)
    meter = measure(log.session)
    assert (meter.size, meter.measured) == (5_000 + SIZE + 8, True)
    meter.add(UserMessage.of(TEXT))
    assert meter.size == 5_000 + 2 * (SIZE + 8)
    meter.add(answer(usage=Usage(input=6_000, total_tokens=6_000)))
    assert meter.size == 6_000


def test_failed_requests_do_not_hide_the_size(new_log) -> None:
    """CP-05: the size comes from the last good usage and the text that is new, whatever failed since."""
    log = new_log()
    log.user()
    log.answer("ok", told=100_000)
    before = measure(log.session).size
    for _ in range(3):
        log.user("x" * 40_000)
        log.answer(stop="error")
    assert before == 100_000
    assert measure(log.session).size == 100_000 + 3 * (10_000 + 8)


@pytest.mark.parametrize("rewritten", ["compaction", "edit"])
def test_usage_from_before_a_rewrite_is_not_believed(new_log, rewritten: str) -> None:
    """CP-04: old numbers say nothing of the new context. F7: only what the context has is counted."""
    log = new_log()
    log.message(SystemMessage("", {"rules": TEXT}))
    first = log.user("x" * 400_000)
    kept = log.answer("ok", told=120_000)
    if rewritten == "compaction":
        log.add(CompactionEntry("short", kept))
    else:
        log.add(ContextEditEntry(first, None))
    meter = measure(log.session)
    assert not meter.measured
    assert 2 * SIZE > meter.size > SIZE
    log.user()
    log.answer("again", told=700)
    assert measure(log.session).size == 700
    assert measure(log.session).measured


def test_a_meter_that_grows_is_the_same_as_one_made_anew(new_log) -> None:
    log = new_log()
    log.message(SystemMessage("", {"rules": TEXT}))
    meter = measure(log.session)
    for told in (0, 900, 0, 1_000, 0):
        log.user(TEXT)
        log.step("c", TEXT, told=told)
        log.add(CustomEntry("note", {"text": TEXT}))
        for entry in log.session.get_branch()[-4:-1]:
            assert isinstance(entry, MessageEntry)
            meter.add(entry.message)
        assert meter.size == measure(log.session).size


def test_adding_looks_at_nothing_old() -> None:
    """The cost of a check per step does not depend on the history."""
    meter = Meter(None, (UserMessage.of(TEXT) for _ in range(1_000)))
    assert all(isinstance(each, int) for each in vars(meter).values())
    assert meter.size == 1_000 * (SIZE + 8)


def test_measuring_reads_back_to_the_last_usage_only(new_log, monkeypatch) -> None:
    log = new_log()
    for _ in range(100):
        log.user()
        log.answer("ok", told=50)
    read: list[str] = []
    entry = log.session.speech.read
    monkeypatch.setattr(log.session.speech, "read", lambda each: read.append(each) or entry(each))
    assert measure(log.session).size == 50
    assert len(read) == 1
