"""The program `pi-tui`: the command line, the signals, and a terminal left as it was found."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import traceback
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from pi_trio.cli.options import add_session_arguments, make_parser, open_chosen_session, parse, runtime_config
from pi_trio.errors import PiError

if TYPE_CHECKING:
    from pi_trio.remote.interface import Runtime, Snapshot
    from pi_trio.resources.config import RuntimeConfig
    from pi_tui.app import Ask, PiApp
    from pi_tui.theme import Theme

__all__ = ["main", "run_app"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program with these arguments (default: those of the process).

    Returns the exit status. Raises `SystemExit`, with one line, for what a person can mend.
    """
    if sys.platform == "win32":
        sys.exit("pi-tui needs Linux or macOS; on Windows please run it inside WSL.")
    namespace = parse(_parser(), sys.argv[1:] if argv is None else argv)
    if not _has_screen():
        sys.exit("pi-tui needs a terminal: pi-trio chat talks in plain lines, pi-trio -p answers in a pipe.")
    try:
        app = _make_app(namespace, runtime_config(namespace))
    except PiError as error:
        sys.exit(f"pi-tui: {error}")
    return run_app(app)


def run_app(app: PiApp) -> int:
    """Run the app to its end, with the terminal restored and no process left, and report how it went."""
    status = asyncio.run(_run(app))
    _let_go_of_terminal()
    status = _report(app, status)
    if app.left_behind:  # the thread that waits for it would hold the program
        _let_go_of_terminal()
        os._exit(status)
    return status


def _report(app: PiApp, status: int) -> int:
    """Say how it went. Returns the exit status."""
    if isinstance(app.failure, PiError):
        sys.stderr.write(f"pi-tui: {app.failure}\n")
        return 1
    if app.failure is not None:
        traceback.print_exception(app.failure)
        return 1
    if app.left_behind:
        sys.stderr.write(f"pi-tui: left while it did not stop: {'; '.join(app.left_behind)}\n")
    if status == 0 and app.resume is not None:
        sys.stdout.write(f"To go on with it: pi-tui --session {app.resume}\n")
    return status


def _has_screen() -> bool:
    streams = (sys.stdin, sys.stdout, sys.stderr)
    on_terminal = all(stream is not None and stream.isatty() for stream in streams)
    return on_terminal and os.environ.get("TERM", "dumb") != "dumb"


def _let_go_of_terminal() -> None:
    """What a terminal that is gone did not take must not become the exit status."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)


async def _run(app: PiApp) -> int:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, app.exit, None, 128 + number)
    try:
        await app.run_async()
    finally:
        await app.stop_runtime()
    return app.return_code or 0


def _parser() -> argparse.ArgumentParser:
    parser = make_parser("pi-tui", "Talk to a coding agent, full screen.")
    parser.add_argument("--theme", metavar="NAME", help="dark, light, a theme of yours, or a path")
    add_session_arguments(parser)
    return parser


def _make_app(namespace: argparse.Namespace, config: RuntimeConfig) -> PiApp:
    from attrs import evolve

    from pi_tui import terminal
    from pi_tui.app import PiApp
    from pi_tui.keymap import load_keymap

    terminal.install()
    config = evolve(config, can_ask=True)

    async def settle(ask: Ask) -> None:
        """Whether what the folder brings along is used, before anything of it is."""
        nonlocal config
        if config.trust.undecided:
            from pi_trio.resources.trust_question import TRUST_CHOICES, after_trust, trust_question

            config = after_trust(config, await ask("trust", trust_question(config), TRUST_CHOICES))

    @asynccontextmanager
    async def open_runtime() -> AsyncIterator[Runtime]:
        from pi_trio.harness import runtime
        from pi_tui.widgets import body  # noqa: F401  # loaded here, it does not hold up the screen

        async with runtime.open_runtime(config) as opened:
            yield opened

    async def choose(runtime: Runtime) -> Snapshot:
        return await open_chosen_session(runtime, namespace)

    return PiApp(
        open_runtime,
        choose,
        _theme(namespace.theme or config.settings.theme, config),
        keymap=load_keymap(config.agent_dir / "keybindings.json"),
        messages=namespace.messages,
        settle=settle,
    )


def _theme(name: str, config: RuntimeConfig) -> Theme:
    """The chosen theme; `system`, and a pair like `light/dark`, go by the terminal."""
    from pi_tui.theme import bundled_folder, default_theme_name, load_theme

    if "/" in name and not name.endswith(".json"):
        light, _, dark = name.partition("/")
        name = light if default_theme_name() == "light" else dark
    if name == "system":
        name = default_theme_name()
    return load_theme(name, [config.agent_dir / "themes", bundled_folder()])
