"""`pi-trio serve`: sessions that several screens and programs are attached to, here or elsewhere."""

from __future__ import annotations

import errno
import ipaddress
import ssl
from argparse import Namespace
from collections.abc import Sequence
from functools import partial
from typing import Any

import trio
from attrs import evolve

from pi_trio.cli.options import add_session_arguments, make_parser, parse, runtime_config
from pi_trio.cli.signals import until_signal
from pi_trio.cli.status import ended_by
from pi_trio.cli.stdio import flush, put, tell
from pi_trio.errors import ConfigError, PiError, UsageError
from pi_trio.harness.runtime import open_runtime
from pi_trio.remote.access import PORT, is_loopback, made_token, token_path
from pi_trio.remote.server.door import Door
from pi_trio.remote.server.server import serve

__all__ = ["run"]

_DESCRIPTION = """\
Serve sessions to `pi-tui --attach`, `pi-trio attach` and other clients. They may come and go: the
work goes on. Only this machine can connect, and only with the token that is in the agent directory."""

_LAST_PORT = 65_535


def run(argv: Sequence[str]) -> int:
    """Run the subcommand. Returns the exit status."""
    parser = make_parser("pi-trio serve", _DESCRIPTION)
    server = parser.add_argument_group("server")
    server.add_argument("--port", type=int, default=PORT, help=f"default {PORT}; 0 takes a free one")
    server.add_argument(
        "--host",
        metavar="ADDRESS",
        default="127.0.0.1",
        help="listen here; elsewhere than on this machine it needs --cert and --key",
    )
    server.add_argument("--cert", metavar="FILE", help="the certificate, for encrypted connections")
    server.add_argument("--key", metavar="FILE", help="the certificate's key")
    server.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="a name by which clients call this server (repeatable)",
    )
    add_session_arguments(parser)
    return trio.run(until_signal, partial(_serve, parse(parser, argv)))


async def _serve(namespace: Namespace) -> int:
    try:
        if namespace.messages or namespace.session or namespace.resume:
            raise UsageError("the clients of a server choose sessions and send messages")
        config = evolve(runtime_config(namespace), can_ask=True)
        for finding in config.findings:
            tell(finding)
        context = _encryption(namespace)
        sockets = await _listen(namespace)
        listeners: list[trio.abc.Listener[Any]] = [_over(each, context) for each in sockets]
        path = token_path(config.agent_dir)
        door = Door(
            token=made_token(path),
            port=sockets[0].socket.getsockname()[1],
            names=[_shown(namespace.host), *namespace.allow_host],
            encrypted=context is not None,
        )
        async with open_runtime(config) as runtime, trio.open_nursery() as nursery:
            await nursery.start(partial(serve, runtime, door, listeners, tell))
            tell(f"serving {config.cwd}; the token is in {path}")
            put(f"{'wss' if context else 'ws'}://{_shown(namespace.host)}:{door.port}\n")
            flush()
    except PiError as error:
        return ended_by(error)
    return 0


def _encryption(namespace: Namespace) -> ssl.SSLContext | None:
    """What encrypts connections. Raises `UsageError` where it is missing, `ConfigError` if it is wrong."""
    if bool(namespace.cert) != bool(namespace.key):
        raise UsageError("--cert and --key go together")
    if not namespace.cert:
        if not is_loopback(namespace.host):
            raise UsageError(
                f"--host {namespace.host} can be reached from elsewhere, so it needs --cert and --key"
                " (or keep to 127.0.0.1 and reach it through ssh -L)"
            )
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(namespace.cert, namespace.key)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"{namespace.cert} and {namespace.key} cannot be used: {error}") from error
    return context


async def _listen(namespace: Namespace) -> list[trio.SocketListener]:
    try:
        ipaddress.ip_address(namespace.host)
        if not 0 <= namespace.port <= _LAST_PORT:
            raise ValueError
        return await trio.open_tcp_listeners(namespace.port, host=namespace.host)
    except ValueError:
        address = f"--host {namespace.host} --port {namespace.port}"
        raise UsageError(f"{address} is no address to listen on") from None
    except OSError as error:
        why = "it is taken, perhaps by another server" if error.errno == errno.EADDRINUSE else error.strerror
        raise UsageError(f"{namespace.host}:{namespace.port} cannot be listened on: {why}") from error


def _over(listener: trio.SocketListener, context: ssl.SSLContext | None) -> trio.abc.Listener[Any]:
    return listener if context is None else trio.SSLListener(listener, context, https_compatible=True)


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host
