"""The HTTP clients of a trio run: made when first needed, closed when the run ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    import httpx

__all__ = ["http_client"]

_CLOSE_WITHIN = 2.0
_KEEP_IDLE = 30.0

_clients: trio.lowlevel.RunVar[dict[bool, httpx.AsyncClient]] = trio.lowlevel.RunVar("pi_trio http clients")


def http_client(url: str) -> httpx.AsyncClient:
    """The client for `url`, shared by all requests of this trio run so that connections are reused.

    Plain HTTP has a client of its own: loading the certificates takes 20 ms, which a model
    on this machine need not wait for.
    """
    try:
        clients = _clients.get()
    except LookupError:
        clients = {}
        _clients.set(clients)
    secure = not url.startswith("http:")
    if secure not in clients:
        clients[secure] = _open_client(secure)
    return clients[secure]


def _open_client(secure: bool) -> httpx.AsyncClient:
    import httpx

    limits = httpx.Limits(max_connections=None, keepalive_expiry=_KEEP_IDLE)
    client = httpx.AsyncClient(verify=secure, limits=limits)
    trio.lowlevel.spawn_system_task(_close_at_the_end, client)
    return client


async def _close_at_the_end(client: httpx.AsyncClient) -> None:
    """Trio cancels system tasks when the main task is over: the place to close connections."""
    try:
        await trio.sleep_forever()
    finally:
        with trio.move_on_after(_CLOSE_WITHIN, shield=True):
            await client.aclose()
