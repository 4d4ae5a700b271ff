"""The first thing a person sees: what answers, with whose key, and what can be done."""

from __future__ import annotations

import os

from textual.strip import Strip

from pi_trio.llm.protocol import Model
from pi_trio.remote.interface import SessionInfo
from pi_tui.items.paint import BOLD, Look, Span, line, painted, wrapped
from pi_tui.items.words import money, short_path, tokens

__all__ = ["SUGGESTIONS", "welcome"]

SUGGESTIONS = (
    "explain this repository",
    "find a failing test and fix it",
    "what can you do here?",
)
"""What a digit on the empty prompt of a new session writes into it."""


def welcome(session: SessionInfo, model: Model, notice: str, look: Look) -> list[Strip]:
    """The page of a session in which nothing was said yet."""
    muted, text = look.theme["muted"], look.theme["text"]

    def row(label: str, *spans: Span) -> Strip:
        return line(look.width, [(label.ljust(9), muted), *spans])

    where = short_path(session.cwd, os.environ.get("HOME", ""))
    strips = [line(look.width, [("pi_trio", look.theme["accent"] + BOLD), (f" in {where}", text)])]
    strips += [_blank(look), row("model", (model.reference, text + BOLD), (f" · {_price(model)}", muted))]
    for part in wrapped(notice, look.width - 9, muted) if notice else []:
        strips.append(row("", *((segment.text, segment.style or muted) for segment in part)))
    strips.append(row("", ("nothing sent, nothing spent until your first Enter", muted)))
    strips += [row("tools", ("edits and commands run without asking, no sandbox", text)), _blank(look)]
    for number, suggestion in enumerate(SUGGESTIONS, 1):
        strips.append(line(look.width, [(f"{number}  ", look.theme["accent"]), (suggestion, text)]))
    strips.append(line(look.width, [("   (a number fills the prompt; Enter sends)", muted)]))
    return strips


def _price(model: Model) -> str:
    context = f"{tokens(model.context_window)} context"
    if model.cost is None:
        return f"{context} · price unknown"
    if not model.cost.input and not model.cost.output:
        return f"{context} · free"
    return f"{context} · {money(model.cost.input)} in, {money(model.cost.output)} out per M"


def _blank(look: Look) -> Strip:
    return painted([], look.width)
