"""A POST whose answer is a stream of server-sent events, read by a task of its own.

The reader task is what makes leaving early clean: httpx's response is a chain of async
generators, and only an exception that comes from the innermost one, the network read,
closes them all. So nothing else in the reader raises, and leaving cancels that read.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, TypeAlias

import trio
from attrs import frozen

from pi_trio.errors import ConfigError, ProviderError
from pi_trio.llm.failures import http_failure, transport_failure
from pi_trio.llm.http import http_client
from pi_trio.llm.protocol import Failure
from pi_trio.nursery import plain_nursery

if TYPE_CHECKING:
    import httpx
    from httpx_sse import ServerSentEvent

__all__ = ["ResponseHook", "SseRequest", "SseStream", "open_sse"]

CONNECT_TIMEOUT = 10.0
_ERROR_BODY_TIMEOUT = 10.0
_END_OF_BODY_TIMEOUT = 0.05
_READ_AHEAD = 64  # pieces of at most 64 KiB, as the HTTP library reads them
_NOT_A_STREAM = ("application/json", "text/html")


ResponseHook: TypeAlias = Callable[[int, Mapping[str, str]], Awaitable[None]]
"""Sees the status and the headers of an answer."""


@frozen(kw_only=True)
class SseRequest:
    """What to send. `idle_timeout` is how long the server may be silent, in seconds.

    `proxy` is the URL of one to go through; None leaves that to the environment.
    """

    url: str
    headers: Mapping[str, str]
    body: bytes
    idle_timeout: float
    proxy: str | None = None
    on_response: ResponseHook | None = None


@asynccontextmanager
async def open_sse(request: SseRequest) -> AsyncIterator[SseStream]:
    """Send the request and yield its events.

    Entering waits for nothing. Raises `ConfigError` for headers that cannot be sent; every
    other failure is raised by the stream. Leaving early closes the connection.
    """
    headers = _header_bytes(request.headers)
    stream = SseStream()
    async with plain_nursery() as nursery:
        nursery.start_soon(_read, request, headers, stream)
        try:
            yield stream
        finally:
            stream.close()
            nursery.cancel_scope.cancel()


class SseStream(trio.abc.ReceiveChannel["list[ServerSentEvent]"]):
    """The events of one answer, in batches of what had arrived. Comments are no events."""

    def __init__(self) -> None:
        self._send, self._receive = trio.open_memory_channel[list["ServerSentEvent"]](_READ_AHEAD)
        self._failure: ProviderError | None = None

    async def receive(self) -> list[ServerSentEvent]:
        """The next events. Raises `trio.EndOfChannel` at the end and `ProviderError` on failure."""
        try:
            batch = await self._receive.receive()
        except trio.EndOfChannel:
            if self._failure is not None:
                raise self._failure from None
            raise
        with suppress(trio.WouldBlock, trio.EndOfChannel):
            while True:  # what came meanwhile needs no further wait
                batch += self._receive.receive_nowait()
        return batch

    async def wind_up(self) -> None:
        """Let the body come to its end, if it soon does: then the connection can be used again."""
        with trio.move_on_after(_END_OF_BODY_TIMEOUT):
            async for _ in self._receive:
                pass

    async def aclose(self) -> None:
        self.close()
        await trio.lowlevel.checkpoint()

    def close(self) -> None:
        """Stop reading; what the reader still has is thrown away."""
        self._receive.close()

    # ---- the reader's side

    async def put(self, batch: list[ServerSentEvent]) -> None:
        """Hand over a batch, waiting while the other side is far behind. Never raises."""
        try:
            self._send.send_nowait(batch)
        except trio.WouldBlock:
            with trio.CancelScope(shield=True), suppress(trio.BrokenResourceError):
                await self._send.send(batch)
        except trio.BrokenResourceError:
            pass  # nobody listens any more, and the next read will be cancelled

    def end(self, failure: Failure | None = None) -> None:
        """Nothing more comes."""
        if failure is not None:
            self._failure = ProviderError(failure)
        self._send.close()


async def _read(request: SseRequest, headers: list[tuple[bytes, bytes]], stream: SseStream) -> None:
    import httpx

    host = ""
    timeout = httpx.Timeout(request.idle_timeout, connect=CONNECT_TIMEOUT, pool=None)
    failure = None
    try:
        host = httpx.URL(request.url).netloc.decode()
        client = http_client(request.url, request.proxy)
        async with client.stream(
            "POST", request.url, content=request.body, headers=headers, timeout=timeout
        ) as response:
            if request.on_response is not None:
                await request.on_response(response.status_code, response.headers)
            if _is_stream(response):
                await _read_events(response, stream)
            else:
                failure = await _read_failure(response)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        failure = transport_failure(error, host)
    except ConfigError as error:
        failure = Failure(str(error), "configuration")
    finally:
        stream.end(failure)


def _is_stream(response: httpx.Response) -> bool:
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    return response.is_success and kind not in _NOT_A_STREAM


async def _read_failure(response: httpx.Response) -> Failure:
    """What a refusal says. A body that does not end is not waited for."""
    body = b""
    with trio.move_on_after(_ERROR_BODY_TIMEOUT):
        body = await response.aread()
    return http_failure(response.status_code, response.headers, body)


async def _read_events(response: httpx.Response, stream: SseStream) -> None:
    """Parse the body, handing over a batch for every piece that the network gives."""
    import httpx
    from httpx_sse import EventSource

    batch: list[ServerSentEvent] = []

    async def pieces() -> AsyncIterator[bytes]:
        nonlocal batch
        async for piece in response.aiter_bytes():
            yield piece
            if batch:  # the parser wants more: all events of this piece are there
                full, batch = batch, []
                await stream.put(full)
        yield b"\n\n"  # some servers leave out the blank line after the last event

    kind = "text/event-stream; charset=utf-8-sig"  # which passes over a mark of the byte order
    body = httpx.Response(200, headers={"content-type": kind}, content=pieces())
    async for event in EventSource(body).aiter_sse():
        if event.data:
            batch.append(event)  # noqa: PERF401 - `batch` is handed over and replaced meanwhile
    await stream.put(batch)


def _header_bytes(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    encoded = []
    for name, value in headers.items():
        if not value.isprintable() or not name.isascii():
            raise ConfigError(f"The header {name!r} holds characters that cannot be sent.")
        try:
            encoded.append((name.encode("ascii"), value.encode("latin-1")))
        except UnicodeEncodeError:
            raise ConfigError(f"The header {name!r} holds characters that cannot be sent.") from None
    return encoded
