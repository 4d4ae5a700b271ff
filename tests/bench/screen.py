"""What the full screen costs while it works: `python tests/bench/screen.py [KIND …]`.

The real program without a terminal, on the runtime that the tests of the screen use. Per kind it
prints the CPU of the process, how long the loop was away from its keys at most, and the memory.

`flood`: 200 kB of Markdown as fast as they go. `paced`: 200 pieces a second after 66 kB.
`arguments`: 200 kB of a call's arguments, a letter each, and twice as many. `long`: a paragraph of
20,000 words, a table of 5,000 rows and 3,000 lines of code. `outputs`: 200 turns with a megabyte of
tool output each. `rest`: ten seconds in which nothing happens.
"""

from __future__ import annotations

import asyncio
import resource
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tui"))

import trio
from fake_runtime import FakeRuntime, FakeSession, open_fake

from pi_trio.events import MessageEnd, MessageStart, MessageUpdate
from pi_trio.llm.protocol import TextDelta, ToolCallDelta
from pi_trio.messages import AssistantMessage, TextContent, ToolCall, ToolResultMessage, UserMessage
from pi_tui.app import PiApp
from pi_tui.theme import bundled_folder, load_theme
from pi_tui.widgets.transcript import Transcript

PART = """## Part {0}

Some **bold words**, *emphasis* and `code {0}` in a paragraph that runs over more than one line of
an ordinary window, so that it has to be wrapped.

- first item {0}
- second item, with `code`

```python
def function_{0}(n: int) -> int:
    return n + {0}
```

| name | value |
|------|-------|
| {0}  | alpha |

"""
MARKDOWN = "".join(map(PART.format, range(520)))[:200_000]
LONG = {
    "20,000 words": " ".join(f"**word** {number}" for number in range(10_000)),
    "5,000 rows": "| a | b |\n|---|---|\n" + "".join(f"| {number} | cell |\n" for number in range(5000)),
    "3,000 lines": "```python\n" + "".join(f"x_{number} = {number}\n" for number in range(3000)) + "```\n",
}
SETTLED = 0.3
"""Seconds without anything to draw after which all has come, and is drawn."""

PENDING = AssistantMessage((), stop_reason="pending")


async def say(session: FakeSession, text: str, size: int, pause: float = 0) -> None:
    """Stream a text in pieces of a size."""
    for at in range(0, len(text), size):
        await session.hub.emit(MessageUpdate(TextDelta(0, text[at : at + size]), lambda: PENDING))
        await trio.sleep(pause)


async def flood(session: FakeSession) -> None:
    """50,000 pieces."""
    await session.hub.emit(MessageStart(PENDING))
    await say(session, MARKDOWN, 4)
    await end(session, MARKDOWN)


async def paced(session: FakeSession) -> None:
    """Ten seconds of an answer that is long already; what came before is not counted."""
    await session.hub.emit(MessageStart(PENDING))
    await say(session, MARKDOWN[:66_000], 4000)
    await trio.sleep(3)
    Meter.begin()
    await say(session, MARKDOWN[66_000:74_000], 4, 1 / 200)
    Meter.end()


async def end(session: FakeSession, text: str) -> None:
    """The answer is whole."""
    message = AssistantMessage((TextContent(text),))
    await session.append_message(message)
    await session.hub.emit(MessageEnd(message))


def arguments(count: int) -> Callable[[FakeSession], Awaitable[None]]:
    """So many letters of a call's arguments."""

    async def run(session: FakeSession) -> None:
        await session.hub.emit(MessageStart(PENDING))
        for _ in range(count):
            await session.hub.emit(MessageUpdate(ToolCallDelta(0, "x"), lambda: PENDING))
            await trio.lowlevel.checkpoint()

    return run


def one(text: str) -> Callable[[FakeSession], Awaitable[None]]:
    """One long thing, in pieces of 40 letters."""

    async def run(session: FakeSession) -> None:
        await session.hub.emit(MessageStart(PENDING))
        await say(session, text, 40)
        await end(session, text)

    return run


