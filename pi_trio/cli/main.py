"""The program `pi-trio`: chooses the mode and turns errors into one clear line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module

from pi_trio.cli.arguments import positive
from pi_trio.cli.options import add_session_arguments, make_parser, parse
from pi_trio.cli.start import command_line, run_program
from pi_trio.cli.status import BROKEN_PIPE, ended_by
from pi_trio.collector import paused_collector, spare_what_is_there
from pi_trio.errors import ConfigError, PiError

__all__ = ["main"]

_DESCRIPTION = """\
Talk to a coding agent. On a terminal this opens the full screen; with --print,
or when input or output is not a terminal, it answers the messages on standard
output and ends."""

_EPILOG = """commands, each with its own --help:
  attach                talk in plain lines to a session on a server
  auth                  look after the keys of model providers
  batch                 work off many tasks, each in a session of its own
  chat                  talk in plain lines, without the full screen
  doctor                look at everything that a start needs
  import-pi             copy sessions, skills, templates, themes and keys of pi
  models                look up the models that can be asked
  serve                 serve sessions to screens and programs that attach
  sessions              list, search, show, export and check session files"""

_COMMANDS: Mapping[str, str] = {
    "attach": "pi_trio.cli.attach",
    "auth": "pi_trio.cli.auth",
    "batch": "pi_trio.cli.batch.command",
    "chat": "pi_trio.cli.chat",
    "doctor": "pi_trio.cli.doctor",
    "import-pi": "pi_trio.cli.import_pi",
    "models": "pi_trio.cli.models",
    "serve": "pi_trio.cli.serve",
    "sessions": "pi_trio.cli.sessions",
}
"""What may stand in the place of the first argument, and the module whose `run` does it."""

_CLOSE = 0.82
"""How like a command a misspelt one is: `model` and `sesions` are, `patch` and `oath` are not."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program with these arguments (default: those of the process).

    Returns the exit status; what went wrong is told in one line. Raises `SystemExit` where the command
    line cannot be read.
    """
    if sys.platform == "win32":
        sys.exit("pi-trio needs Linux or macOS; on Windows please run it inside WSL.")
    return run_program(partial(_main, command_line(argv)))


def _main(arguments: list[str]) -> int:
    try:
        if arguments and arguments[0] in _COMMANDS:
            return _run_command(_COMMANDS[arguments[0]], arguments[1:])
        parser = _parser()
        if arguments and (meant := _misspelt(arguments[0])):
            parser.error(
                f"there is no command {arguments[0]!r}; did you mean {meant}? -- sends it as a message"
            )
        namespace = parse(parser, arguments)
        if _wants_screen(namespace):
            return _open_screen(arguments)
        return _mode(namespace)(namespace)
    except PiError as error:
        return ended_by(error)


def _run_command(module: str, arguments: list[str]) -> int:
    from pi_trio.cli.words import flush

    with paused_collector():
        run = import_module(module).run
        spare_what_is_there()
    try:
        status = int(run(arguments))
        flush()
    except BrokenPipeError:  # whoever read the answer has seen enough
        return BROKEN_PIPE
    return status


def _misspelt(word: str) -> str | None:
    """The command that is close to a first argument, which otherwise would be a prompt."""
    if word.startswith("-") or " " in word:
        return None
    from difflib import get_close_matches

    return next(iter(get_close_matches(word, _COMMANDS, 1, _CLOSE)), None)


def _parser() -> argparse.ArgumentParser:
    parser = make_parser("pi-trio", _DESCRIPTION)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EPILOG
    output = parser.add_argument_group("output")
    output.add_argument("-p", "--print", action="store_true", help="answer on standard output and end")
    output.add_argument(
        "--output-schema", metavar="FILE", help="print only JSON that matches this JSON Schema"
    )
    output.add_argument("--timeout", metavar="SECONDS", type=positive(float), help="stop after this time")
    output.add_argument(
        "--mode",
        choices=("text", "json", "rpc"),
        help="print the answer, or every event as a line of JSON; rpc: take commands on standard input",
    )
    add_session_arguments(parser)
    return parser


def _wants_screen(namespace: argparse.Namespace) -> bool:
    on_terminal = all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))
    printing = namespace.print or namespace.output_schema or namespace.timeout
    return on_terminal and not printing and namespace.mode is None


def _mode(namespace: argparse.Namespace) -> Callable[[argparse.Namespace], int]:
    """What serves or answers."""
    with paused_collector():
        if namespace.mode == "rpc":
            from pi_trio.cli.rpc_mode import run_rpc as run
        else:
            from pi_trio.cli.print_mode import run_print as run
        spare_what_is_there()
    return run


def _open_screen(arguments: list[str]) -> int:
    """Hand over to the full screen, which is another package: it is found as a program, not imported."""
    from importlib.metadata import entry_points

    for program in entry_points(group="console_scripts", name="pi-tui"):
        return int(program.load()(arguments) or 0)
    raise ConfigError(
        "the full screen (pi-tui) is not installed here: `pip install pi-trio` brings it, "
        "and `pi-trio --print MESSAGE` works without it"
    )
