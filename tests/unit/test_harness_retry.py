"""The retry policy: a pure function of the failure, the attempt and one random number."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_trio.harness.retry import PASSING, RetryPolicy
from pi_trio.llm.protocol import Failure, FailureCode

POLICY = RetryPolicy(max_retries=9, base_delay=2.0, max_delay=10.0)


def delay(
    failure: Failure, attempt: int = 1, chance: float = 0.0, policy: RetryPolicy = POLICY
) -> float | None:
    retry = policy.retry(failure, attempt, chance)
    return retry.delay if retry else None


def test_a_policy_can_be_switched_off() -> None:
    policy = RetryPolicy(enabled=False)
    assert policy.retry(Failure("busy", "overloaded"), 1) is None


def test_waits_double_up_to_a_limit() -> None:
    assert [delay(Failure("busy", "server"), attempt) for attempt in range(1, 5)] == [2, 4, 8, 10]
    assert delay(Failure("busy", "server"), 10) is None


@pytest.mark.parametrize("code", FailureCode.__args__)
def test_only_what_may_pass_is_tried_again(code: FailureCode) -> None:
    assert (delay(Failure("x", code)) is not None) is (code in PASSING)


@pytest.mark.parametrize(
    ("wish", "longest", "waited"),
    [(7.0, 60.0, 7.0), (60.0, 60.0, 60.0), (61.0, 60.0, None), (3600.0, None, 3600.0), (0.1, 60.0, 0.1)],
)
def test_wish_of_the_provider(wish: float, longest: float | None, waited: float | None) -> None:
    """RT-02: honoured in full, whatever chance says, or not at all."""
    policy = RetryPolicy(longest_wish=longest)
    assert delay(Failure("slow", "rate_limit", retry_after=wish), chance=0.9, policy=policy) == waited


@given(st.integers(1, 10_000), st.floats(0, 1))
def test_chance_takes_off_at_most_a_quarter(attempt: int, chance: float) -> None:
    policy = RetryPolicy(max_retries=10_000)
    longest = delay(Failure("busy", "overloaded"), attempt, policy=policy)
    waited = delay(Failure("busy", "overloaded"), attempt, chance, policy)
    assert longest is not None
    assert waited is not None
    assert 0.75 * longest <= waited <= longest <= 60
