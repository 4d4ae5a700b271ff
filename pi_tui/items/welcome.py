"""The first thing a person sees: what answers, with whose key, and what can be done."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual.strip import Strip

from pi_trio.llm import demo
from pi_trio.llm.protocol import Model
from pi_trio.remote.interface import CommandInfo
from pi_trio.remote.offers import Surroundings
from pi_tui.items.paint import BOLD, Look, Span, indented, line, painted, wrapped
from pi_tui.items.words import plural, short_path

if TYPE_CHECKING:
    from pi_tui.store import SessionStore

__all__ = ["suggestions", "welcome"]

LABEL = 9
"""Cells of the words at the left."""

TWO_COMMANDS = 76
"""Cells from which on two commands stand side by side."""

_SUGGESTIONS = ("explain this repository", "find a failing test and fix it", "/tour")
_DEMO_SUGGESTIONS = ("list . and run `ls -la`", "run `sleep 5`", "/tour")
_TOUR = ": two minutes, demo model, offline, free"

_COMMANDS = (
    (("/login", "paste a key"), ("/model", "other models, local ones")),
    (("/import pi", "bring over sessions and keys"), ("/doctor", "check this machine")),
    (("/resume", "an earlier session"), ("/trust", "this folder's resources")),
)


def suggestions(model: Model) -> tuple[str, ...]:
    """What a digit on the empty prompt of a new session writes into it: things that the model can do."""
    return _DEMO_SUGGESTIONS if model.provider == demo.PROVIDER else _SUGGESTIONS


_TOOLS = {
    "auto": "edits and commands run without asking, no sandbox · /mode ask",
    "ask": "edits and commands are asked about first; no sandbox",
    "read-only": "they only look at things: no edits, no commands",
}


def welcome(store: SessionStore, look: Look) -> list[Strip]:
    """The page of a session in which nothing was said yet; its notice names model, key and price.

    What is around, and which commands are possible, comes a moment later.
    """
    around = store.surroundings
    muted, text, accent = look.theme["muted"], look.theme["text"], look.theme["accent"]
    home = os.environ.get("HOME", "")

    def rows(label: str, body: str) -> list[Strip]:
        rest = (" " * LABEL, muted)
        return indented(wrapped(body, look.width - LABEL, text), (label.ljust(LABEL), muted), rest)

    version = f" {around.version}" if around else ""
    place = f" in {short_path(store.session.cwd, home)}"
    strips = [
        *_heading([(f"pi_trio{version}", accent + BOLD), (place, text)], (_place(around), muted), look),
        _blank(look),
        *rows("model", store.notice),
        *rows("", "nothing sent, nothing spent until your first Enter"),
    ]
    for label, fact in zip(("also", *[""] * 9), _also(around, home), strict=False):
        strips += rows(label, fact)
    strips += [*rows("tools", _TOOLS[store.mode]), _blank(look)]
    for number, suggestion in enumerate(suggestions(store.model), 1):
        about = _TOUR if suggestion == "/tour" else ""
        strips.append(line(look.width, [(f"{number}  ", accent), (suggestion, text), (about, muted)]))
    strips += [line(look.width, [("   (a number fills the prompt; Enter sends)", muted)]), _blank(look)]
    return strips + [strip for row in _offered(store.commands) for strip in _row(row, look)]


def _heading(where: list[Span], about: Span, look: Look) -> list[Strip]:
    """One line, or two where the path is long."""
    room = look.width - sum(cell_len(text) for text, _ in where)
    if cell_len(about[0]) <= room:
        return [line(look.width, [*where, about])]
    return [line(look.width, where), line(look.width, [(about[0].removeprefix(" · "), about[1])])]


def _place(around: Surroundings | None) -> str:
    if around is None:
        return ""
    sessions = plural(around.sessions, "session") if around.sessions else "no sessions"
    return f" · {sessions} here · {around.trust}"


def _also(around: Surroundings | None, home: str) -> Iterator[str]:
    """What else there is to work with."""
    if around is not None:
        yield from around.local
        if around.pi:
            yield f"pi in {short_path(around.pi, home)}"


def _offered(commands: Sequence[CommandInfo] | None) -> list[list[tuple[str, str]]]:
    """The rows of those that are possible here; all as long as that is not known."""
    names = {f"/{each.name}" for each in commands or ()}
    return [[each for each in row if commands is None or each[0].split()[0] in names] for row in _COMMANDS]


def _row(row: Sequence[tuple[str, str]], look: Look) -> list[Strip]:
    """Two commands, below each other where there is no room for both."""
    accent, muted = look.theme["accent"], look.theme["muted"]
    if len(row) < 2 or look.width < TWO_COMMANDS:
        return [line(look.width, [(f"{name:<12}", accent), (about, muted)]) for name, about in row]
    (first, about), (second, also) = row
    left, right = [(f"{first:<12}", accent), (f"{about:<30}", muted)], [(f"{second:<9}", accent)]
    return [line(look.width, [*left, *right, (also, muted)])]


def _blank(look: Look) -> Strip:
    return painted([], look.width)