async def outputs(session: FakeSession) -> None:
    """200 turns; the memory after each 50 of them."""
    for number in range(200):
        call = ToolCall(f"c{number}", "dump", {})
        await session.append_message(UserMessage.of(f"turn {number}", ()))
        await session.append_message(AssistantMessage((call,)))
        await session.append_message(ToolResultMessage(call.id, "dump", f"{number} " * 250_000))
        for entry_id in list(session.entries)[:-3]:
            session.entries.pop(entry_id)  # the test's runtime has no file to read them from again
        await trio.sleep(0.02)
        if number % 50 == 49:
            print(f"   after {number + 1} turns: {memory():.0f} MiB")


async def rest(session: FakeSession) -> None:
    """Nothing."""
    await trio.sleep(2)
    Meter.begin()
    await trio.sleep(10)
    Meter.end()


KINDS: dict[str, dict[str, Callable[[FakeSession], Awaitable[None]]]] = {
    "flood": {"50,000 pieces of Markdown": flood},
    "paced": {"200 pieces a second after 66 kB": paced},
    "arguments": {"200,000 letters": arguments(200_000), "400,000 letters": arguments(400_000)},
    "long": {name: one(text) for name, text in LONG.items()},
    "outputs": {"200 megabytes of output": outputs},
    "rest": {"nothing": rest},
}


class Meter:
    """CPU and wall time between two moments, which a kind may choose itself."""

    begun = ended = (0.0, 0.0)

    @classmethod
    def begin(cls) -> None:
        """From here on."""
        cls.begun = time.process_time(), time.monotonic()

    @classmethod
    def end(cls) -> None:
        """Up to here."""
        cls.ended = time.process_time(), time.monotonic()


def memory() -> float:
    """Resident now, in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


async def measure(name: str, run: Callable[[FakeSession], Awaitable[None]]) -> None:
    """Open the program, run one kind in its runtime, and wait until all of it is drawn."""
    opened: list[FakeRuntime] = []

    @asynccontextmanager
    async def runtime() -> AsyncIterator[FakeRuntime]:
        async with open_fake() as fake:
            opened.append(fake)
            yield fake

    app = PiApp(runtime, lambda fake: fake.new_session(), load_theme("dark", [bundled_folder()]))
    async with app.run_test(size=(100, 30)) as pilot:
        screen = app.get_default_screen()
        while screen.live is None or screen.panes.body is None:
            await pilot.pause()
        await asyncio.sleep(0.5)
        gaps: list[float] = []
        watching = asyncio.create_task(watch(gaps))
        Meter.begin()
        Meter.ended = (0.0, 0.0)
        await screen.work._bridge.call(lambda fake: run(next(iter(fake._sessions.values()))))
        if not Meter.ended[0]:
            await drawn(screen.panes.body.transcript)
        watching.cancel()
    await app.stop_runtime()
    cpu, wall = (end - begin for begin, end in zip(Meter.begun, Meter.ended, strict=True))
    gaps.sort()
    away = f"away p95 {gaps[int(len(gaps) * 0.95)] * 1000:.0f}, most {gaps[-1] * 1000:.0f} ms"
    print(f"{name}: {wall:.2f} s, CPU {cpu:.2f} s ({100 * cpu / wall:.1f} %), {away}, {memory():.0f} MiB")


async def drawn(transcript: Transcript) -> None:
    """Until all is drawn: nothing was left to do for a while. The meter ends where that began."""
    Meter.end()
    while time.monotonic() < Meter.ended[1] + SETTLED:
        await asyncio.sleep(0.01)
        if transcript._budget.exceeded or transcript._sync_waits:
            Meter.end()


async def watch(gaps: list[float]) -> None:
    """How much later than it should the loop comes around: what a key would wait."""
    while True:
        begun = time.monotonic()
        await asyncio.sleep(0.005)
        gaps.append(time.monotonic() - begun - 0.005)


if __name__ == "__main__":
    for chosen in sys.argv[1:] or KINDS:
        for label, kind in KINDS[chosen].items():
            asyncio.run(measure(label, kind))
