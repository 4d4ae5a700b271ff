"""How long a provider asks to wait."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from pi_trio.llm.waits import asked_wait, retry_after, spoken


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "3600"}, 3600),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "0", "retry-after": "1"}, 1),
        ({"retry-after": "0"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "abc"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "Mon, 99 Foo 2026"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, None),
        ({}, None),
    ],
)
def test_wait_of_the_provider(headers: dict[str, str], seconds: float | None) -> None:
    """RT-02: what makes no sense asks for nothing."""
    assert retry_after(headers) == seconds


@pytest.mark.parametrize("weekday", range(7))
def test_wait_until_a_date(weekday: int) -> None:
    """RT-02: on every day of the week, some of whose names look like the beginning of another notation."""
    now = datetime.now(UTC)
    then = now + timedelta(days=7 + weekday)
    waited = retry_after({"retry-after": format_datetime(then, usegmt=True)})
    assert waited is not None
    assert -10 < waited - (then - now).total_seconds() <= 0


def in_two_minutes() -> datetime:
    return datetime.now(UTC) + timedelta(seconds=120)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6m0s"}, 360),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "120ms"}, 0.12),
        ({"x-ratelimit-remaining-requests": "7", "x-ratelimit-reset-requests": "1h"}, None),
        ({"x-ratelimit-reset-requests": "1h"}, None),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "12"}, 12),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "soon"}, None),
        (
            {
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-requests": "2s",
                "x-ratelimit-remaining-tokens": "0",
                "x-ratelimit-reset-tokens": "9s",
            },
            9,
        ),
        ({"retry-after": "1", "x-ratelimit-remaining": "0", "x-ratelimit-reset": "12"}, 1),
    ],
)
def test_limits_that_are_used_up_say_when_they_are_renewed(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert retry_after(headers) == seconds


@pytest.mark.parametrize(
    "written",
    [
        lambda moment: moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
        lambda moment: str(round(moment.timestamp())),
        lambda moment: str(round(moment.timestamp() * 1000)),
    ],
    ids=["iso", "seconds", "milliseconds"],
)
def test_renewal_may_be_a_moment(written: Callable[[datetime], str]) -> None:
    value = written(in_two_minutes())
    headers = {"anthropic-ratelimit-requests-remaining": "0", "anthropic-ratelimit-requests-reset": value}
    waited = retry_after(headers)
    assert waited is not None
    assert 0 < waited <= 121


@pytest.mark.parametrize(
    ("error", "words", "seconds"),
    [
        ({"error": {"details": [{"@type": "x"}, {"retryDelay": "48s"}]}}, "", 48),
        (None, "Please retry in 48.939935699s.", 48.939935699),
        (None, "Rate limit reached. Please try again in 1m12.5s. Visit", 72.5),
        (None, "Please try again in 20ms.", 0.02),
        (None, "Retry after 30 seconds", 30),
        (None, "try again in 2 Minutes", 120),
        (None, "try again in a while", None),
        (None, "try again in 5 attempts", None),
        (None, "try again in 5some", None),
    ],
)
def test_words_may_ask_for_a_wait(error: Any, words: str, seconds: float | None) -> None:
    assert asked_wait(error, words) == seconds


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(1.4, "1 s"), (119, "119 s"), (180, "3 min"), (3600, "1 h"), (5400, "1 h 30 min")],
)
def test_durations_for_people(seconds: float, words: str) -> None:
    assert spoken(seconds) == words
