"""What the loop itself costs: `python tests/bench/loop.py`. Prints medians of five runs.

A scripted model answers at once, so what is measured is the runtime: steps with one trivial
tool call at two lengths of history, calls in one batch, 50,000 deltas through loop and one
outbox, and the fan-out of events to 1 and 8 outboxes.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Awaitable, Callable, Mapping
from statistics import median
from typing import Any

import trio

from pi_trio import Agent, Outbox, Tool, ToolResult, TurnStart
from pi_trio.hub import Hub
from pi_trio.testing import Call, ScriptedModel, Text


async def _echo(call_id: str, args: Mapping[str, Any], on_update: Any) -> ToolResult:
    return ToolResult("ok")


ECHO = Tool(
    name="echo",
    description="Says ok.",
    parameters={"type": "object", "properties": {"n": {"type": "integer"}}},
    execute=_echo,
)


def _agent(*answers: Any) -> Agent:
    model = ScriptedModel(answers)
    return Agent(model=model.model, stream_fn=model, tools=[ECHO])


async def steps(count: int) -> float:
    """Steps with one tool call each, a second."""
    agent = _agent(*[Call("echo", {"n": 1})] * count, "done")
    return (count + 1) / await _timed(lambda: agent.prompt("go"))


async def calls(count: int) -> float:
    """Calls of one batch, a second."""
    agent = _agent([Call("echo", {"n": 1})] * count, "done")
    return count / await _timed(lambda: agent.prompt("go"))


async def deltas(count: int) -> float:
    """Text deltas through the loop and one outbox that is read when it wakes, a second."""
    agent = _agent(Text(("word ",) * count))
    async with agent.open_events() as events, trio.open_nursery() as nursery:

        async def read() -> None:
            async for _ in events:
                pass

        nursery.start_soon(read)
        return count / await _timed(lambda: agent.prompt("go"))


async def fan_out(subscribers: int, count: int = 50_000) -> float:
    """Events to this many outboxes, a second."""
    hub = Hub(lambda event: None)
    for _ in range(subscribers):
        hub.attach(Outbox(lambda: None, limit=count + 1))

    async def emit() -> None:
        event = TurnStart()
        for _ in range(count):
            await hub.emit(event)

    return count / await _timed(emit)


async def _timed(run: Callable[[], Awaitable[None]]) -> float:
    gc.collect()
    began = time.perf_counter()
    await run()
    return time.perf_counter() - began


def main() -> None:
    cases: list[tuple[str, Callable[[], Awaitable[float]]]] = [
        ("1,000 steps, one trivial tool each", lambda: steps(1_000)),
        ("4,000 steps, one trivial tool each", lambda: steps(4_000)),
        ("1,000 calls in one batch", lambda: calls(1_000)),
        ("50,000 deltas, loop and one outbox", lambda: deltas(50_000)),
        ("events to 1 outbox", lambda: fan_out(1)),
        ("events to 8 outboxes", lambda: fan_out(8)),
    ]
    trio.run(steps, 10)  # imports and caches
    for name, case in cases:
        rates = [trio.run(case) for _ in range(5)]
        print(f"{name:<38} {median(rates):>12,.0f} /s")


if __name__ == "__main__":
    main()
