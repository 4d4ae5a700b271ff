"""Levels of thinking."""

from __future__ import annotations

import pytest

from pi_trio.llm.protocol import Model
from pi_trio.llm.thinking import clamp_level, provider_level, supported_levels

PLAIN = Model("plain")
THINKER = Model("thinker", reasoning=True)
MAPPED = Model(
    "mapped",
    reasoning=True,
    thinking_level_map={"off": "none", "minimal": None, "high": "hard", "max": "max"},
)


def test_levels_of_a_model() -> None:
    assert supported_levels(PLAIN) == ("off",)
    assert supported_levels(THINKER) == ("off", "minimal", "low", "medium", "high")
    assert supported_levels(MAPPED) == ("off", "low", "medium", "high", "max")


@pytest.mark.parametrize(
    ("model", "level", "clamped"),
    [
        (THINKER, "medium", "medium"),
        (THINKER, "max", "high"),
        (MAPPED, "minimal", "low"),
        (MAPPED, "xhigh", "max"),
        (PLAIN, "high", "off"),
    ],
)
def test_missing_level_is_the_next_higher_else_the_next_lower(model: Model, level, clamped) -> None:
    assert clamp_level(model, level) == clamped


@pytest.mark.parametrize(
    ("model", "level", "sent"),
    [
        (PLAIN, "high", None),
        (THINKER, "off", None),
        (THINKER, "low", "low"),
        (MAPPED, "high", "hard"),
        (MAPPED, "off", "none"),
    ],
)
def test_what_is_sent(model: Model, level, sent: str | None) -> None:
    assert provider_level(model, level) == sent
