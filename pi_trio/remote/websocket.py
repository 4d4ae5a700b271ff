"""A websocket for a block, closed properly behind it. What trio-websocket leaves to its user is here."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import trio
from trio_websocket import WebSocketConnection
from wsproto.utilities import LocalProtocolError

from pi_trio.nursery import plain_nursery

__all__ = ["GOODBYE_SECONDS", "Wire", "open_websocket"]

GOODBYE_SECONDS = 1.0
"""How long the other side may take to say goodbye."""
_LAST_WORD_SECONDS = 0.1
"""Time to say goodbye when its answer cannot be heard any more."""


@asynccontextmanager
async def open_websocket(
    connect: Callable[[trio.Nursery], Awaitable[WebSocketConnection]],
) -> AsyncIterator[WebSocketConnection]:
    """The websocket that `connect` makes. Raises what `connect` and the block raise, and no groups."""
    failure: BaseException | None = None
    try:
        async with plain_nursery() as nursery:
            socket = await connect(nursery)
            try:
                yield socket
            except BaseException as error:
                failure = error
                raise
            finally:
                deaf = isinstance(failure, trio.Cancelled)  # so is the task that reads
                with trio.move_on_after(_LAST_WORD_SECONDS if deaf else GOODBYE_SECONDS, shield=True):
                    await socket.aclose()
            nursery.cancel_scope.cancel()
    except LocalProtocolError as error:  # the library answers a ping that comes while it says goodbye
        if isinstance(failure, trio.Cancelled):
            raise trio.BrokenResourceError("the connection is closed") from error
        if failure is not None:
            raise failure from None


class Wire(trio.abc.Stream):
    """A stream under a websocket. `data` was read from it already; `ended` tells that no more will come."""

    def __init__(self, stream: trio.abc.Stream, data: bytes = b"") -> None:
        self.ended: trio.Event = trio.Event()
        self._stream, self._data = stream, data

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        if self._data:
            await trio.lowlevel.checkpoint()
            size = len(self._data) if max_bytes is None else max_bytes
            piece, self._data = self._data[:size], self._data[size:]
            return piece
        received: bytes | bytearray = b""
        try:
            received = await self._stream.receive_some(max_bytes)
        finally:
            if not received:
                self.ended.set()
        return received

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        try:
            await self._stream.send_all(data)
        except trio.BrokenResourceError:
            self.ended.set()
            raise

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        await self._stream.aclose()
