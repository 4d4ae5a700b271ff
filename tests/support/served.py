"""A server in this process, with clients over streams that a test can cut: in memory, or over TCP."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import trio
import trio.testing

from pi_trio.events import AgentEvent, Gap
from pi_trio.harness.runtime import LocalRuntime, open_runtime
from pi_trio.hub import Outbox
from pi_trio.remote.client import RemoteRuntime, open_over
from pi_trio.remote.events import encode_event
from pi_trio.remote.interface import Snapshot
from pi_trio.remote.link import Dial, Link, talking
from pi_trio.remote.server.door import Door
from pi_trio.remote.server.server import Server, serve
from pi_trio.resources.config import RuntimeConfig

TOKEN = "a-token-that-is-long-enough"
PORT = 7717
Wrap: TypeAlias = Callable[[trio.abc.Stream], trio.abc.Stream]
URL = f"ws://127.0.0.1:{PORT}"


class Cut(trio.abc.Stream):
    """A stream that breaks when so many bytes have gone through it; None: never.

    Half open, the other side does not hear of it.
    """

    def __init__(self, stream: trio.abc.Stream, budget: int | None, *, half_open: bool = False) -> None:
        self._stream, self._budget, self._half_open = stream, budget, half_open
        self.broken = False

    async def _use(self, size: int) -> int:
        if self.broken:
            raise trio.BrokenResourceError("cut")
        if self._budget is None:
            return size
        used = min(size, self._budget)
        self._budget -= used
        return used

    async def _break(self) -> None:
        self.broken = True
        if not self._half_open:
            await self._stream.aclose()

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        data = await self._stream.receive_some(max_bytes)
        kept = data[: await self._use(len(data))]
        if len(kept) < len(data):
            await self._break()
        return kept

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        kept = bytes(data)[: await self._use(len(data))]
        await self._stream.send_all(kept)
        if len(kept) < len(data):
            await self._break()
            raise trio.BrokenResourceError("cut")

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        await self._stream.aclose()


class Served:
    """A runtime and its server. `told` is what the person who looks after it is told."""

    def __init__(self, runtime: LocalRuntime, nursery: trio.Nursery) -> None:
        self.runtime = runtime
        self.told: list[str] = []
        self.nursery = nursery
        self._door = Door(token=TOKEN, port=PORT)
        self.server = Server(runtime, self._door, nursery, self.told.append)
        self._address: tuple[str, int] | None = None
        self._streams: list[trio.abc.Stream] = []

    async def listen(self) -> None:
        """Serve a free port of this machine, as the program does; clients connect there from now on."""
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        serving = partial(serve, self.runtime, self._door, [listener], self.told.append)
        self.server = await self.nursery.start(serving)
        self._address = listener.socket.getsockname()

    async def stream(self) -> trio.abc.Stream:
        """The client's end of a new connection, open until the client or `aclose` closes it."""
        if self._address is None:
            ours, theirs = trio.testing.memory_stream_pair()
            self.nursery.start_soon(self.server.handle, theirs)
            return ours
        self._streams.append(await trio.open_tcp_stream(*self._address))
        return self._streams[-1]

    async def aclose(self) -> None:
        """Close what clients left open."""
        for stream in self._streams:
            await trio.aclose_forcefully(stream)

    def dial(self, wrap: Wrap = lambda stream: stream) -> Dial:
        """Connects to it; `wrap` gets the stream of each connection."""

        @asynccontextmanager
        async def dialling(client_id: str) -> AsyncIterator[Link]:
            stream = wrap(await self.stream())
            async with stream, talking(stream, URL, TOKEN, client_id) as link:
                yield link

        return dialling

    @asynccontextmanager
    async def client(self, *wrap: Wrap) -> AsyncIterator[RemoteRuntime]:
        async with open_over(self.dial(*wrap)) as remote:
            yield remote


@asynccontextmanager
async def served(folder: Path, *, tcp: bool = False, **options: Any) -> AsyncIterator[Served]:
    """A server on the demo model, in a folder of its own. In memory time can be made to jump by itself."""
    project = folder / "project"
    project.mkdir(exist_ok=True)
    config = RuntimeConfig(
        **{"cwd": project, "agent_dir": folder / "agent", "demo": True, "can_ask": True, **options}
    )
    async with open_runtime(config) as runtime, trio.open_nursery() as nursery:
        there = Served(runtime, nursery)
        if tcp:
            await there.listen()
        try:
            yield there
        finally:
            await there.aclose()
        nursery.cancel_scope.cancel()


class Seen(Outbox):
    """What a subscriber was told, in order and unmerged: numbers, events, and how often it began anew."""

    def __init__(self) -> None:
        super().__init__(lambda: None)
        self.events: list[tuple[int, AgentEvent]] = []
        self._news = trio.Event()

    def put(self, seq: int, event: AgentEvent) -> None:
        self.events.append((seq, event))
        self._news.set()

    @property
    def gaps(self) -> int:
        return sum(isinstance(event, Gap) for _, event in self.events)

    @property
    def types(self) -> list[str]:
        return [event.type for _, event in self.events]

    @property
    def told(self) -> list[tuple[int, Any]]:
        """All but what concerns the connection, as values."""
        return [
            (seq, encode_event(event)) for seq, event in self.events if event.type != "connection_changed"
        ]

    async def until(self, holds: Callable[[], object]) -> None:
        """Wait for events until something holds."""
        while not holds():
            await self._news.wait()
            self._news = trio.Event()

    async def event(self, kind: str, count: int = 1) -> None:
        """Until so many events of a type have come."""
        await self.until(lambda: self.types.count(kind) >= count)

    @classmethod
    async def of(cls, runtime: Any, session_id: str) -> tuple[Seen, Snapshot]:
        seen = cls()
        return seen, await runtime.subscribe(session_id, seen)


class Cutter:
    """Breaks so many connections at random places, then no more. `left` counts down."""

    def __init__(self, seed: int, times: int) -> None:
        self.left = times
        self._chance = random.Random(seed)

    def __call__(self, stream: trio.abc.Stream) -> trio.abc.Stream:
        if not self.left:
            return stream
        self.left -= 1
        size = self._chance.choice((500, 3_000, 50_000))  # in the greeting, in the first words, or later
        return Cut(stream, self._chance.randrange(size), half_open=self._chance.random() < 0.3)


__all__ = ["TOKEN", "URL", "Cut", "Cutter", "Seen", "Served", "served"]
