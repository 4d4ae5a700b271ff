"""The program `pi-tui`: the command line, the signals, and a terminal left as it was found."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import traceback
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

from pi_trio.cli.attaching import add_token_argument, refuse_runtime_options
from pi_trio.cli.listening import add_encryption_arguments
from pi_trio.cli.options import add_session_arguments, make_parser, open_chosen_session, parse, runtime_config
from pi_trio.cli.start import command_line, run_program
from pi_trio.cli.status import BROKEN_PIPE, ended_by
from pi_trio.errors import PiError, UsageError
from pi_trio.text import sanitise
from pi_tui.signals import SIGNALS, ignore_further

if TYPE_CHECKING:
    from pathlib import Path

    from pi_trio.doctor import Finding
    from pi_trio.remote.interface import Runtime, Snapshot
    from pi_trio.resources.config import RuntimeConfig
    from pi_tui.app import Ask, PiApp

__all__ = ["examine", "main", "run_app"]

_SERVED_AT = "127.0.0.1:7718"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program with these arguments (default: those of the process).

    Returns the exit status; what went wrong is told in one line. Raises `SystemExit` where the command
    line cannot be read.
    """
    if sys.platform == "win32":
        sys.exit("pi-tui needs Linux or macOS; on Windows please run it inside WSL.")
    return run_program(partial(_main, command_line(argv)))


def _main(argv: Sequence[str]) -> int:
    parser = _parser()
    namespace = parse(parser, argv)
    try:
        if namespace.serve is None and not _has_screen():
            raise UsageError(
                "this needs a terminal: pi-trio chat talks in plain lines, pi-trio -p answers in a pipe"
            )
        if namespace.attach:
            refuse_runtime_options(parser, namespace)
        config = runtime_config(namespace)
        if namespace.serve is not None:
            return _serve(namespace, argv, config)
        app = _make_app(namespace, config)
    except BrokenPipeError:  # nobody reads where the screen is served
        return BROKEN_PIPE
    except PiError as error:
        return ended_by(error, "pi-tui")
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


def _serve(namespace: argparse.Namespace, argv: Sequence[str], config: RuntimeConfig) -> int:
    """Serve the screen to browsers. Returns the exit status."""
    from importlib.util import find_spec

    if find_spec("textual_serve") is None:
        raise UsageError("--serve needs textual-serve: pip install 'pi-trio[web]'")
    from pi_tui.web import serve

    return serve(namespace, _without_serving(argv), config.agent_dir)


def _without_serving(argv: Sequence[str]) -> list[str]:
    """The arguments that each tab's program gets."""
    serving = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    _add_serving(serving)
    end = argv.index("--") if "--" in argv else len(argv)
    _, others = serving.parse_known_args(argv[:end])
    return [*others, *argv[end:]]


def _report(app: PiApp, status: int, again: str) -> int:
    """Say how it went. Returns the exit status."""
    if isinstance(app.failure, PiError):
        return ended_by(app.failure, "pi-tui")
    if app.failure is not None:
        traceback.print_exception(app.failure)
        return 1
    if app.left_behind:
        sys.stderr.write(f"pi-tui: left while it did not stop: {'; '.join(app.left_behind)}\n")
    if status == 0 and app.resume is not None and not app.is_web:
        answer = sanitise(app.last_answer)
        sys.stdout.write(f"{answer}\n\n" if answer else "")
        sys.stdout.write(f"To go on with it:\n{again} --session {app.resume}\n")
    return status


def examine(config: RuntimeConfig) -> Iterator[Finding]:
    """What `pi-trio doctor` says about the screen's own files: it finds this beside the program."""
    from pi_tui.screen_check import examine_screen

    return examine_screen(config, _theme_folders(config))


def _has_screen() -> bool:
    if "TEXTUAL_DRIVER" in os.environ:  # a tab of a browser has one
        return True
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
    for number in SIGNALS:
        loop.add_signal_handler(number, app.end_by, number)
    try:
        await app.run_async()
    finally:
        await app.stop_runtime()
    status = app.return_code or 0
    if status > 128:  # by a signal
        ignore_further(SIGNALS)
    return status


def _parser() -> argparse.ArgumentParser:
    parser = make_parser("pi-tui", "Talk to a coding agent, full screen.")
    parser.add_argument(
        "--theme", metavar="NAME", help="system, a theme's name, two as light/dark, or a path"
    )
    parser.add_argument("--attach", metavar="URL", help="show sessions of this server (pi-trio serve)")
    add_token_argument(parser)
    _add_serving(parser.add_argument_group("browser"))
    add_session_arguments(parser)
    return parser


def _add_serving(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--serve",
        metavar="HOST:PORT",
        nargs="?",
        const=_SERVED_AT,
        help=f"serve this screen to browsers: at {_SERVED_AT} if it is not said; port 0 takes a free one",
    )
    add_encryption_arguments(parser)


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
