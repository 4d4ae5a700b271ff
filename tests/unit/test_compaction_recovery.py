"""Room is made when it is needed, and never for ever.

E numbers are rows of the agent's checklist, L numbers of the lifecycle's.
"""

from __future__ import annotations

import pytest

from pi_trio.compaction.estimate import Meter, estimate_all, estimated
from pi_trio.compaction.plan import CompactionSettings, Plan, make_plan
from pi_trio.compaction.prune import prune
from pi_trio.compaction.recovery import Overflow, Pressure, overflowed
from pi_trio.compaction.summary import summarise
from pi_trio.compaction.surface import surface_of
from pi_trio.llm.failures import http_failure
from pi_trio.llm.protocol import Context, Done, Failed, Failure, Model, StreamOptions
from pi_trio.loop.convert import convert_messages
from pi_trio.messages import AssistantMessage, Usage, UserMessage
from pi_trio.testing import ScriptedModel


def told(size: int) -> Meter:
    meter = Meter()
    meter.add(AssistantMessage((), usage=Usage(input=size)))
    return meter


def guessed(size: int) -> Meter:
    return Meter(None, [UserMessage("x" * 4 * (size - 8))])


SETTINGS = CompactionSettings()

# ------------------------------------------------------------------ pressure


def test_each_crossing_is_answered_once() -> None:
    pressure = Pressure()
    assert pressure.verdict(told(111_616), 128_000, SETTINGS) == "fits"
    assert pressure.verdict(told(111_617), 128_000, SETTINGS) == "compact"
    pressure.tried(told(111_617), 128_000, SETTINGS)
    assert pressure.verdict(guessed(25_000), 128_000, SETTINGS) == "fits"
    assert pressure.verdict(told(26_000), 128_000, SETTINGS) == "fits"
    assert pressure.verdict(told(111_700), 128_000, SETTINGS) == "compact"


def test_what_did_not_help_is_not_repeated_at_once() -> None:
    """L59, CP-01: after a failure the turn goes on; the next try is for a quarter of the reserve more."""
    pressure = Pressure()
    pressure.tried(told(112_000), 128_000, SETTINGS)
    assert pressure.verdict(told(112_000), 128_000, SETTINGS) == "fits"
    assert pressure.verdict(told(116_095), 128_000, SETTINGS) == "fits"
    assert pressure.verdict(told(116_096), 128_000, SETTINGS) == "compact"
    assert pressure.verdict(told(112_000), 120_000, SETTINGS) == "compact"  # another question


@pytest.mark.parametrize("estimate", [1_000, 3_900, 7_700])
def test_a_context_that_cannot_be_made_to_fit_ends_with_the_numbers(estimate: int) -> None:
    """CP-01: a window of 8,000, and 8,200 told with every answer, whatever the estimate says."""
    pressure, window, requests = Pressure(), 8_000, 0
    meter = guessed(estimate)
    while (verdict := pressure.verdict(meter, window, SETTINGS)) != "full":
        assert requests < 4
        if verdict == "compact":
            requests += 1  # the summary
            pressure.tried(meter, window, SETTINGS)
            meter = guessed(estimate)
        else:
            requests += 1
            meter = told(8_200)
    assert requests <= 3
    complaint = pressure.complaint(meter.size, window)
    assert "8,200" in complaint
    assert "8,000" in complaint


def test_providers_that_tell_nothing_are_believed_by_estimate() -> None:
    pressure = Pressure()
    for _ in range(20):
        assert pressure.verdict(guessed(112_000), 128_000, SETTINGS) == "compact"
        pressure.tried(guessed(112_000), 128_000, SETTINGS)
        assert pressure.verdict(guessed(25_000), 128_000, SETTINGS) == "fits"


def test_nothing_is_due_when_disabled() -> None:
    """F30"""
    assert Pressure().verdict(told(300_000), 128_000, CompactionSettings(enabled=False)) == "fits"


# ------------------------------------------------------------------ overflow


class Narrow(ScriptedModel):
    """Refuses what does not fit into its window, as its own count has it."""

    async def ask(self, context: Context) -> AssistantMessage:
        size = estimate_all(context.messages)
        answer = TOO_LONG if size > self.model.context_window else f"Answer to {size} tokens."
        self.add(answer)
        async with self(self.model, context, StreamOptions()) as events:
            *_, last = [event async for event in events]
        assert isinstance(last, (Done, Failed))
        return last.message


@pytest.mark.parametrize("window", [200_000, 130_000])
async def test_a_conversation_of_200_000_tokens(new_log, window: int) -> None:
    """L54 to L58 on one overflow: one pruning, one summary, one more request, and it is answered.

    The model may be sure of a larger window than its provider has.
    """
    log = new_log()
    for number in range(40):
        log.user(f"Question {number}. " + "word " * 2_000)
        log.answer("", (str(number), "read", f"{number}.py"))
        log.result(str(number), "line\n" * 3_200)
    session, settings = log.session, CompactionSettings()
    believed = Model("scripted", provider="scripted", context_window=200_000)
    model = Narrow((), Model("scripted", provider="scripted", context_window=window))
    overflow, before = Overflow(), estimated(session).size
    assert before > 200_000

    assert overflow.begin(TOO_LONG)
    for pruned in prune(surface_of(session).nodes):
        for entry in pruned.entries(session.id):
            session.append(entry)
    keep = settings.keep_after_overflow(before, believed.context_window)
    plan = make_plan(session, keep=keep, size=before)
    assert isinstance(plan, Plan)
    summary = await summarise(plan, model.ask, believed, too_large=before)
    session.append(summary.entry(plan))
    assert len(model.requests) == 2  # the history, and the first part of the turn that is cut

    after = estimated(session).size
    assert overflow.retry(before, after)
    answer = await model.ask(Context("", convert_messages(session.build_context().messages)))
    assert answer.stop_reason == "stop"
    types = [head.type for head in session.heads if head.type in ("context_edit", "compaction")]
    assert types == ["context_edit"] * 40 + ["compaction"]


TOO_LONG = Failure("400 prompt is too long: 210000 > 200000", "context_overflow")


def test_one_recovery_for_an_overflow() -> None:
    """L57, L58, CP-01: the second failure is the end, with the original words and what was tried."""
    overflow = Overflow()
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
    """L57"""
    assert not Overflow.retry(before=100, after=after)


@pytest.mark.parametrize("code", ["rate_limit", "invalid_request", "overloaded", "unknown"])
def test_only_an_overflow_is_one(code) -> None:
    """L54"""
    assert not Overflow().begin(Failure("400 no", code))


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
    assert Overflow().begin(failure) is begins


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
