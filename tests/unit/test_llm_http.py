"""When the HTTP library is loaded, and how long its clients live."""

from __future__ import annotations

import subprocess
import sys

import httpx
import trio

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
