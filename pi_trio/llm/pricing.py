"""What an answer costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import evolve

from pi_trio.llm.protocol import ModelCost
from pi_trio.messages import Cost, Usage

__all__ = ["price"]

_MILLION = 1_000_000


def price(usage: Usage, rates: ModelCost | None, billed: Any = None) -> Cost:
    """The cost of `usage` at the model's rates; all zero when the price is unknown.

    A total that the provider `billed` stands instead of the sum. A model may have dearer tiers
    for long input: the highest one reached holds for the whole request. A one-hour cache write
    costs twice the input rate.
    """
    cost = Cost() if rates is None else _by_rates(usage, rates)
    if isinstance(billed, (int, float)) and not isinstance(billed, bool):
        return evolve(cost, total=float(billed), total_from_provider=True)
    return cost


def _by_rates(usage: Usage, rates: ModelCost) -> Cost:
    tier = _tier(rates, usage.input + usage.cache_read + usage.cache_write)
    long_writes = usage.cache_write_1h or 0

    def rate(key: str, default: float) -> float:
        return float(tier.get(key, default))

    short_writes = usage.cache_write - long_writes
    writes = short_writes * rate("cacheWrite", rates.cache_write) + long_writes * 2 * rate(
        "input", rates.input
    )
    cost = Cost(
        input=usage.input * rate("input", rates.input) / _MILLION,
        output=usage.output * rate("output", rates.output) / _MILLION,
        cache_read=usage.cache_read * rate("cacheRead", rates.cache_read) / _MILLION,
        cache_write=writes / _MILLION,
    )
    return evolve(cost, total=cost.input + cost.output + cost.cache_read + cost.cache_write)


def _tier(rates: ModelCost, input_tokens: int) -> Mapping[str, Any]:
    tiers = rates.extra.get("tiers") or ()
    reached = [tier for tier in tiers if tier.get("inputTokensAbove", 0) < input_tokens]
    return max(reached, key=lambda tier: tier.get("inputTokensAbove", 0), default={})
