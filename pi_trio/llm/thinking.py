"""Thinking levels: which of them a model has, and what its provider calls them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from pi_trio.llm.protocol import Model, ThinkingLevel

__all__ = ["LEVELS", "budget_tokens", "clamp_level", "provider_level", "supported_levels"]

LEVELS: tuple[ThinkingLevel, ...] = get_args(ThinkingLevel)

_NEED_A_MAPPING = ("xhigh", "max")
_BUDGETS = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16_384}


def supported_levels(model: Model) -> tuple[ThinkingLevel, ...]:
    """The levels of a model, weakest first. One that does not reason has only `off`."""
    if not model.reasoning:
        return ("off",)
    mapping = model.thinking_level_map or {}

    def supported(level: ThinkingLevel) -> bool:
        if level in mapping:
            return mapping[level] is not None
        return level not in _NEED_A_MAPPING

    return tuple(level for level in LEVELS if supported(level))


def clamp_level(model: Model, level: ThinkingLevel) -> ThinkingLevel:
    """The level itself if the model has it, else the next higher one, else the next lower."""
    supported = supported_levels(model)
    if level in supported:
        return level
    place = LEVELS.index(level)
    higher = [each for each in supported if LEVELS.index(each) > place]
    return higher[0] if higher else supported[-1] if supported else "off"


def provider_level(model: Model, level: ThinkingLevel) -> str | None:
    """What to send for `level`; None when nothing is to be said about thinking."""
    if not model.reasoning:
        return None
    clamped = clamp_level(model, level)
    mapped = (model.thinking_level_map or {}).get(clamped)
    return mapped if mapped is not None or clamped == "off" else clamped


def budget_tokens(
    level: ThinkingLevel, own: Mapping[str, int] | None, usual: Mapping[str, int] = _BUDGETS
) -> int:
    """The tokens that `level` may take, for providers that count them; `own` are the user's figures."""
    name = "high" if level in _NEED_A_MAPPING else level
    return (own or {}).get(name, usual[name])
