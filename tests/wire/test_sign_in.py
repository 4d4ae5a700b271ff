"""Signing in with a browser, against a provider on the loopback."""

from __future__ import annotations

import base64
import hashlib
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
import trio
import trio.testing

from pi_trio.errors import ConfigError, ProviderError
from pi_trio.llm.sign_in import sign_in_to_openrouter


class Person:
    """Opens the address that it is shown, and is sent back with `answer`."""

    def __init__(self, nursery: trio.Nursery, answer: str, path: str | None = None) -> None:
        self._nursery = nursery
        self._answer = answer
        self._path = path
        self.asked: dict[str, list[str]] = {}
        self.pages: list[httpx.Response] = []

    def __call__(self, address: str) -> None:
        self.asked = parse_qs(urlsplit(address).query)
        self._nursery.start_soon(self._come_back)

    async def _come_back(self) -> None:
        back = self.asked["callback_url"][0].replace("localhost", "127.0.0.1")
        async with httpx.AsyncClient() as browser:
            if self._path is not None:
                self.pages.append(await browser.get(httpx.URL(back).join(self._path)))
            self.pages.append(await browser.get(f"{back}?{self._answer}"))


async def test_code_is_exchanged_for_a_key(serve, nursery: trio.Nursery) -> None:
    async def answer(request, reply):
        await reply.whole('{"key": "sk-or-1"}', kind="application/json")

    server = await serve(answer)
    person = Person(nursery, "code=c0de", path="/guess?code=evil")
    site = f"http://127.0.0.1:{server.port}"
    assert await sign_in_to_openrouter(person, site=site, port=0) == {"type": "api_key", "key": "sk-or-1"}
    [asked] = server.requests
    assert asked.path == "/api/v1/auth/keys"
    assert asked.json["code"] == "c0de"
    digest = hashlib.sha256(asked.json["code_verifier"].encode()).digest()
    assert person.asked["code_challenge"] == [base64.urlsafe_b64encode(digest).rstrip(b"=").decode()]
    assert person.asked["code_challenge_method"] == ["S256"]
    await trio.testing.wait_all_tasks_blocked()
    assert [page.status_code for page in person.pages] == [404, 200]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [("error=access_denied", "access_denied"), ("error=x&error_description=No", "No"), ("", "no code")],
)
async def test_person_who_refuses(nursery: trio.Nursery, answer: str, reason: str) -> None:
    with pytest.raises(ProviderError, match=f"Signing in failed: {reason}"):
        await sign_in_to_openrouter(Person(nursery, answer), site="http://127.0.0.1:9", port=0)


async def test_exchange_that_is_refused(serve, nursery: trio.Nursery) -> None:
    async def answer(request, reply):
        await reply.whole('{"error": {"message": "Invalid code"}}', 403, kind="application/json")

    server = await serve(answer)
    with pytest.raises(ProviderError, match="403 Invalid code"):
        await sign_in_to_openrouter(Person(nursery, "code=x"), site=f"http://127.0.0.1:{server.port}", port=0)


async def test_port_that_is_taken(serve) -> None:
    async def answer(request, reply):
        raise AssertionError("nobody asks")

    server = await serve(answer)
    with pytest.raises(ConfigError, match=f"Port {server.port} of this machine"):
        await sign_in_to_openrouter(print, port=server.port)


async def test_leaving_it_closes_the_port() -> None:
    shown: list[str] = []
    with trio.CancelScope() as scope:

        def leave(address: str) -> None:
            shown.append(address)
            scope.cancel()

        await sign_in_to_openrouter(leave, port=0)
    back = urlsplit(parse_qs(urlsplit(shown[0]).query)["callback_url"][0])
    with pytest.raises(OSError, match="connect"):
        await trio.open_tcp_stream("127.0.0.1", back.port)
