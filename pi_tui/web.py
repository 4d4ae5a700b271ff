"""`pi-tui --serve`: the screen in a browser, each tab with a process of its own. See docs/server.md.

textual-serve has the page and the terminal in it, and lets in whoever comes. Here nothing is
served without the token, to another name or for another page, as `Door` has it for all servers,
and nothing outlives its tab. Some of what is used of it for that is private (`_make_app`,
`_process_messages`, `_task`, `_process`), so the extra `web` pins the version that this was tried with.
"""

from __future__ import annotations

import asyncio
import secrets
import shlex
import signal
import socket
import ssl
import sys
from argparse import Namespace
from collections.abc import Awaitable, Callable, Sequence
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import aiohttp_jinja2
from aiohttp import web
from textual_serve.app_service import AppService
from textual_serve.server import Server, to_int

from pi_trio.cli.listening import encryption, host_in_url, listening_socket
from pi_trio.cli.words import flush, put
from pi_trio.errors import UsageError
from pi_trio.remote.access import made_token, web_token_path
from pi_trio.remote.server.door import Door, Refused
from pi_tui.signals import SIGNALS, ignore_further

__all__ = ["END_SECONDS", "MAX_MESSAGE", "MAX_TABS", "WebServer", "serve"]

MAX_TABS = 32
MAX_MESSAGE = 16 * 1024 * 1024
"""Bytes that a browser may send at once: a paste is one message."""
END_SECONDS = 5.0
"""How long a tab's program may take to end before it is killed."""
_LAST_WORD_SECONDS = 2.0
"""How long browsers may take to hear that the server ends."""

_PAGES = Path(__file__).parent / "pages"
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; font-src 'self';"
        " img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none';"
        " frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

_Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Tab(AppService):
    """The program behind one tab. Whoever ends first, it or its browser, ends the other."""

    def __init__(self, command: str, **options: Any) -> None:
        super().__init__(command, **options)
        self._left = asyncio.Event()
        self._left.set()

    async def on_data(self, payload: bytes) -> None:
        """Draw. Of a browser that is gone nothing is kept, so that the program can go on to its end."""
        with suppress(ConnectionError):
            await super().on_data(payload)

    async def run(self) -> None:
        """Hand on what the program draws. One that is killed says no word, and its browser is told too."""
        await super().run()
        await self.remote_close()

    async def stop(self) -> None:
        """End the program and wait for it, `END_SECONDS` at most; cancelled, it is killed at once."""
        task, self._task = self._task, None
        if task is None or self._process is None:
            return
        self._left.clear()
        await self._download_manager.cancel_app_downloads(self.app_service_id)
        try:
            async with asyncio.timeout(END_SECONDS):
                await self.send_meta({"type": "quit"})  # a signal could cut off its last words
                await self._process.wait()
        except TimeoutError:
            sys.stderr.write("pi-tui: the program of a tab did not end, and is killed\n")
        finally:
            if self._process.returncode is None:
                self._process.kill()
            self._left.set()
        await self._process.wait()
        task.cancel()

    async def left(self) -> None:
        """Wait until the program has ended, if it is about to."""
        await self._left.wait()


