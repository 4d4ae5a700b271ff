"""The HTTP clients of a trio run: made when first needed, closed when the run ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import trio

from pi_trio import codec
from pi_trio.errors import ConfigError, ProviderError
from pi_trio.llm.failures import http_failure, transport_failure
from pi_trio.llm.protocol import Failure

if TYPE_CHECKING:
    import httpx

__all__ = ["http_client", "request_json"]

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


async def request_json(
    url: str,
    headers: Mapping[str, str] | None = None,
    *,
    body: Any = None,
    timeout: float = 20.0,
    proxy: str | None = None,
) -> Any:
    """The JSON that a GET, or a POST of `body`, answers. `timeout` (seconds) is for each wait.

    Raises `ProviderError` for any other outcome.
    """
    import httpx

    method, content = ("GET", None) if body is None else ("POST", codec.dumps(body))
    sent = {"accept": "application/json", "content-type": "application/json", **(headers or {})}
    try:
        client = http_client(url, proxy)
        response = await client.request(method, url, headers=sent, content=content, timeout=timeout)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        host = url.partition("://")[2].partition("/")[0]
        raise ProviderError(transport_failure(error, host)) from error
    if not response.is_success:
        raise ProviderError(http_failure(response.status_code, response.headers, response.content))
    try:
        return codec.loads(response.content)
    except ValueError as error:
        raise ProviderError(Failure(f"{url} did not answer with JSON.", "malformed_response")) from error


async def _close_at_the_end(client: httpx.AsyncClient) -> None:
    """Trio cancels system tasks when the main task is over: the place to close connections."""
    try:
        await trio.sleep_forever()
    finally:
        with trio.move_on_after(_CLOSE_WITHIN, shield=True):
            await client.aclose()
