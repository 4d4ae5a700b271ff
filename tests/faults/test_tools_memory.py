"""What tool calls leave behind in memory: what the model was shown, once, and after the session nothing."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness_bench import open_bench

from pi_trio.session.session import Session
from pi_trio.testing import Call, Text
from pi_trio.tools import LocalEnvironment, bash_tool
from pi_trio.tools.truncate import MAX_BYTES

CALLS = 8
PRINTED = Call("bash", {"command": "yes $(printf %099d 0) | head -c 100000"})
SAID = Text(("word " * 10,) * 400)


@pytest.fixture
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


def in_use() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


@pytest.mark.usefixtures("traced")
async def test_an_output_is_kept_once_and_goes_with_its_session(tmp_path: Path) -> None:
    """ME-01"""
    environment = LocalEnvironment(tmp_path)
    session: Session | None = Session.new(str(tmp_path), tmp_path / "session.jsonl")
    assert session is not None
    turn = [[SAID, PRINTED]] * CALLS
    async with open_bench(session, PRINTED, "done", *turn, "done", tools=(bash_tool(environment),)) as bench:
        await bench.say("load everything that is loaded late")
        before = in_use()
        await bench.say("go")
        bench.events.clear()
        bench.model.requests.clear()
        kept = in_use() - before
        shown = CALLS * (MAX_BYTES + 400 * 50)
        assert shown * 0.9 < kept < shown * 1.3
    session.close()
    del bench, session
    assert in_use() - before < kept / 10
