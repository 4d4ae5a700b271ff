"""The options that every program of the project has, and how a command line is read.

Nothing heavy is imported before a configuration is asked for: `--help` must be quick.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from pi_trio.cli.arguments import add_session_arguments
from pi_trio.cli.status import BROKEN_PIPE, MISTAKE, ended_by
from pi_trio.errors import StorageError, UsageError

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

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
    from attrs import evolve

    from pi_trio.cli.own_environment import hide_keys
    from pi_trio.resources.config import RuntimeConfig
    from pi_trio.resources.paths import absolute

    hide_keys()
    config = RuntimeConfig.load(
        model=_reference(namespace.provider, namespace.model),
        thinking_level=namespace.thinking,
        session_dir=namespace.session_dir,
        api_key=namespace.api_key,
        demo=namespace.demo,
        no_session=namespace.no_session,
        approve=namespace.approve,
        extensions=_there("extension", namespace.extensions),
        mode="read-only" if namespace.read_only else None,
    )
    return evolve(
        config,
        max_cost=namespace.max_cost,
        max_steps=namespace.max_steps,
        offline=namespace.offline,
        log=absolute(namespace.log) if namespace.log else None,
        skills=_there("skill", namespace.skills),
        prompt_templates=_there("prompt template", namespace.prompt_templates),
        without=frozenset(namespace.without),
        tools=_tools(namespace, config.settings.default_tools),
        system_prompt=_text_of(namespace.system_prompt),
        addendum="\n\n".join(filter(None, map(_text_of, namespace.append_system_prompt))) or None,
    )


def _there(what: str, paths: Sequence[str]) -> tuple[str, ...]:
    """The paths, absolute. Raises `UsageError` for one where there is nothing."""
    from pi_trio.resources.paths import absolute

    found = [absolute(path) for path in paths]
    for path in found:
        if not os.path.lexists(path):
            raise UsageError(f"there is no {what} {path}")
    return tuple(map(str, found))


def _tools(namespace: argparse.Namespace, default: tuple[str, ...]) -> tuple[str, ...] | None:
    """The choice of built-in tools, in the language of the setting `defaultTools`; None leaves it at that."""
    if namespace.no_builtin_tools or "extension-tools" in namespace.without:
        return ("-read", "-bash", "-edit", "-write")
    if namespace.tools is None and not namespace.exclude_tools:
        return None
    from pi_trio.tools import TOOL_NAMES

    chosen = default if namespace.tools is None else namespace.tools
    for name in (*(namespace.tools or ()), *namespace.exclude_tools):
        if name.lstrip("+-") not in TOOL_NAMES:
            raise UsageError(f"there is no tool {name.lstrip('+-')!r}; there are {', '.join(TOOL_NAMES)}")
    return (*chosen, *(f"-{name}" for name in namespace.exclude_tools))


def _text_of(given: str | None) -> str | None:
    """A text as it was given, or the one in the file that it names. Raises `ConfigError`."""
    from pi_trio.resources.paths import absolute, is_file
    from pi_trio.resources.prompt_text import read_prompt_text

    if not given or "\0" in given or not is_file(path := absolute(given)):
        return given
    return read_prompt_text(path)


def _reference(provider: str | None, model: str | None) -> str | None:
    """The model that both options name."""
    if provider is None:
        return model
    if model is None:
        raise UsageError("--provider needs --model: say which of its models")
    return model if model.startswith(f"{provider}/") else f"{provider}/{model}"


async def open_chosen_session(runtime: Runtime, namespace: argparse.Namespace) -> Snapshot:
    """The session that the options name, with its new name. Raises `SessionError` and `UsageError`."""
    snapshot = await _chosen(runtime, namespace)
    if namespace.name is None:
        return snapshot
    await runtime.set_session_name(snapshot.session.id, namespace.name)
    return await runtime.snapshot(snapshot.session.id)


async def _chosen(runtime: Runtime, namespace: argparse.Namespace) -> Snapshot:
    if namespace.session is not None:
        return await runtime.open_session(namespace.session)
    if namespace.resume:
        return await runtime.continue_session()
    if namespace.session_id is not None or namespace.fork is not None:
        from pi_trio.remote.interface import Files

        if not isinstance(runtime, Files):
            raise UsageError("--session-id and --fork are not possible here: the files are elsewhere")
        if namespace.fork is not None:
            return await runtime.fork_file(namespace.fork)
        return await runtime.session_of(namespace.session_id)
    return await runtime.new_session()


class _Parser(argparse.ArgumentParser):
    """Says in one line what is wrong."""

    def error(self, message: str) -> NoReturn:
        self.exit(MISTAKE, f"{self.prog}: {message} (see {self.prog} --help)\n")

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        if file is None:
            self.answer(self.format_help())
        else:
            super().print_help(file)

    def answer(self, text: str) -> None:
        """Write to standard output. Exits where that cannot be written, which argparse would not tell."""
        from pi_trio.cli.words import flush, put

        try:
            put(text)
            flush()
        except BrokenPipeError:  # whoever read it has seen enough
            self.exit(BROKEN_PIPE)
        except StorageError as error:
            self.exit(ended_by(error, self.prog))


class _ShowVersion(argparse.Action):
    """`--version`, looking the version up only when it is asked for."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str | None = None) -> None:  # noqa: A002
        super().__init__(option_strings, dest=argparse.SUPPRESS, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        assert isinstance(parser, _Parser)  # noqa: S101  # only `make_parser` adds it
        parser.answer(f"{parser.prog} {version('pi-trio')}\n")
        parser.exit()
