"""Room is made when it is needed, and never for ever."""

from __future__ import annotations

import pytest

from pi_trio.compaction.estimate import Meter
from pi_trio.compaction.plan import CompactionSettings
from pi_trio.compaction.recovery import Overflow, Pressure, overflowed
from pi_trio.llm.failures import http_failure
from pi_trio.llm.protocol import Failure
from pi_trio.messages import AssistantMessage, Usage, UserMessage


def told(size: int) -> Meter:
    meter = Meter()
    meter.add(AssistantMessage((), usage=Usage(input=size)))
    return meter


def guessed(size: int) -> Meter:
    return Meter(None, [UserMessage("x" * 4 * (size - 8))])


# ------------------------------------------------------------------ pressure


def test_each_crossing_is_answered_once() -> None:
    pressure = Pressure(CompactionSettings())
    assert pressure.verdict(told(111_616), 128_000) == "fits"
    assert pressure.verdict(told(111_617), 128_000) == "compact"
    pressure.tried(told(111_617), 128_000)
    assert pressure.verdict(guessed(25_000), 128_000) == "fits"
    assert pressure.verdict(told(26_000), 128_000) == "fits"
    assert pressure.verdict(told(111_700), 128_000) == "compact"


def test_what_did_not_help_is_not_repeated_at_once() -> None:
    """59, CP-01: after a failure the turn goes on; the next try is for a quarter of the reserve more."""
    pressure = Pressure(CompactionSettings())
    pressure.tried(told(112_000), 128_000)
    assert pressure.verdict(told(112_000), 128_000) == "fits"
    assert pressure.verdict(told(116_095), 128_000) == "fits"
    assert pressure.verdict(told(116_096), 128_000) == "compact"
    assert pressure.verdict(told(112_000), 120_000) == "compact"  # another window is another question


@pytest.mark.parametrize("estimate", [1_000, 3_900, 7_700])
def test_a_context_that_cannot_be_made_to_fit_ends_with_the_numbers(estimate: int) -> None:
    """CP-01: a window of 8,000, and 8,200 told with every answer, whatever the estimate says."""
    pressure, window, requests = Pressure(CompactionSettings()), 8_000, 0
    meter = guessed(estimate)
    while (verdict := pressure.verdict(meter, window)) != "full":
        assert requests < 4
        if verdict == "compact":
            requests += 1  # the summary
            pressure.tried(meter, window)
            meter = guessed(estimate)
        else:
            requests += 1
            meter = told(8_200)
    assert requests <= 3
    complaint = pressure.complaint(meter.size, window)
    assert "8,200" in complaint
    assert "8,000" in complaint


def test_providers_that_tell_nothing_are_believed_by_estimate() -> None:
    pressure = Pressure(CompactionSettings())
    for _ in range(20):
        assert pressure.verdict(guessed(112_000), 128_000) == "compact"
        pressure.tried(guessed(112_000), 128_000)
        assert pressure.verdict(guessed(25_000), 128_000) == "fits"


def test_nothing_is_due_when_disabled() -> None:
    """F30"""
    assert Pressure(CompactionSettings(enabled=False)).verdict(told(300_000), 128_000) == "fits"


# ------------------------------------------------------------------ overflow


TOO_LONG = Failure("400 prompt is too long: 210000 > 200000", "context_overflow")


def test_one_recovery_for_an_overflow() -> None:
    """57, 58, CP-01: the second failure is the end, with the original words and what was tried."""
    overflow = Overflow(CompactionSettings())
    assert overflow.begin(TOO_LONG)
    overflow.note("shortened 3 tool results")
    assert overflow.retry(before=210_000, after=180_000)  # pruning alone is enough for a retry
    overflow.note("the summary failed: no text")
    assert not overflow.begin(TOO_LONG)
    assert overflow.explain(TOO_LONG) == (
        "400 prompt is too long: 210000 > 200000"
        " (Tried: shortened 3 tool results; the summary failed: no text.)"
    )
    overflow.settled()
    assert overflow.explain(TOO_LONG) == TOO_LONG.message
    assert overflow.begin(TOO_LONG)


@pytest.mark.parametrize("after", [100, 101])
def test_no_retry_without_a_smaller_context(after: int) -> None:
    """57"""
    assert not Overflow.retry(before=100, after=after)


@pytest.mark.parametrize("code", ["rate_limit", "invalid_request", "overloaded", "unknown"])
def test_only_an_overflow_is_one(code) -> None:
    """54"""
    assert not Overflow(CompactionSettings()).begin(Failure("400 no", code))


def test_disabled_means_for_overflows_too() -> None:
    """F30"""
    assert not Overflow(CompactionSettings(enabled=False)).begin(TOO_LONG)


@pytest.mark.parametrize(
    ("status", "words", "begins"),
    [
        (429, "tokens per minute exceeded, maximum 8000", False),
        (400, "prompt is too long: 210000 > 200000", True),
    ],
)
def test_a_rate_limit_is_no_overflow(status: int, words: str, begins: bool) -> None:
    """RT-01"""
    failure = http_failure(status, {}, f'{{"error": {{"message": "{words}"}}}}'.encode())
    assert Overflow(CompactionSettings()).begin(failure) is begins


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (AssistantMessage((), raw_stop_reason="model_context_window_exceeded", stop_reason="length"), True),
        (AssistantMessage((), usage=Usage(input=900, cache_read=101)), True),
        (AssistantMessage((), usage=Usage(input=900, cache_read=100)), False),
        (AssistantMessage((), usage=Usage(input=990), stop_reason="length"), True),
        (AssistantMessage((), usage=Usage(input=989), stop_reason="length"), False),
        (AssistantMessage((), usage=Usage(input=990, output=1), stop_reason="length"), False),
        (AssistantMessage((), usage=Usage(input=2_000), stop_reason="toolUse"), False),
    ],
)
def test_answers_that_hide_an_overflow(message: AssistantMessage, expected: bool) -> None:
    """RT-01: the finish reason of some providers; others cut the conversation or have no room to answer."""
    assert overflowed(message, 1_000) is expected
    assert overflowed(message, 0) is (message.raw_stop_reason is not None)
