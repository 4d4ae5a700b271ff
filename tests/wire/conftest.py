"""A real HTTP server on the loopback interface, for reading real bytes from a real socket."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest
import trio
from attrs import define, field, frozen

Answer = Callable[["Request", "Reply"], Awaitable[None]]


@frozen
class Request:
    """What a client sent."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@frozen
class Reply:
    """Writes one response: `whole`, or `begin`, then pieces, then `end`."""

    stream: trio.SocketStream

    async def whole(
        self,
        body: bytes | str,
        status: int = 200,
        headers: dict[str, str] | None = None,
        kind: str = "text/event-stream",
    ) -> None:
        data = body.encode() if isinstance(body, str) else body
        lines = {"content-type": kind, "content-length": str(len(data)), **(headers or {})}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        await self.stream.send_all(f"HTTP/1.1 {status} Status\r\n{head}\r\n".encode() + data)

    async def begin(self) -> None:
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        await self.stream.send_all(head)

    async def piece(self, data: bytes) -> None:
        await self.stream.send_all(b"%x\r\n%b\r\n" % (len(data), data))

    async def end(self) -> None:
        await self.stream.send_all(b"0\r\n\r\n")

    async def cut(self) -> None:
        await trio.aclose_forcefully(self.stream)


@define
class Server:
    """Counts what happens on its port. `answer` writes each response; returning keeps the connection."""

    answer: Answer
    port: int = 0
    requests: list[Request] = field(factory=list)
    connections: int = 0
    open_now: int = 0
    changed: trio.Event = field(factory=trio.Event)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def none_open(self) -> None:
        """Wait until the last connection is gone."""
        while self.open_now:
            await self.changed.wait()

    async def handle(self, stream: trio.SocketStream) -> None:
        self.connections += 1
        self._count(+1)
        try:
            while (request := await _read_request(stream)) is not None:
                self.requests.append(request)
                await self._answer(request, stream)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the client left, or the answer cut the connection
        finally:
            self._count(-1)
            await trio.aclose_forcefully(stream)

    async def _answer(self, request: Request, stream: trio.SocketStream) -> None:
        """Answer, giving up as soon as the client closes its side."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._watch, stream, nursery.cancel_scope)
            with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                await self.answer(request, Reply(stream))
            nursery.cancel_scope.cancel()

    async def _watch(self, stream: trio.SocketStream, scope: trio.CancelScope) -> None:
        """Wait for the client's end, or for its next request, which is none of our business."""
        more = b""
        with contextlib.suppress(OSError, trio.ClosedResourceError):  # reset, or cut by the answer
            more = await stream.socket.recv(1, trio.socket.MSG_PEEK)
        if not more:
            scope.cancel()

    def _count(self, change: int) -> None:
        self.open_now += change
        self.changed.set()
        self.changed = trio.Event()


async def _read_request(stream: trio.SocketStream) -> Request | None:
    data = b""
    while b"\r\n\r\n" not in data:
        more = await stream.receive_some()
        if not more:
            return None
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    first, *rest = head.decode("latin-1").split("\r\n")
    lines = [line.partition(": ") for line in rest]
    headers = {name.lower(): value for name, _, value in lines}
    while len(body) < int(headers.get("content-length", 0)):
        body += await stream.receive_some()
    return Request(first.split(" ")[1], headers, body)


@pytest.fixture
async def serve(nursery: trio.Nursery) -> Callable[[Answer], Awaitable[Server]]:
    """`await serve(answer)` starts a server for this test."""

    async def start(answer: Answer) -> Server:
        server = Server(answer)
        listeners = await nursery.start(partial(trio.serve_tcp, server.handle, 0, host="127.0.0.1"))
        server.port = listeners[0].socket.getsockname()[1]
        return server

    return start
