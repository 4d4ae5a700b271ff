"""The arguments that choose a model, limits, resources, a session and tools."""

from __future__ import annotations

import argparse
from collections.abc import Callable

__all__ = ["add_run_arguments", "add_session_arguments", "positive"]


def add_session_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what says which model to use, with what, and in which session."""
    _add_session(parser.add_argument_group("session"))
    add_run_arguments(parser)
    parser.add_argument(
        "messages", nargs="*", metavar="MESSAGE", help="a prompt, or @FILE to add a file to it"
    )


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what says which model to use, and with what."""
    _add_model(parser.add_argument_group("model"))
    _add_limits(parser.add_argument_group("limits"))
    _add_resources(parser.add_argument_group("resources"))
    _add_tools(parser.add_argument_group("tools"))
    tracing = parser.add_argument_group("tracing")
    tracing.add_argument(
        "--log", metavar="FILE", help="add a line of JSON to this file for each request, retry and tool call"
    )


def _add_model(model: argparse._ArgumentGroup) -> None:
    model.add_argument("--model", metavar="MODEL", help="provider/id, or part of an id; `:LEVEL` may follow")
    model.add_argument("--provider", metavar="NAME", help="the provider of a MODEL that is an id alone")
    model.add_argument(
        "--thinking", metavar="LEVEL", type=_level, help="off, minimal, low, medium, high, xhigh or max"
    )
    model.add_argument("--api-key", metavar="KEY", help="key of the model's provider, for this time only")
    model.add_argument("--demo", action="store_true", help="use the demo model: no key, no network")
    model.add_argument(
        "--offline",
        action="store_true",
        help="ask nobody but the provider of the model, not even this machine",
    )


def _add_limits(limits: argparse._ArgumentGroup) -> None:
    limits.add_argument(
        "--max-cost", metavar="USD", type=positive(float), help="stop when a session has cost this much"
    )
    limits.add_argument(
        "--max-steps", metavar="N", type=positive(int), help="stop a turn that would take more steps"
    )


def _add_resources(resources: argparse._ArgumentGroup) -> None:
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
    for flags, dest, what in _NAMED:
        resources.add_argument(
            *flags,
            dest=dest,
            action="append",
            default=[],
            metavar="PATH",
            help=f"load {what} too (repeatable)",
        )
    for flags, kind, what in _WITHOUT:
        resources.add_argument(
            *flags, dest="without", action="append_const", const=kind, default=[], help=f"leave out {what}"
        )
    resources.add_argument(
        "--system-prompt", metavar="TEXT", help="say this, or what stands in this file, in place of SYSTEM.md"
    )
    resources.add_argument(
        "--append-system-prompt",
        metavar="TEXT",
        action="append",
        default=[],
        help="the same, in place of APPEND_SYSTEM.md (repeatable)",
    )


_NAMED = (
    (("-e", "--extension"), "extensions", "this extension"),
    (("--skill",), "skills", "this skill, or the skills of this folder,"),
    (("--prompt-template",), "prompt_templates", "this prompt template, or those of this folder,"),
)
_WITHOUT = (
    (("-ne", "--no-extensions"), "extensions", "extensions that are not named here"),
    (("-ns", "--no-skills"), "skills", "skills that are not named here"),
    (("-np", "--no-prompt-templates"), "prompt-templates", "prompt templates that are not named here"),
    (("--no-themes",), "themes", "themes of yours and of the folder"),
    (("-nc", "--no-context-files"), "context-files", "AGENTS.md and its like"),
)


def _add_session(session: argparse._ArgumentGroup) -> None:
    which = session.add_mutually_exclusive_group()
    which.add_argument("--session", metavar="WHICH", help="open this session: a path, or part of an id")
    which.add_argument(
        "-c",
        "--continue",
        dest="resume",
        action="store_true",
        help="open the latest session of this directory",
    )
    which.add_argument("--session-id", metavar="ID", help="open the session of exactly this id, or begin it")
    which.add_argument("--fork", metavar="WHICH", help="begin a session as a copy of this one")
    which.add_argument("--no-session", action="store_true", help="keep the session in memory only")
    session.add_argument("-n", "--name", metavar="NAME", help="name the session")
    session.add_argument("--session-dir", metavar="DIR", help="keep sessions in this one folder")


def _add_tools(tools: argparse._ArgumentGroup) -> None:
    tools.add_argument(
        "--read-only", action="store_true", help="look at things only: no commands, no changes"
    )
    tools.add_argument(
        "-t",
        "--tools",
        metavar="NAMES",
        type=_names,
        help="use these tools, or change the default as +grep,-bash",
    )
    tools.add_argument(
        "-xt",
        "--exclude-tools",
        metavar="NAMES",
        type=_names,
        default=(),
        help="leave out these tools",
    )
    tools.add_argument(
        "-nbt", "--no-builtin-tools", action="store_true", help="use none but those of extensions"
    )
    tools.add_argument(
        "-nt",
        "--no-tools",
        dest="without",
        action="append_const",
        const="extension-tools",
        help="use no tools at all",
    )


def _level(word: str) -> str:
    from pi_trio.llm.thinking import LEVELS

    if word not in LEVELS:
        raise argparse.ArgumentTypeError(f"{word!r} is not one of {', '.join(LEVELS)}")
    return word


def positive(kind: Callable[[str], float]) -> Callable[[str], float]:
    """Reads a number above 0, for `type=`."""

    def read(word: str) -> float:
        try:
            value = kind(word)
        except ValueError:
            value = 0
        if not 0 < value < float("inf"):
            what = "a whole number" if kind is int else "a number"
            raise argparse.ArgumentTypeError(f"{word!r} is not {what} above 0")
        return value

    return read


def _names(text: str) -> tuple[str, ...]:
    """The names of tools in a list with commas. They are not looked up before there is a configuration."""
    return tuple(name for each in text.split(",") if (name := each.strip()))
