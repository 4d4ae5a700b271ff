"""Signing in with a browser: a provider's own page sends the program a code, which buys a key.

`SIGN_INS` is the seam: a flow shows an address to the person and returns an auth.json entry.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus
from typing import Any, Protocol
from urllib.parse import parse_qs, urlencode, urlsplit

import trio
from attrs import define, field

from pi_trio.errors import ConfigError, ProviderError
from pi_trio.llm.http import request_json
from pi_trio.llm.loose import text
from pi_trio.llm.protocol import Failure
from pi_trio.nursery import plain_nursery

__all__ = ["SIGN_INS", "SignIn", "sign_in_to_openrouter"]

_OPENROUTER = "https://openrouter.ai"
_OPENROUTER_PORT = 3000  # the one that it sends people back to on their own machine
_LONGEST_HEAD = 16_384
_READ_WITHIN = 10.0
_PAGE = "<!doctype html><title>pi-trio</title><p>{}</p>"


class SignIn(Protocol):
    """One provider's flow.

    Raises `ProviderError` if the provider refuses and `ConfigError` if its answer cannot be
    received here. Cancelling it leaves nothing behind.
    """

    async def __call__(self, show: Callable[[str], object], *, proxy: str | None = None) -> Mapping[str, Any]:
        """Have a person sign in at an address, which `show` is told, and return the credential."""


async def sign_in_to_openrouter(
    show: Callable[[str], object],
    *,
    proxy: str | None = None,
    site: str = _OPENROUTER,
    port: int = _OPENROUTER_PORT,
) -> Mapping[str, Any]:
    """Authorisation code with PKCE; the code is exchanged for an API key of this program's own."""
    verifier = _letters(secrets.token_bytes(32))
    challenge = _letters(hashlib.sha256(verifier.encode()).digest())
    async with _callback(port) as callback:
        query = {
            "callback_url": callback.address,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        show(f"{site}/auth?{urlencode(query)}")
        code = await callback.code()
    asked = {"code": code, "code_verifier": verifier, "code_challenge_method": "S256"}
    answer = await request_json(f"{site}/api/v1/auth/keys", body=asked, proxy=proxy)
    key = text(answer, "key")
    if not key:
        raise ProviderError(Failure("OpenRouter answered without a key.", "malformed_response"))
    return {"type": "api_key", "key": key}


SIGN_INS: Mapping[str, SignIn] = {"openrouter": sign_in_to_openrouter}
"""The providers that one can sign in to."""


def _letters(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


# ------------------------------------------------------------------ the way back


@define
class _Callback:
    """Waits for the browser to come back. Its path is a secret, so no other page can call it."""

    port: int
    path: str = field(factory=lambda: f"/{secrets.token_urlsafe(16)}")
    _answer: dict[str, str] = field(factory=dict)
    _came: trio.Event = field(factory=trio.Event)

    @property
    def address(self) -> str:
        """Where the provider is to send the browser."""
        return f"http://localhost:{self.port}{self.path}"

    async def code(self) -> str:
        """The code, once it has come. Raises `ProviderError` if the provider refused instead."""
        await self._came.wait()
        if code := self._answer.get("code"):
            return code
        reason = self._answer.get("error_description") or self._answer.get("error") or "no code came back"
        raise ProviderError(Failure(f"Signing in failed: {reason}", "auth"))

    async def serve(self, stream: trio.SocketStream) -> None:
        """Answer one request of a browser."""
        async with stream:
            try:
                with trio.move_on_after(_READ_WITHIN):
                    target = urlsplit(await _requested(stream))
                    await stream.send_all(self._reply(target.path, target.query))
            except (trio.BrokenResourceError, ValueError):
                pass  # a browser that left, or something that is no browser

    def _reply(self, path: str, query: str) -> bytes:
        if path != self.path:
            return _response(HTTPStatus.NOT_FOUND, "There is nothing here.")
        self._answer |= {name: values[0] for name, values in parse_qs(query).items()}
        self._came.set()
        return _response(HTTPStatus.OK, "You can close this page and go back to the terminal.")


@asynccontextmanager
async def _callback(port: int) -> AsyncIterator[_Callback]:
    try:
        listeners = await trio.open_tcp_listeners(port, host="127.0.0.1")
    except OSError as error:
        raise ConfigError(
            f"Port {port} of this machine is needed for signing in and cannot be used: {error.strerror}"
        ) from error
    callback = _Callback(listeners[0].socket.getsockname()[1])
    async with plain_nursery() as nursery:
        nursery.start_soon(partial(trio.serve_listeners, callback.serve, listeners))
        yield callback
        nursery.cancel_scope.cancel()


async def _requested(stream: trio.SocketStream) -> str:
    """The target of a request. Raises `ValueError` for what is not one."""
    head = b""
    while b"\r\n\r\n" not in head:
        more = await stream.receive_some()
        if not more or len(head) > _LONGEST_HEAD:
            raise ValueError("not a request")
        head += more
    method, target, _ = head.split(b"\r\n", 1)[0].decode("ascii").split(" ")
    if method != "GET":
        raise ValueError("not a page that is opened")
    return target


def _response(status: HTTPStatus, words: str) -> bytes:
    page = _PAGE.format(words).encode()
    head = f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-type: text/html; charset=utf-8\r\n"
    return f"{head}content-length: {len(page)}\r\nconnection: close\r\n\r\n".encode() + page
