"""`pi-trio attach`: a conversation in plain lines with a session on a server."""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Sequence
from functools import partial

import trio

from pi_trio.cli.arguments import positive
from pi_trio.cli.attaching import add_token_argument, attach, choose_served_session
from pi_trio.cli.chat import Chat
from pi_trio.cli.lines import Lines
from pi_trio.cli.options import make_parser
from pi_trio.cli.signals import until_signal
from pi_trio.cli.status import BROKEN_PIPE, ended_by
from pi_trio.cli.stdio import Output, reserved_output
from pi_trio.errors import PiError
from pi_trio.remote.access import DEFAULT_URL

__all__ = ["run"]

PATIENCE_SECONDS = 60.0
"""How long a server may be gone where nobody looks: it is started again in less, and tried several times."""

_DESCRIPTION = """\
Talk in plain lines to a session on a server that pi-trio serve runs. Others may be attached to it
too. Ctrl+D leaves, and what goes on there goes on; Ctrl+C stops the turn."""


def run(argv: Sequence[str]) -> int:
    """Run the subcommand. Returns the exit status."""
    parser = make_parser("pi-trio attach", _DESCRIPTION)
    parser.add_argument("url", metavar="URL", nargs="?", default=DEFAULT_URL, help=f"default {DEFAULT_URL}")
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--session", metavar="WHICH", help="this session: a path on the server, or part of an id"
    )
    which.add_argument(
        "-c",
        "--continue",
        dest="resume",
        action="store_true",
        help="the latest session of the server's directory",
    )
    parser.add_argument(
        "--patience",
        metavar="SECONDS",
        type=positive(float),
        help="give up a server that is gone for so long; by default that is"
        f" {PATIENCE_SECONDS:g} where input is no terminal, and never where it is one",
    )
    add_token_argument(parser)
    namespace = parser.parse_args(argv)
    with reserved_output() as output:
        return trio.run(until_signal, partial(_attach, namespace, output))


async def _attach(namespace: Namespace, output: Output) -> int:
    lines = Lines()
    patience = namespace.patience or (math.inf if lines.is_terminal else PATIENCE_SECONDS)
    try:
        async with attach(namespace.url, namespace.token_file, patience) as remote:
            snapshot = await choose_served_session(remote, session=namespace.session, resume=namespace.resume)
            return await Chat(remote.runtime, snapshot, lines, output, attached=True).hold([])
    except BrokenPipeError:  # the reader has enough
        return BROKEN_PIPE
    except PiError as error:
        return ended_by(error)
