"""What a long session costs in memory: `python tests/bench/memory.py`.

A thousand bash calls that print 100 kB each, and 20 MB of streamed text, over a session file:
with all of it in the context, and with a window that makes compaction keep it small. Then
what is left when the session is closed.
"""

from __future__ import annotations

import ctypes
import gc
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs
import trio

from pi_trio.harness.harness import AgentHarness, HarnessOptions
from pi_trio.llm.auth import Credential
from pi_trio.llm.playback import Playback
from pi_trio.llm.protocol import Context, Model, StreamOptions
from pi_trio.messages import text_of
from pi_trio.session.session import Session
from pi_trio.testing import Call, ScriptedModel, Text
from pi_trio.tools import LocalEnvironment, bash_tool

TURNS, CALLS = 10, 100
PIECES = 400


def script() -> Iterator[Any]:
    for turn in range(TURNS):
        for call in range(CALLS):
            said = Text((f"{turn} {call} and some words of text".ljust(50),) * PIECES)
            yield [said, Call("bash", {"command": "yes $(printf %099d 0) | head -c 100000"})]
        yield "done"


class TalkingModel:
    """Works through the script, and answers requests for a summary beside it."""

    def __init__(self) -> None:
        self.worker = ScriptedModel(script(), record=False)

    def __call__(self, model: Model, context: Context, options: StreamOptions) -> Playback:
        last = context.messages[-1]
        if last.role == "user" and text_of(last.content) != "go":
            return ScriptedModel(["A summary."])(model, context, options)
        return self.worker(model, context, options)


def megabytes() -> float:
    """The memory that this process has now, after what is free has been given back."""
    gc.collect()
    with suppress(AttributeError):  # only glibc has it
        ctypes.CDLL(None).malloc_trim(0)
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20


async def work(window: int) -> float:
    """Gives what the process had grown by, in MiB, before the session was closed."""

    async def credential(model: Model) -> Credential:
        return Credential("none", "a benchmark")

    talking = TalkingModel()
    model = attrs.evolve(talking.worker.model, context_window=window)
    with tempfile.TemporaryDirectory() as folder:
        environment = LocalEnvironment(Path(folder))
        options = HarnessOptions(
            stream_function=lambda _: talking,
            credential=credential,
            tools=(bash_tool(environment),),
            sections=lambda tools: {"preamble": "Be brief."},
        )
        session = Session.new(folder, Path(folder) / "session.jsonl")
        async with trio.open_nursery() as nursery:
            harness = AgentHarness(session, options, nursery, model=model)
            before = megabytes()
            for _ in range(TURNS):
                harness.prompt("go")
                await harness.wait_for_idle()
            grown = megabytes() - before
            await harness.aclose()
            nursery.cancel_scope.cancel()
        await environment.aclose()
    return grown


async def main() -> None:
    began = megabytes()
    for what, window in (("all in the context", 10**9), ("window of 200,000", 200_000)):
        grown = await work(window)
        left = megabytes() - began
        print(f"1,000 calls, {what}: {grown:4.0f} MiB more, {left:4.0f} MiB when it was closed")


if __name__ == "__main__":
    trio.run(main)
