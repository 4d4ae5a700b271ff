"""What an answer costs."""

from __future__ import annotations

import pytest

from pi_trio.llm.pricing import price
from pi_trio.llm.protocol import ModelCost
from pi_trio.messages import Cost, Usage

RATES = ModelCost(3, 15, 0.3, 3.75)


def test_unknown_price_costs_nothing_known() -> None:
    assert price(Usage(input=1000), None) == Cost()


def test_cost_is_the_sum_of_four() -> None:
    """PQ-05"""
    cost = price(Usage(input=1000, output=200, cache_read=5000, cache_write=400), RATES)
    parts = (cost.input, cost.output, cost.cache_read, cost.cache_write)
    assert parts == pytest.approx((0.003, 0.003, 0.0015, 0.0015))
    assert cost.total == pytest.approx(0.009)


def test_one_hour_cache_writes_cost_twice_the_input() -> None:
    cost = price(Usage(cache_write=300, cache_write_1h=100), RATES)
    assert cost.cache_write == pytest.approx((200 * 3.75 + 100 * 6) / 1e6)


def test_highest_tier_that_is_reached_holds_for_the_whole_request() -> None:
    tiers = [{"inputTokensAbove": 200, "input": 6}, {"inputTokensAbove": 1000, "input": 9, "output": 20}]
    rates = ModelCost(3, 15, 0.3, extra={"tiers": tiers})
    assert price(Usage(input=200), rates).input == pytest.approx(200 * 3 / 1e6)
    assert price(Usage(input=100, cache_read=101), rates).input == pytest.approx(100 * 6 / 1e6)
    assert price(Usage(input=2000, output=10), rates).total == pytest.approx((2000 * 9 + 10 * 20) / 1e6)
