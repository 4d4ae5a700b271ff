"""The first thing a person sees: what answers, with whose key, and what can be done."""

from __future__ import annotations

import os

from textual.strip import Strip

from pi_trio.approval import GateMode
from pi_trio.llm import demo
from pi_trio.llm.protocol import Model
from pi_trio.remote.interface import SessionInfo
from pi_tui.items.paint import BOLD, Look, indented, line, painted, wrapped
from pi_tui.items.words import short_path

__all__ = ["suggestions", "welcome"]

LABEL = 9
"""Cells of the words at the left."""

_SUGGESTIONS = (
    "explain this repository",
    "find a failing test and fix it",
    "what can you do here?",
)
_DEMO_SUGGESTIONS = (
    "list . and run `ls -la`",
    "run `sleep 5`",
    "what can you do here?",
)


def suggestions(model: Model) -> tuple[str, ...]:
    """What a digit on the empty prompt of a new session writes into it: things that the model can do."""
    return _DEMO_SUGGESTIONS if model.provider == demo.PROVIDER else _SUGGESTIONS


_TOOLS = {
    "auto": "edits and commands run without asking, no sandbox · /mode ask",
    "ask": "edits and commands are asked about first; no sandbox",
    "read-only": "they only look at things: no edits, no commands",
}


def welcome(session: SessionInfo, model: Model, notice: str, mode: GateMode, look: Look) -> list[Strip]:
    """The page of a session in which nothing was said yet; `notice` names model, key and price."""
    muted, text = look.theme["muted"], look.theme["text"]

    def rows(label: str, body: str) -> list[Strip]:
        rest = (" " * LABEL, muted)
        return indented(wrapped(body, look.width - LABEL, text), (label.ljust(LABEL), muted), rest)

    where = short_path(session.cwd, os.environ.get("HOME", ""))
    strips = [
        line(look.width, [("pi_trio", look.theme["accent"] + BOLD), (f" in {where}", text)]),
        _blank(look),
        *rows("model", notice),
        *rows("", "nothing sent, nothing spent until your first Enter"),
        *rows("tools", _TOOLS[mode]),
        _blank(look),
    ]
    for number, suggestion in enumerate(suggestions(model), 1):
        strips.append(line(look.width, [(f"{number}  ", look.theme["accent"]), (suggestion, text)]))
    strips.append(line(look.width, [("   (a number fills the prompt; Enter sends)", muted)]))
    return strips


def _blank(look: Look) -> Strip:
    return painted([], look.width)
