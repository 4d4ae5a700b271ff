"""`pi-trio serve`: sessions that several screens and programs are attached to, here or elsewhere."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from functools import partial
from typing import Any

import trio
from attrs import evolve

from pi_trio.cli.listening import add_encryption_arguments, encryption, host_in_url, listening_socket
from pi_trio.cli.options import add_session_arguments, make_parser, parse, runtime_config
from pi_trio.cli.signals import until_signal
from pi_trio.cli.status import ended_by
from pi_trio.cli.words import flush, put, tell
from pi_trio.errors import PiError, UsageError
from pi_trio.harness.runtime import open_runtime
from pi_trio.remote.access import PORT, made_token, token_path
from pi_trio.remote.server.door import Door
from pi_trio.remote.server.server import serve

__all__ = ["run"]

_DESCRIPTION = """\
Serve sessions to `pi-tui --attach`, `pi-trio attach` and other clients. They may come and go: the
work goes on. Only this machine can connect, and only with the token that is in the agent directory."""


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
    add_encryption_arguments(server)
    add_session_arguments(parser)
    return trio.run(until_signal, partial(_serve, parse(parser, argv)))


async def _serve(namespace: Namespace) -> int:
    try:
        if namespace.messages or namespace.session or namespace.resume:
            raise UsageError("the clients of a server choose sessions and send messages")
        config = evolve(runtime_config(namespace), can_ask=True)
        for finding in config.findings:
            tell(finding)
        host = host_in_url(namespace.host)
        context = encryption(namespace.host, namespace.cert, namespace.key)
        listening = trio.socket.from_stdlib_socket(listening_socket(namespace.host, namespace.port))
        listener: trio.abc.Listener[Any] = trio.SocketListener(listening)
        if context is not None:
            listener = trio.SSLListener(listener, context, https_compatible=True)
        path = token_path(config.agent_dir)
        door = Door(
            token=made_token(path),
            port=listening.getsockname()[1],
            names=[host, *namespace.allow_host],
            encrypted=context is not None,
        )
        async with open_runtime(config) as runtime, trio.open_nursery() as nursery:
            for error in runtime.registry.findings:
                tell(str(error))
            await nursery.start(partial(serve, runtime, door, [listener], tell))
            tell(f"serving {config.cwd}; the token is in {path}")
            put(f"{'wss' if context else 'ws'}://{host}:{door.port}\n")
            flush()
    except PiError as error:
        return ended_by(error)
    return 0
