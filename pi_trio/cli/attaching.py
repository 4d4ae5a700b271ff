"""What `pi-trio attach` and `pi-tui --attach` have in common: which server, which session."""

from __future__ import annotations

import argparse
import math
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from pi_trio.errors import UsageError

if TYPE_CHECKING:
    from pi_trio.remote.client import RemoteRuntime
    from pi_trio.remote.interface import Snapshot

__all__ = ["add_token_argument", "attach", "choose_served_session", "refuse_runtime_options"]

_SERVING = frozenset({"serve", "cert", "key", "allow_host"})
_CHOOSING = frozenset({"session", "resume", "messages", "theme", "attach", "token_file"}) | _SERVING
"""What may be said of a session that is on a server; all else is said to the server."""


def add_token_argument(parser: argparse._ActionsContainer) -> None:
    """Add what says where the token is. It is never an argument itself: those can be seen by others."""
    parser.add_argument(
        "--token-file", metavar="FILE", help="the server's token, if it is not in the agent directory here"
    )


def refuse_runtime_options(parser: argparse.ArgumentParser, namespace: argparse.Namespace) -> None:
    """Raise `UsageError` for options that the server was, or was not, started with."""
    usual = vars(parser.parse_args([]))
    said = {name for name, value in vars(namespace).items() if value != usual[name]}
    odd = sorted(said - _CHOOSING)
    if odd:
        raise UsageError(f"--{odd[0].replace('_', '-')} is for the server: it is where the work is done")


def attach(
    url: str, token_file: str | None, patience: float = math.inf
) -> AbstractAsyncContextManager[RemoteRuntime]:
    """The runtime of a server, for a block. Raises what `open_remote` raises."""
    from pi_trio.remote.access import read_token, token_path
    from pi_trio.remote.client import open_remote
    from pi_trio.resources.paths import absolute, find_agent_dir

    path = absolute(token_file) if token_file else token_path(find_agent_dir())
    return open_remote(url, read_token(path), patience)


async def choose_served_session(remote: RemoteRuntime, *, session: str | None, resume: bool) -> Snapshot:
    """The session that was asked for; otherwise the one that was used last on the server, or a new one."""
    runtime = remote.runtime
    if session is not None:
        return await runtime.open_session(session)
    if resume:
        return await runtime.continue_session()
    there = await remote.sessions()
    return await runtime.snapshot(there[0].id) if there else await runtime.new_session()
