"""The options that every program of the project has, and how a command line is read.

Nothing heavy is imported before a configuration is asked for: `--help` must be quick.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from pi_trio.errors import UsageError

if TYPE_CHECKING:
    from pi_trio.remote.interface import Runtime, Snapshot
    from pi_trio.resources.config import RuntimeConfig

__all__ = [
    "add_command",
    "add_session_arguments",
    "make_parser",
    "open_chosen_session",
    "parse",
    "runtime_config",
]


def make_parser(prog: str, description: str) -> argparse.ArgumentParser:
    """A parser with `--help` and `--version` that takes options by their full names only."""
    parser = _Parser(prog=prog, description=description, allow_abbrev=False)
    parser.add_argument("-v", "--version", action=_ShowVersion, help="show the version and exit")
    return parser


def add_command(commands: Any, name: str, text: str) -> argparse.ArgumentParser:
    """A parser for one of the commands of a program, which `text` tells of in the help of both."""
    added: argparse.ArgumentParser = commands.add_parser(
        name, help=text, description=f"{text[0].upper()}{text[1:]}.", allow_abbrev=False
    )
    return added


def add_session_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what says which model to use, and which session."""
    model = parser.add_argument_group("model")
    model.add_argument("--model", metavar="MODEL", help="provider/id, or part of an id; `:LEVEL` may follow")
    model.add_argument("--provider", metavar="NAME", help="the provider of a MODEL that is an id alone")
    model.add_argument(
        "--thinking", metavar="LEVEL", type=_level, help="off, minimal, low, medium, high, xhigh or max"
    )
    model.add_argument("--api-key", metavar="KEY", help="key of the model's provider, for this time only")
    model.add_argument("--demo", action="store_true", help="use the demo model: no key, no network")
    resources = parser.add_argument_group("resources")
    trust = resources.add_mutually_exclusive_group()
    trust.add_argument(
        "-a",
        "--approve",
        action="store_true",
        default=None,
        help="use this folder's own .pi and .agents/skills, this time",
    )
    trust.add_argument(
        "-na", "--no-approve", dest="approve", action="store_false", help="do not use them, this time"
    )
    resources.add_argument(
        "-e",
        "--extension",
        dest="extensions",
        action="append",
        default=[],
        metavar="PATH",
        help="load this extension too (repeatable)",
    )
    session = parser.add_argument_group("session")
    which = session.add_mutually_exclusive_group()
    which.add_argument("--session", metavar="WHICH", help="open this session: a path, or part of an id")
    which.add_argument(
        "-c",
        "--continue",
        dest="resume",
        action="store_true",
        help="open the latest session of this directory",
    )
    which.add_argument("--no-session", action="store_true", help="keep the session in memory only")
    session.add_argument("--session-dir", metavar="DIR", help="keep sessions in this one folder")
    tools = parser.add_argument_group("tools")
    tools.add_argument(
        "--read-only", action="store_true", help="look at things only: no commands, no changes"
    )
    parser.add_argument(
        "messages", nargs="*", metavar="MESSAGE", help="a prompt, or @FILE to add a file to it"
    )


def _level(word: str) -> str:
    from pi_trio.llm.thinking import LEVELS

    if word not in LEVELS:
        raise argparse.ArgumentTypeError(f"{word!r} is not one of {', '.join(LEVELS)}")
    return word


def parse(parser: argparse.ArgumentParser, argv: Sequence[str]) -> argparse.Namespace:
    """Read a command line. Options may stand among the messages; after `--` all are messages.

    Exits with status 2 and a usage line if there is a mistake in it.
    """
    end = argv.index("--") if "--" in argv else len(argv)
    namespace = parser.parse_intermixed_args(list(argv[:end]))
    namespace.messages += argv[end + 1 :]
    return namespace


def runtime_config(namespace: argparse.Namespace) -> RuntimeConfig:
    """What a runtime is opened with. Raises `ConfigError`, and `UsageError` for options that do not fit.

    From now on commands cannot read the keys in this process's environment.
    """
    from pi_trio.cli.own_environment import hide_keys
    from pi_trio.resources.config import RuntimeConfig
    from pi_trio.resources.paths import absolute

    for extension in map(absolute, namespace.extensions):
        if not os.path.lexists(extension):
            raise UsageError(f"there is no extension {extension}")
    hide_keys()
    return RuntimeConfig.load(
        model=_reference(namespace.provider, namespace.model),
        thinking_level=namespace.thinking,
        session_dir=namespace.session_dir,
        api_key=namespace.api_key,
        demo=namespace.demo,
        no_session=namespace.no_session,
        approve=namespace.approve,
        extensions=namespace.extensions,
        mode="read-only" if namespace.read_only else None,
    )


def _reference(provider: str | None, model: str | None) -> str | None:
    """The model that both options name."""
    if provider is None:
        return model
    if model is None:
        raise UsageError("--provider needs --model: say which of its models")
    return model if model.startswith(f"{provider}/") else f"{provider}/{model}"


async def open_chosen_session(runtime: Runtime, namespace: argparse.Namespace) -> Snapshot:
    """The session that the options name. Raises `SessionError` if it cannot be opened."""
    if namespace.session is not None:
        return await runtime.open_session(namespace.session)
    if namespace.resume:
        return await runtime.continue_session()
    return await runtime.new_session()


class _Parser(argparse.ArgumentParser):
    """Says in one line what is wrong."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


class _ShowVersion(argparse.Action):
    """`--version`, looking the version up only when it is asked for."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str | None = None) -> None:  # noqa: A002
        super().__init__(option_strings, dest=argparse.SUPPRESS, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        sys.stdout.write(f"{parser.prog} {version('pi-trio')}\n")
        parser.exit()
