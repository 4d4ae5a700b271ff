"""The HTTP clients of a trio run: made when first needed, closed when the run ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import trio

from pi_trio.errors import ConfigError

if TYPE_CHECKING:
    import httpx

__all__ = ["http_client"]

_CLOSE_WITHIN = 2.0
_KEEP_IDLE = 30.0
_THIS_MACHINE = ("localhost", "127.0.0.1", "[::1]")

Key: TypeAlias = tuple[bool, str | None]

_clients: trio.lowlevel.RunVar[dict[Key, httpx.AsyncClient]] = trio.lowlevel.RunVar("pi_trio http clients")


def http_client(url: str, proxy: str | None = None) -> httpx.AsyncClient:
    """The client for `url`, shared by all requests of this trio run so that connections are reused.

    Without a `proxy`, the variables of the environment (`HTTPS_PROXY`, `NO_PROXY`, …) say
    which to use; through one given here everything goes but requests to this machine.
    Certificates are always checked. Raises `ConfigError` for a proxy that cannot be used.
    """
    try:
        clients = _clients.get()
    except LookupError:
        clients = {}
        _clients.set(clients)
    # Plain HTTP has a client of its own: loading the certificates takes 20 ms, which a model
    # on this machine need not wait for.
    key = not url.startswith("http:"), proxy
    if key not in clients:
        clients[key] = _open_client(*key)
    return clients[key]


def _open_client(secure: bool, proxy: str | None) -> httpx.AsyncClient:
    import httpx

    limits = httpx.Limits(max_connections=None, keepalive_expiry=_KEEP_IDLE)
    direct: dict[str, httpx.AsyncBaseTransport | None] = {f"all://{name}": None for name in _THIS_MACHINE}
    try:
        client = httpx.AsyncClient(
            verify=secure, limits=limits, proxy=proxy, mounts=direct if proxy else None
        )
    except (ValueError, httpx.InvalidURL, ImportError) as error:
        raise ConfigError(f"The proxy {proxy or 'of the environment'} cannot be used: {error}") from error
    trio.lowlevel.spawn_system_task(_close_at_the_end, client)
    return client


async def _close_at_the_end(client: httpx.AsyncClient) -> None:
    """Trio cancels system tasks when the main task is over: the place to close connections."""
    try:
        await trio.sleep_forever()
    finally:
        with trio.move_on_after(_CLOSE_WITHIN, shield=True):
            await client.aclose()
