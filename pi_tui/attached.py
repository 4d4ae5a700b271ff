"""The screen on a server's sessions: a client in the place of a runtime in this process."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from pi_trio.cli.attaching import attach, choose_served_session

if TYPE_CHECKING:
    from pi_trio.remote.interface import Runtime, Snapshot

__all__ = ["choose_attached", "open_attached"]


@asynccontextmanager
async def open_attached(namespace: argparse.Namespace) -> AsyncIterator[Runtime]:
    """The runtime of the server that the command line names. Raises `ConfigError` and `UsageError`."""
    from pi_tui.widgets import body  # noqa: F401  # loaded here, it does not hold up the screen

    async with attach(namespace.attach, namespace.token_file) as remote:
        yield remote.runtime


async def choose_attached(namespace: argparse.Namespace, runtime: Runtime) -> Snapshot:
    """The session that the command line names, or the one that was used last on the server."""
    from pi_trio.remote.client import RemoteRuntime

    assert isinstance(runtime, RemoteRuntime)  # noqa: S101  # `open_attached` made it
    return await choose_served_session(runtime, session=namespace.session, resume=namespace.resume)
