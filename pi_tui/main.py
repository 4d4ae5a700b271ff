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
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pi_trio.cli.attaching import add_token_argument, refuse_runtime_options
from pi_trio.cli.options import add_session_arguments, make_parser, open_chosen_session, parse, runtime_config
from pi_trio.errors import PiError
from pi_trio.text import sanitise

if TYPE_CHECKING:
    from pathlib import Path

    from pi_trio.remote.interface import Runtime, Snapshot
    from pi_trio.resources.config import RuntimeConfig
    from pi_tui.app import Ask, PiApp

__all__ = ["main", "run_app"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program with these arguments (default: those of the process).

    Returns the exit status. Raises `SystemExit`, with one line, for what a person can mend.
    """
    if sys.platform == "win32":
        sys.exit("pi-tui needs Linux or macOS; on Windows please run it inside WSL.")
    parser = _parser()
    namespace = parse(parser, sys.argv[1:] if argv is None else argv)
    if not _has_screen():
        sys.exit("pi-tui needs a terminal: pi-trio chat talks in plain lines, pi-trio -p answers in a pipe.")
    try:
        if namespace.attach:
            refuse_runtime_options(parser, namespace)
        app = _make_app(namespace, runtime_config(namespace))
    except PiError as error:
        sys.exit(f"pi-tui: {error}")
    return run_app(app, f"pi-tui --attach {namespace.attach}" if namespace.attach else "pi-tui")


def run_app(app: PiApp, again: str = "pi-tui") -> int:
    """Run the app to its end, with the terminal restored and no process left, and report how it went.

    `again` is the command that is told to go on with the session.
    """
    status = asyncio.run(_run(app))
    _let_go_of_terminal()
    status = _report(app, status, again)
    if app.left_behind:  # the thread that waits for it would hold the program
        _let_go_of_terminal()
        os._exit(status)
    return status


def _report(app: PiApp, status: int, again: str) -> int:
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
        answer = sanitise(app.last_answer)
        sys.stdout.write(f"{answer}\n\n" if answer else "")
        sys.stdout.write(f"To go on with it:\n{again} --session {app.resume}\n")
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
        loop.add_signal_handler(number, app.end_by, number)
    try:
        await app.run_async()
    finally:
        await app.stop_runtime()
    return app.return_code or 0


def _parser() -> argparse.ArgumentParser:
    parser = make_parser("pi-tui", "Talk to a coding agent, full screen.")
    parser.add_argument(
        "--theme", metavar="NAME", help="system, a theme's name, two as light/dark, or a path"
    )
    parser.add_argument("--attach", metavar="URL", help="show sessions of this server (pi-trio serve)")
    add_token_argument(parser)
    add_session_arguments(parser)
    return parser


def _make_app(namespace: argparse.Namespace, config: RuntimeConfig) -> PiApp:
    from attrs import evolve

    from pi_tui import terminal
    from pi_tui.app import PiApp
    from pi_tui.history import PromptHistory
    from pi_tui.key_clashes import clashes
    from pi_tui.keymap import load_keymap
    from pi_tui.theme_choice import Themes

    terminal.install()
    if terminal.is_colourless():
        os.environ.setdefault("NO_COLOR", "1")
    config = evolve(config, can_ask=True)
    keymap = load_keymap(config.agent_dir / "keybindings.json")
    themes = Themes(_theme_folders(config))
    theme, odd = themes.load_or_system(namespace.theme or config.settings.theme)

    async def settle(ask: Ask) -> None:
        """Whether what the folder brings along is used, before anything of it is."""
        nonlocal config
        if config.trust.undecided:
            from pi_trio.resources.trust_question import TRUST_CHOICES, after_trust, trust_question

            config = after_trust(config, await ask("trust", trust_question(config), TRUST_CHOICES))
            themes.folders = _theme_folders(config)
            app.theming.take_choice(namespace.theme or config.settings.theme)

    @asynccontextmanager
    async def open_runtime() -> AsyncIterator[Runtime]:
        from pi_trio.harness import runtime
        from pi_tui.widgets import body  # noqa: F401  # loaded here, it does not hold up the screen

        async with runtime.open_runtime(config) as opened:
            yield opened

    async def choose(runtime: Runtime) -> Snapshot:
        return await open_chosen_session(runtime, namespace)

    def save_theme(choice: str) -> None:
        from pi_trio.resources.setting_changes import change_setting

        change_setting(config.agent_dir / "settings.json", "theme", choice)

    make = partial(
        PiApp,
        theme=theme,
        themes=themes,
        choice=namespace.theme or config.settings.theme,
        save_theme=save_theme,
        notices=[notice for notice in (odd, *clashes(keymap)) if notice],
        keymap=keymap,
        messages=namespace.messages,
        history=PromptHistory(None if config.no_session else config.agent_dir / "prompt-history.jsonl"),
        editor=config.settings.external_editor,
        tree_shows=config.settings.tree_filter_mode,
    )
    if namespace.attach:
        from pi_tui.attached import choose_attached, open_attached

        app = make(partial(open_attached, namespace), partial(choose_attached, namespace))
    else:
        app = make(open_runtime, choose, settle=settle)
    return app


def _theme_folders(config: RuntimeConfig) -> Sequence[Path]:
    """Where themes are looked for: those of a folder count if it is trusted, and win."""
    from pi_tui.theme import bundled_folder

    if "themes" in config.without:
        return [bundled_folder()]
    own = [config.cwd / ".pi" / "themes"] if config.trust.trusted else []
    return [*own, config.agent_dir / "themes", bundled_folder()]
