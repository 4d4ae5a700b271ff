"""A websocket for a block, closed properly behind it. What trio-websocket leaves to its user is here."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import trio
from trio_websocket import WebSocketConnection
from wsproto.utilities import LocalProtocolError

from pi_trio.nursery import plain_nursery

__all__ = ["GOODBYE_SECONDS", "open_websocket"]

GOODBYE_SECONDS = 1.0
"""How long the other side may take to say goodbye."""


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
                with trio.move_on_after(GOODBYE_SECONDS, shield=True):
                    await socket.aclose()
            nursery.cancel_scope.cancel()
    except LocalProtocolError as error:  # the library answers a ping that comes while it says goodbye
        if isinstance(failure, trio.Cancelled):
            raise trio.BrokenResourceError("the connection is closed") from error
        if failure is not None:
            raise failure from None
