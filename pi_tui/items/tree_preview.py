"""What is told of the selected row of the tree: what was said, and what going there would find. Pure."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen
from rich.cells import cell_len
from textual.strip import Strip

from pi_trio.messages import AssistantMessage, ToolResultMessage
from pi_trio.remote.interface import Destination
from pi_trio.session.digest import said
from pi_tui.bodies import message_of
from pi_tui.calls import Calls
from pi_tui.items.paint import Look, Span, beginning, indented, line, one_line
from pi_tui.items.tools import call_line
from pi_tui.items.words import plural, tokens
from pi_tui.shown import Item
from pi_tui.tree_rows import Row

__all__ = ["Preview", "preview_strips", "preview_title"]

SAID_LINES = 2
CALL_LINES = 3


@frozen
class Preview:
    """A row with some of its bodies, the first and the last ones, and what going there would find."""

    row: Row
    bodies: Sequence[Mapping[str, Any]] = ()
    destination: Destination | None = None


def preview_title(row: Row, branch: str) -> str:
    """`B3 preview`."""
    return f"{branch}{row.number} preview" if row.kind == "prompt" else "preview"


def preview_strips(preview: Preview, now: str, cwd: str, note: str, look: Look) -> list[Strip]:
    """`now` is the model that would go on, with its level; `note` what a running turn has to do with it."""
    theme = look.theme
    strips = _said(preview, look)
    strips.append(line(look.width, []))
    if preview.destination is not None:
        strips.append(line(look.width, _going(preview.destination, now, look)))
        strips.append(line(look.width, _files(preview.destination, cwd, look)))
    if note:
        strips.append(line(look.width, [(f"  {note}", theme["warning"])]))
    return strips


def _said(preview: Preview, look: Look) -> list[Strip]:
    """The beginning of the first entry, of the last answer with words, and the last calls."""
    if not preview.bodies:
        return [line(look.width, [("  …", look.theme["dim"])])]
    first, *rest = preview.bodies
    strips = _beginning(said(first), "▌ " if preview.row.kind == "prompt" else "  ", look)
    messages = [message_of(each) for each in rest]
    answers = [each for each in messages if isinstance(each, AssistantMessage)]
    spoken = next((each.text for each in reversed(answers) if each.text.strip()), "")
    if spoken:
        strips += _beginning(spoken, "  ", look)
    calls, item = Calls(lambda: 0.0), None
    for message in messages:
        if isinstance(message, AssistantMessage):
            item = Item("", "message")
            calls.wanted(message, item)
        elif isinstance(message, ToolResultMessage):
            calls.settle(message, item)
    inside = look.narrower(2)
    lines = [call_line(call, inside) for call in list(calls)[-CALL_LINES:]]
    return strips + indented(lines, ("  ", look.theme["text"]), ("  ", look.theme["text"]))


def _beginning(text: str, mark: str, look: Look) -> list[Strip]:
    strips, more = beginning(text.strip(), SAID_LINES, look.width - 2, look.theme["text"])
    if more and strips:
        strips[-1] = line(look.width - 2, [(strips[-1].text.rstrip() + " …", look.theme["text"])])
    return indented(strips, (mark, look.theme["accent"]), (mark, look.theme["accent"]))


def _going(there: Destination, now: str, look: Look) -> list[Span]:
    theme = look.theme
    context = "unknown before the next answer" if there.context is None else tokens(there.context)
    spans = [("  Going here:  ", theme["muted"]), (f"context {context}", theme["text"])]
    if there.model is None:
        return spans
    level = there.thinking_level or "off"
    used = one_line(there.model if level == "off" else f"{there.model} {level}")
    same = used == now
    rest = f" · model {used}, as it was" if same else f" · model was {used}, {now} goes on"
    return [*spans, (rest, theme["text" if same else "warning"])]


def _files(there: Destination, cwd: str, look: Look) -> list[Span]:
    theme = look.theme
    lead: Span = ("  Files are not moved.  ", theme["muted"])
    if not there.compared:
        return [lead, ("No content of files is on record.", theme["muted"])]
    on_record = f"{plural(there.compared, 'file')} on record"
    if not there.differ:
        same = "is as it was" if there.compared == 1 else "are as they were"
        return [lead, (f"{on_record} {same} then.", theme["text"])]
    differ = "differs" if len(there.differ) == 1 else "differ"
    told: Span = (f"{len(there.differ)} of {on_record} now {differ} from then:  ", theme["warning"])
    return [lead, told, (_names(there.differ, cwd, look.width - 60), theme["text"])]


def _names(paths: Sequence[str], cwd: str, room: int) -> str:
    """As many paths as there is room for, shortest spelling, and how many more there are."""
    names = [one_line(os.path.relpath(each, cwd) if each.startswith(cwd + "/") else each) for each in paths]
    shown: list[str] = []
    for name in names:
        if shown and cell_len("  ".join([*shown, name])) > room:
            return "  ".join(shown) + f"  +{len(names) - len(shown)}"
        shown.append(name)
    return "  ".join(shown)
