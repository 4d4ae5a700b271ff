"""What the coding tools cost: `python tests/bench/tools.py`. Prints medians of five runs.

Real files and real processes: reading the first page of a large file, editing a large one,
many short commands, searching this repository beside ripgrep alone, and stopping commands
until nothing of them is left.
"""

from __future__ import annotations

import resource
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import trio

from pi_trio.tool import ToolResult
from pi_trio.tools import LocalEnvironment, coding_tools
from pi_trio.tools.ripgrep import ripgrep_binary

REPOSITORY = Path(__file__).parents[2]
STOPPED = {
    "sleep 60": "sleep 60",
    "a child beside it": "sh -c 'sleep 60 & sleep 60'",
    "a session of its own": "setsid sleep 60 & sleep 60",
    "a trap that ignores": "trap '' TERM INT; while :; do sleep 0.2; done",
}


async def ignore(partial: ToolResult) -> None:
    """Nobody looks at the progress."""


class Bench:
    """Tools in a folder."""

    def __init__(self, folder: Path) -> None:
        self.environment = LocalEnvironment(folder)
        self._tools = {
            tool.name: tool for tool in coding_tools(self.environment, ("read", "bash", "edit", "grep"))
        }

    async def call(self, name: str, **args: Any) -> ToolResult:
        return await self._tools[name].execute("c1", args, ignore)

    async def commands(self, count: int, bound: int, command: str) -> None:
        """Many commands, `bound` of them at once."""
        limiter = trio.CapacityLimiter(bound)

        async def run() -> None:
            async with limiter:
                await self.call("bash", command=command)

        async with trio.open_nursery() as nursery:
            for _ in range(count):
                nursery.start_soon(run)

    async def stop(self, command: str) -> float:
        """Seconds from the cancel to the end of every process."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: self.call("bash", command=command))
            await trio.sleep(0.15)
            began = time.perf_counter()
            nursery.cancel_scope.cancel()
        return time.perf_counter() - began


async def once(work: Callable[[], Awaitable[object]]) -> float:
    """Seconds."""
    began = time.perf_counter()
    await work()
    return time.perf_counter() - began


async def timed(work: Callable[[], Awaitable[object]]) -> float:
    """The median of five, in seconds."""
    return median([await once(work) for _ in range(5)])


def megabytes() -> float:
    """The most memory that this process ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bench, here = Bench(folder), Bench(REPOSITORY)
        with (folder / "large").open("wb") as file:
            for _ in range(1024):
                file.write((b"x" * 63 + b"\n") * 16_384)
        began = megabytes()
        seconds = await timed(lambda: bench.call("read", path="large"))
        print(f"first page of 1 GB:    {seconds * 1000:6.1f} ms, {megabytes() - began:.0f} MB more")
        await edits(bench, folder)
        seconds = await timed(lambda: bench.commands(200, 10, "true"))
        print(f"200 × true, 10 at once: {200 / seconds:5.0f} calls/s")
        for bound in (10, 20):
            seconds = await timed(partial(bench.commands, 20, bound, "sleep 0.2"))
            print(f"20 × sleep 0.2, {bound} at once: {seconds:.3f} s")
        await searches(here)
        began = megabytes()
        await bench.call("bash", command="yes | head -c 3000000000")
        print(f"3 GB of output:        {megabytes() - began:6.0f} MB more")
        for what, command in STOPPED.items():
            times = [await bench.stop(command) for _ in range(9)]
            print(f"stop {what:22} {median(times) * 1000:5.1f} ms")
        await bench.environment.aclose()


async def edits(bench: Bench, folder: Path) -> None:
    """One line of 10 MB."""
    text = "".join(f"line {n:07} {'x' * 50}\n" for n in range(160_000))
    turn = 0

    async def edit() -> None:
        nonlocal turn
        (folder / "edited").write_text(text)
        turn += 1
        change = {"oldText": "line 0080000 ", "newText": f"line {turn} "}
        await bench.call("edit", path="edited", edits=[change])

    writing = await timed(lambda: trio.to_thread.run_sync((folder / "edited").write_text, text))
    seconds = await timed(edit) - writing
    print(f"edit of {len(text) / 1e6:.0f} MB:         {seconds * 1000:6.1f} ms")


async def searches(here: Bench) -> None:
    """The same search by the tool and by ripgrep alone, in turns, since both are over very soon."""
    pattern = r"async def \w+"
    command = [ripgrep_binary(), "--no-config", "--hidden", "--line-number", pattern, "./"]

    async def alone() -> None:
        await trio.to_thread.run_sync(
            lambda: subprocess.run(command, cwd=REPOSITORY, stdout=subprocess.PIPE, check=True)
        )

    pairs = [
        (await once(lambda: here.call("grep", pattern=pattern, limit=10_000)), await once(alone))
        for _ in range(15)
    ]
    tool, bare = map(median, zip(*pairs, strict=True))
    print(f"grep over this repository: {tool * 1000:.1f} ms, ripgrep alone {bare * 1000:.1f} ms")


if __name__ == "__main__":
    trio.run(main)
