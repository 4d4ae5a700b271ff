"""How long a provider asks to wait: in the headers of a refusal, or in its words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from pi_trio.llm.loose import get, objects, text

__all__ = ["asked_wait", "retry_after", "spoken"]

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_ASKED = re.compile(
    r"(?:try again|retry|reset)\w*\s+(?:in|after)\s+(?:(?P<parts>(?:\d+(?:\.\d+)?(?:ms|[smhd]))+)(?![a-z])"
    r"|(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>milliseconds?|seconds?|minutes?|hours?))",
    re.IGNORECASE,
)
_LONGEST_EPOCH_SECONDS = 1e11  # a larger number of an epoch is milliseconds


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The wait in seconds that the headers ask for; None if they ask for none that makes sense.

    Where nothing is asked for, it is the time until a limit that was used up is renewed.
    """
    asked = (
        _milliseconds(headers.get("retry-after-ms", "")),
        _seconds_or_date(headers.get("retry-after", "")),
    )
    for seconds in (*asked, max(_renewals(headers), default=None)):
        if seconds is not None and 0 < seconds < float("inf"):
            return seconds
    return None


def asked_wait(error: Any, words: str) -> float | None:
    """The wait in seconds that an error object or its message asks for."""
    for detail in objects(get(get(error, "error"), "details")):
        if text(detail, "retryDelay"):
            return _duration(text(detail, "retryDelay"))
    found = _ASKED.search(words)
    if found is None:
        return None
    if found["parts"]:
        return _duration(found["parts"])
    unit = "ms" if found["unit"].lower().startswith("milli") else found["unit"][0].lower()
    return float(found["number"]) * _UNITS[unit] or None


def spoken(seconds: float) -> str:
    """A duration for a person: `45 s`, `3 min`, `1 h 30 min`."""
    minutes = round(seconds / 60)
    if seconds < 120:
        return f"{seconds:.0f} s"
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60} h" + (f" {minutes % 60} min" if minutes % 60 else "")


# ------------------------------------------------------------------ ways to say it


def _renewals(headers: Mapping[str, str]) -> Iterator[float]:
    """Seconds until each used-up limit is renewed, from pairs such as `…-remaining` and `…-reset`."""
    for name, value in headers.items():
        lower = name.lower()
        if "ratelimit" not in lower or "reset" not in lower:
            continue
        remaining = headers.get(lower.replace("reset", "remaining"), "")
        seconds = _until(value)
        if remaining.strip() == "0" and seconds is not None and seconds > 0:
            yield seconds


def _until(value: str) -> float | None:
    """`6m0s`, `12` (seconds), seconds or milliseconds of the epoch, or a date."""
    if (duration := _duration(value)) is not None:
        return duration
    try:
        number = float(value)
    except ValueError:
        return _seconds_until(value)
    now = datetime.now(UTC).timestamp()
    if number < now / 2:
        return number
    return (number / 1000 if number > _LONGEST_EPOCH_SECONDS else number) - now


def _duration(value: str) -> float | None:
    parts = _DURATION.findall(value)
    if not parts or "".join(number + unit for number, unit in parts) != value.strip():
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in parts) or None


def _milliseconds(value: str) -> float | None:
    try:
        return float(value) / 1000
    except ValueError:
        return None


def _seconds_or_date(value: str) -> float | None:
    try:
        return float(value)
    except ValueError:
        return _seconds_until(value)


def _seconds_until(date: str) -> float | None:
    try:
        then = datetime.fromisoformat(date) if date[4:5] == "-" else parsedate_to_datetime(date)
    except ValueError:
        return None
    if then.tzinfo is None:
        then = then.replace(tzinfo=UTC)
    return (then - datetime.now(UTC)).total_seconds()
