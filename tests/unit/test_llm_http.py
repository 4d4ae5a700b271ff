"""When the HTTP library is loaded, and how long its clients live."""

from __future__ import annotations

import ssl
import subprocess
import sys

import httpx
import pytest
import trio

from pi_trio.errors import ConfigError
from pi_trio.llm.http import http_client


def test_library_is_loaded_with_the_first_request() -> None:
    code = "import sys, pi_trio.llm.registry, pi_trio.testing; assert 'httpx' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50)
    assert done.returncode == 0, done.stderr


def test_clients_are_shared_in_a_run_and_closed_with_it() -> None:
    async def main() -> tuple[httpx.AsyncClient, httpx.AsyncClient]:
        plain, secure = http_client("http://a/"), http_client("https://a/")
        assert http_client("http://b/") is plain
        assert http_client("https://b/") is secure
        assert plain is not secure
        assert not plain.is_closed
        return plain, secure

    first, second = trio.run(main), trio.run(main)
    assert all(client.is_closed for client in (*first, *second))
    assert first[0] is not second[0]


async def test_certificates_are_always_checked() -> None:
    context = http_client("https://a/")._transport._pool._ssl_context
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)


@pytest.mark.parametrize("proxy", ["nonsense", "socks9://h"])
async def test_proxy_that_cannot_be_used(proxy: str) -> None:
    with pytest.raises(ConfigError, match="The proxy"):
        http_client("https://a/", proxy)


async def test_only_this_machine_is_asked_past_the_proxy() -> None:
    client = http_client("http://a/", "http://proxy.invalid:1")
    through = client._transport_for_url(httpx.URL("http://example.com/"))
    assert type(through._pool).__name__ == "AsyncHTTPProxy"
    for host in ("localhost:1", "127.0.0.1", "[::1]:8"):
        assert client._transport_for_url(httpx.URL(f"http://{host}/")) is client._transport
