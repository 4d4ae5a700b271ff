"""A tool call in the stream: one line that says what, how it ended, and for long ones the tail.

Failed calls show their last lines by themselves; the rest opens with ctrl+o, and in full in
the tool pane.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from textual.strip import Strip

from pi_trio.codec import dumps
from pi_trio.text import sanitise
from pi_tui.items.diff import diff_strips
from pi_tui.items.paint import BOLD, Look, Span, indented, line, one_line, wrapped
from pi_tui.items.words import clock, duration, plural
from pi_tui.shown import Call
from pi_tui.status import SPINNER

__all__ = ["call_details", "call_line", "call_strips", "diff_of", "subject"]

NAME_CELLS = 6
FAILED_LINES = 5
EXPANDED_LINES = 200
ELAPSED_AFTER = 2.0

_EXIT_CODE = re.compile(r"exited with code (\d+)\s*$")
"""How the bash tool ends the text of a command that failed."""

_GLYPHS = {"waiting": "·", "done": "✓", "failed": "✗", "stopped": "■", "not_started": "·"}
_TOKENS = {
    "waiting": "muted",
    "running": "accent",
    "done": "success",
    "failed": "error",
    "stopped": "warning",
    "not_started": "muted",
}


def call_strips(call: Call, look: Look) -> list[Strip]:
    """The line of a call, and below it what is worth seeing of its output."""
    strips = [call_line(call, look)]
    inside = look.narrower(NAME_CELLS + 3)
    if look.expanded:
        body = call_details(call, inside, EXPANDED_LINES)
    elif call.state == "failed":
        body = _tail(call.printed, inside, FAILED_LINES)
    elif call.state == "running":
        body = _tail(call.printed, inside, 1)
    else:
        body = []
    mark: Span = ("│" + " " * (NAME_CELLS + 2), look.theme["borderMuted"])
    return strips + indented(body, mark, mark)


def call_line(call: Call, look: Look) -> Strip:
    """One line: state, tool, what it works on; at the right how it went."""
    theme = look.theme
    glyph = SPINNER[look.tick % len(SPINNER)] if call.state == "running" else _GLYPHS[call.state]
    left: list[Span] = [
        (glyph + " ", theme[_TOKENS[call.state]]),
        (one_line(call.name).ljust(NAME_CELLS) + " ", theme["toolTitle"] + BOLD),
        (one_line(subject(call)), theme["toolTitle"]),
    ]
    return line(look.width, left, _notes(call, look))


def call_details(call: Call, look: Look, limit: int | None = None) -> list[Strip]:
    """The whole outcome: the diff of an edit, else the output; `limit` keeps the last lines only."""
    if diff := diff_of(call):
        strips = diff_strips(diff, look)
    elif call.name == "write" and isinstance(content := call.args.get("content"), str):
        strips = wrapped(content, look.width, look.theme["toolOutput"])
    else:
        return _tail(call.printed, look, limit)
    return strips[:limit] if limit else strips


def diff_of(call: Call) -> str:
    """The diff that an edit reported, or nothing."""
    diff = call.details.get("diff") if isinstance(call.details, Mapping) else None
    return diff if isinstance(diff, str) else ""


def subject(call: Call) -> str:
    """What the call works on."""
    args = call.args
    if isinstance(command := args.get("command"), str):
        return command
    if isinstance(pattern := args.get("pattern"), str):
        where = args.get("path")
        return f"{pattern} in {where}" if isinstance(where, str) else pattern
    if isinstance(path := args.get("path"), str):
        return path
    return _compact(args)


def _compact(args: Mapping[str, Any]) -> str:
    return dumps(dict(args)).decode("utf-8", "replace") if args else ""


def _notes(call: Call, look: Look) -> list[Span]:
    """At the right: what came of it, and how long it took."""
    theme = look.theme
    if call.state == "running":
        elapsed = look.now - call.started
        return [(clock(elapsed), theme["muted"])] if elapsed >= ELAPSED_AFTER else []
    if call.state == "not_started":
        return [("not started", theme["muted"])]
    notes = _outcome(call, look)
    if call.duration_ms is not None and call.duration_ms >= 1000:
        notes.append(("  " + duration(call.duration_ms / 1000), theme["muted"]))
    return notes


def _outcome(call: Call, look: Look) -> list[Span]:
    theme = look.theme
    if call.state == "stopped":
        return [("stopped", theme["warning"])]
    if call.state == "failed":
        code = _EXIT_CODE.search(call.output[-200:])
        return [(f"exit {code[1]}" if code else "failed", theme["error"])]
    if diff := diff_of(call):
        added, removed = _count(diff, "+"), _count(diff, "-")
        return [(f"+{added}", theme["toolDiffAdded"]), (f" −{removed}", theme["toolDiffRemoved"])]
    if call.name == "read" and call.output:
        return [(plural(call.output.rstrip("\n").count("\n") + 1, "line"), theme["muted"])]
    return []


def _count(diff: str, sign: str) -> int:
    return sum(part.startswith(sign) and not part.startswith(sign * 3) for part in diff.split("\n"))


def _tail(output: str, look: Look, limit: int | None) -> list[Strip]:
    """The last lines of an output."""
    lines = sanitise(output).strip("\n").split("\n") if output.strip() else []
    shown = lines if limit is None else lines[-limit:]
    strips: list[Strip] = []
    for part in shown:
        strips += wrapped(part, look.width, look.theme["toolOutput"])
    return strips if limit is None else strips[-limit:]
