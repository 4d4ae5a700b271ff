"""One connection to a server, from the client's side: messages in and out, until it is lost."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import TypeAlias, cast
from urllib.parse import urlsplit

import trio
from trio_websocket import (
    ConnectionClosed,
    ConnectionRejected,
    WebSocketConnection,
    wrap_client_stream,
)

from pi_trio.nursery import plain_nursery
from pi_trio.remote.access import PATH, checked_url
from pi_trio.remote.websocket import Wire, open_websocket

__all__ = ["Dial", "Link", "LostError", "RefusedError", "dialler", "talking"]

CONNECT_SECONDS = 10.0
PING_SECONDS = 10.0
"""How often it is looked whether the server is still there."""
SILENCE_SECONDS = 15.0
"""How long it may take to answer that."""
_LARGEST = 1 << 30
"""Characters of a message: the server is trusted, and a session may be large."""
_BUFFER = 256 * 1024
_PASSING = frozenset({408, 429, 500, 502, 503, 504})
"""Statuses that may be others the next time."""


class LostError(Exception):
    """There is no connection now; later there may be one. `str()` is a sentence."""


class RefusedError(Exception):
    """The server does not want this client. `str()` is a sentence."""


Dial: TypeAlias = "Callable[[str], AbstractAsyncContextManager[Link]]"
"""Connects as the client of this id, for a block. Raises `LostError` and `RefusedError`, in the block too."""


class Link:
    """`send` never waits: what is sent goes out in order while the link is open."""

    def __init__(self, socket: WebSocketConnection) -> None:
        self._socket = socket
        self._outgoing: deque[bytes] = deque()
        self._filled = trio.Event()

    def send(self, message: bytes) -> None:
        """Send a message as soon as possible."""
        self._outgoing.append(message)
        self._filled.set()

    async def receive(self) -> str:
        """The next message. Raises `LostError`."""
        try:
            message = await self._socket.get_message()
        except ConnectionClosed as closed:
            raise LostError(_why(closed)) from closed
        return message if isinstance(message, str) else message.decode()

    async def write(self) -> None:
        """Send what is to be sent. Runs until it is cancelled; ends when the connection is lost."""
        try:
            while True:
                while self._outgoing:
                    await self._socket.send_message(self._outgoing.popleft().decode())
                await self._filled.wait()
                self._filled = trio.Event()
        except ConnectionClosed:
            return  # `receive` says so

    async def watch(self) -> None:
        """Look from time to time whether the other side is there. Raises `LostError` if it is not."""
        try:
            while True:
                await trio.sleep(PING_SECONDS)
                with trio.fail_after(SILENCE_SECONDS):
                    await self._socket.ping()
        except ConnectionClosed:
            return
        except trio.TooSlowError:
            raise LostError(f"the server did not answer for {SILENCE_SECONDS:g} seconds") from None


def dialler(url: str, token: str) -> Dial:
    """Connects to the server at an address. Raises `UsageError` for an address that is not safe."""
    address = checked_url(url)

    @asynccontextmanager
    async def dial(client_id: str) -> AsyncIterator[Link]:
        async with await _opened(address) as stream, talking(stream, address, token, client_id) as link:
            yield link

    return dial


@asynccontextmanager
async def talking(stream: trio.abc.Stream, address: str, token: str, client_id: str) -> AsyncIterator[Link]:
    """A link over a stream to the server at this address. Raises as a `Dial` does."""
    try:
        async with (
            open_websocket(partial(_greeted, stream, address, token, client_id)) as socket,
            plain_nursery() as nursery,
        ):
            link = Link(socket)
            nursery.start_soon(link.write)
            nursery.start_soon(link.watch)
            yield link
            nursery.cancel_scope.cancel()
    except ConnectionRejected as rejected:
        raise _refusal(address, rejected) from rejected
    except trio.BrokenResourceError as error:
        raise LostError(f"{address} cannot be talked to: {error.__cause__ or error}") from error


async def _opened(address: str) -> trio.abc.Stream:
    parts = urlsplit(address)
    host, port = str(parts.hostname), parts.port or 0
    try:
        with trio.fail_after(CONNECT_SECONDS):
            if parts.scheme == "ws":
                return await trio.open_tcp_stream(host, port)
            encrypted = await trio.open_ssl_over_tcp_stream(host, port, https_compatible=True)
            await encrypted.do_handshake()
            return encrypted
    except trio.BrokenResourceError as error:
        raise LostError(f"{address} is not what it should be: {error.__cause__ or error}") from error
    except OSError as error:
        why = f": {error.strerror}" if error.strerror else ""
        raise LostError(f"there is no server at {address}{why}") from error
    except trio.TooSlowError:
        raise LostError(f"{address} did not answer for {CONNECT_SECONDS:g} seconds") from None


async def _greeted(
    stream: trio.abc.Stream, address: str, token: str, client_id: str, nursery: trio.Nursery
) -> WebSocketConnection:
    wire = Wire(stream)

    async def mind_the_end() -> None:
        await wire.ended.wait()
        raise LostError(f"{address} closed the connection")

    try:
        with trio.fail_after(CONNECT_SECONDS):
            async with plain_nursery() as waiting:
                waiting.start_soon(mind_the_end)
                socket = await wrap_client_stream(
                    nursery,
                    cast("trio.SocketStream", wire),  # any stream will do
                    urlsplit(address).netloc,
                    f"{PATH}?client={client_id}",
                    extra_headers=[(b"Authorization", f"Bearer {token}".encode())],
                    max_message_size=_LARGEST,
                    receive_buffer_size=_BUFFER,
                )
                waiting.cancel_scope.cancel()
    except trio.TooSlowError:
        raise LostError(f"{address} did not answer for {CONNECT_SECONDS:g} seconds") from None
    return socket


def _refusal(address: str, rejected: ConnectionRejected) -> LostError | RefusedError:
    said = (rejected.body or b"").decode("utf-8", "replace").strip() or f"status {rejected.status_code}"
    kind = LostError if rejected.status_code in _PASSING else RefusedError
    return kind(f"{address} refuses: {said[:500]}")


def _why(closed: ConnectionClosed) -> str:
    if closed.reason is None or not closed.reason.reason:
        return "the connection was lost"
    return f"the connection was closed: {closed.reason.reason}"