class WebServer(Server):
    """Serves `pi-tui` with these arguments to those that `door` lets in."""

    def __init__(self, arguments: Sequence[str], door: Door) -> None:
        super().__init__(_command(arguments), title="pi-tui", templates_path=_PAGES)
        self._door = door
        self._tabs: set[Tab] = set()
        # Browsers send cookies to every port of a host: it is not the token, and ends with this server.
        self._cookie = f"pi-tui-{door.port}"
        self._admitted = secrets.token_urlsafe()

    async def _make_app(self) -> web.Application:
        """See `Server`, which has no other way to a middleware."""
        app = await super()._make_app()
        app.router.add_static("/pages", _PAGES)
        app.middlewares.append(self._let_in)
        app.on_response_prepare.append(_add_headers)
        return app

    async def on_startup(self, app: web.Application) -> None:
        """See `Server`, which would print a banner."""

    async def on_shutdown(self, app: web.Application) -> None:
        """End all programs."""
        await asyncio.gather(*(tab.stop() for tab in self._tabs))

    @aiohttp_jinja2.template("app_index.html")
    async def handle_index(self, request: web.Request) -> dict[str, Any]:
        """The page, by the name that it was asked for: cookie and websocket must have the same."""
        scheme = "wss" if self._door.encrypted else "ws"
        return {
            "socket": f"{scheme}://{request.host}/ws",
            "font_size": _number(request, "fontsize", 16),
        }

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """Run a program for as long as its tab is there."""
        if len(self._tabs) >= MAX_TABS:
            raise web.HTTPServiceUnavailable(text=f"{MAX_TABS} tabs are open already\n")
        browser = web.WebSocketResponse(heartbeat=15, max_msg_size=MAX_MESSAGE)
        tab = Tab(
            self.command,
            write_bytes=browser.send_bytes,
            write_str=browser.send_str,
            close=browser.close,
            download_manager=self.download_manager,
        )
        self._tabs.add(tab)
        try:
            await browser.prepare(request)
            for other in tuple(self._tabs):  # a page that is loaded again may want the session that it had
                await other.left()
            await tab.start(_number(request, "width", 80), _number(request, "height", 24))
            await self._process_messages(browser, tab)
        finally:
            await tab.stop()
            self._tabs.discard(tab)
        return browser

    @web.middleware
    async def _let_in(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        try:
            self._door.check_caller(_header(request, "Host"), _header(request, "Origin"))
            if request.path == "/" and "token" in request.query:
                return self._exchange(request)
            said = request.cookies.get(self._cookie, "")
            if not secrets.compare_digest(said.encode("utf-8", "replace"), self._admitted.encode()):
                raise Refused(403, "the token is missing: open the address that pi-tui --serve has printed")
        except Refused as refused:
            return web.Response(status=refused.status, text=f"{refused.reason}\n")
        return await handler(request)

    def _exchange(self, request: web.Request) -> web.Response:
        """Give a cookie for the token, and have the browser forget the address that it stands in."""
        if not self._door.is_token(request.query["token"]):
            raise Refused(403, "the token is wrong")
        response = web.Response(
            status=303, headers={"Location": str(request.rel_url.without_query_params("token"))}
        )
        response.set_cookie(
            self._cookie, self._admitted, httponly=True, samesite="Strict", secure=self._door.encrypted
        )
        return response


def serve(namespace: Namespace, arguments: Sequence[str], agent_dir: Path) -> int:
    """Serve `pi-tui` with these arguments, at the address that the options say, until a signal.

    Returns the exit status. Raises `ConfigError`, `StorageError` and `UsageError`.
    """
    host, port = _address(namespace.serve)
    context = encryption(host, namespace.cert, namespace.key)
    token = made_token(web_token_path(agent_dir))
    with listening_socket(host, port) as listening:
        name, port = host_in_url(host), listening.getsockname()[1]
        encrypted = context is not None
        door = Door(token=token, port=port, names=[name, *namespace.allow_host], encrypted=encrypted)
        url = f"{'https' if encrypted else 'http'}://{name}:{port}/?token={token}"
        return asyncio.run(_serve(WebServer(arguments, door), listening, context, url))


async def _serve(
    server: WebServer, listening: socket.socket, context: ssl.SSLContext | None, url: str
) -> int:
    loop, signals = asyncio.get_running_loop(), asyncio.Queue[int]()
    minded = [each for each in SIGNALS if signal.getsignal(each) is not signal.SIG_IGN]  # `nohup` means it
    for number in minded:
        loop.add_signal_handler(number, signals.put_nowait, number)
    runner = web.AppRunner(await server._make_app(), access_log=None, shutdown_timeout=_LAST_WORD_SECONDS)
    await runner.setup()
    repeated = redirect_stdout(sys.stderr)  # where textual-serve repeats the last words of programs
    try:
        await web.SockSite(runner, listening, ssl_context=context).start()
        put(f"{url}\n")
        flush()
        with repeated:
            return 128 + await signals.get()
    finally:
        with repeated:
            await runner.cleanup()
        ignore_further(minded)


def _command(arguments: Sequence[str]) -> str:
    """The shell command of a tab, which the program takes the place of."""
    environ = ("TEXTUAL_DRIVER=pi_tui.tab:TabDriver", "TERM=xterm-256color", "COLORTERM=truecolor")
    safe_path = "-P"  # nothing is imported from the folder that the work is about
    return shlex.join(["exec", "env", *environ, sys.executable, safe_path, "-m", "pi_tui", *arguments])


def _address(text: str) -> tuple[str, int]:
    """The host and the port of `HOST:PORT`. Raises `UsageError`."""
    try:
        parts = urlsplit(f"//{text}")
        if parts.hostname and parts.port is not None and parts.netloc == text:
            return parts.hostname, parts.port
    except ValueError:
        pass
    raise UsageError(f"{text!r} is no address to listen on: they are like 127.0.0.1:7718")


def _number(request: web.Request, name: str, default: int) -> int:
    return to_int(request.query.get(name, ""), default)


def _header(request: web.Request, name: str) -> str:
    """The value of a header, all of them if it is there more than once."""
    return ", ".join(request.headers.getall(name, ()))


async def _add_headers(request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(_HEADERS)
