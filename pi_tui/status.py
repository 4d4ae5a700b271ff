"""What the status line and the rule above the prompt say: pure.

The first part of the line always tells what Esc does now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from attrs import evolve, frozen
from rich.cells import cell_len

from pi_tui.items.paint import Span
from pi_tui.items.words import clock, in_rows, money, plural, tokens
from pi_tui.keymap import NO_CHANGES, hint
from pi_tui.ladder import Situation, escape_step
from pi_tui.open_sessions import State
from pi_tui.theme import Theme

if TYPE_CHECKING:
    from pi_tui.store import SessionStore

__all__ = ["Part", "fitting", "key_hints", "rule_label", "status_parts"]

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
"""Frames of what works; the tools in the stream turn with them."""

HIGH, FULL = 70, 90
"""Percent of the context from which on its share is coloured."""

NEAR_LIMIT = 0.8
"""The part of a limit on cost from which on what was spent is coloured."""


@frozen
class Part:
    """A part of the status line. Those of the highest `rank` go first when there is no room."""

    spans: tuple[Span, ...]
    rank: int

    @property
    def cells(self) -> int:
        """How wide it is."""
        return sum(cell_len(text) for text, _ in self.spans)

    def cut(self, width: int) -> Part:
        """As many of its hints as there is room for."""
        if self.cells <= width:
            return self
        text, style = self.spans[0]
        return evolve(self, spans=((in_rows(text, width)[0], style),))


def fitting(parts: Sequence[Part], width: int) -> list[Part]:
    """The parts that fit side by side, in their order; one always stays."""
    kept: list[Part] = []
    for part in sorted((part for part in parts if part.spans), key=lambda part: part.rank):
        if not kept or sum(each.cells + 3 for each in [*kept, part]) <= width + 3:
            kept.append(part)
    return [part.cut(width) for part in parts if part in kept]


def status_parts(
    store: SessionStore | None,
    now: Situation,
    message: str,
    theme: Theme,
    keymap: Mapping[str, str] = NO_CHANGES,
    others: Mapping[State, int] | None = None,
) -> list[Part]:
    """All parts, left to right. A `message` stands in the place of the key hints.

    `others` counts the sessions that are open and not shown.
    """
    if message:
        first = Part(((message, theme["warning"]),), 0)
    else:
        first = Part(((key_hints(now, keymap), theme["muted"]),), 0)
    if store is None:
        return [first, Part((("starting …", theme["dim"]),), 1)]
    usual = store.mode == "auto"
    mode = Part(((store.mode, theme["muted" if usual else "warning"]),), 5 if usual else 1)
    parts = [_model(store, theme), _context(store, theme), _cost(store, theme), _branch(store, theme)]
    return [first, _others(others or {}, theme), *parts, mode]


def _others(others: Mapping[State, int], theme: Theme) -> Part:
    """How the other open sessions stand; that they are idle is worth no words where others are not."""
    told = {state: count for state, count in others.items() if state is not State.IDLE} or others
    wanted = State.ASKS in told or State.FAILED in told
    words = " · ".join(_other(state, count) for state, count in told.items())
    return Part(((words, theme["warning" if wanted else "muted"]),) if words else (), 1)


def _other(state: State, count: int) -> str:
    """`? 1 other asks`, `⠼ 2 others run`, `1 other open`."""
    if state is State.IDLE:
        return f"{plural(count, 'other')} open"
    word = state.word if count == 1 else state.word.removesuffix("s")
    return f"{state.sign} {plural(count, 'other')} {word}"


def key_hints(now: Situation, keymap: Mapping[str, str] = NO_CHANGES) -> str:
    """What the most important keys do now; what Esc does comes first."""
    escape = escape_step(now).value
    first = {"app.interrupt": escape} if escape else {}
    more = f"empty {hint({'tui.input.submit': 'goes on'}, keymap)} · " if _offers_to_go_on(now) else ""
    hints = (hint(first, keymap), more + hint(_hinted(now), keymap))
    return " · ".join(filter(None, hints))


def _offers_to_go_on(now: Situation) -> bool:
    return now.owed and not (now.in_pane or now.listing or now.draft)


def _hinted(now: Situation) -> Mapping[str, str]:
    """The actions that are worth a hint, and what they do now."""
    if now.selected:
        return {"app.clear": "copies"}
    if now.searching:
        return {"tui.select.confirm": "ends writing, then n N next"}
    if now.in_pane and now.pane == "tree":
        return {
            "tui.select.confirm": "go",
            "app.tree.summarise": "summary",
            "app.tree.branch": "branch",
            "app.tree.fork": "fork",
            "app.tree.back": "back",
        }
    if now.in_pane and now.pane == "reading":
        return {
            "app.stream.previous app.stream.next": "block",
            "app.stream.expand": "all of it",
            "app.stream.copy": "copy",
            "app.stream.find": "find",
        }
    if now.in_pane:
        return {
            "app.tools.previous app.tools.next": "select",
            "app.tools.pin": "pin",
            **({"app.tools.stop": "stop"} if now.stoppable else {}),
        }
    if now.listing:
        return {"tui.input.tab": "complete", "tui.editor.cursorUp tui.editor.cursorDown": "choose"}
    if now.editing:
        return {"tui.input.submit": "keep the change"}
    if now.in_queue:
        return {"app.queue.edit": "edit", "app.queue.up app.queue.down": "choose"}
    if now.busy and now.draft:
        return {"tui.input.submit": "steer", "tui.input.tab": "queue"}
    if now.draft:
        return {"tui.input.submit": "send"}
    if now.owed:
        return {"app.help": "help"}
    return {"app.session.tree": "tree", "app.palette": "everything", "app.help": "help"}


def rule_label(store: SessionStore | None, now: Situation, tick: int) -> str:
    """What goes on, in the line above the prompt; empty while nothing does."""
    if store is not None and store.lost is not None:
        return f"{store.lost.reason}; trying again"
    if now.editing:
        return "editing a message that waits"
    if store is None or not (now.busy or now.shell):
        return ""
    if now.stopping:
        names = ", ".join(call.name for call in store.running_calls)
        return f"stopping {names} …" if names else "stopping …"
    if store.retry is not None and not now.summarising:
        left = max(store.retry.due - store.clock(), 0)
        return f"retry {store.retry.attempt}/{store.retry.max_attempts} in {left:.0f}s: {store.retry.reason}"
    what, since = _doing(store, now)
    working = f"{SPINNER[tick % len(SPINNER)]} {what}{clock(store.clock() - since)}"
    if not (now.draft and now.running):
        return working
    return f"{working} · steering ▸ goes in after this {'tool' if store.running_calls else 'answer'}"


def _doing(store: SessionStore, now: Situation) -> tuple[str, float]:
    """What takes its time now, in a word where it is no turn, and since when."""
    if store.compacting_since is not None:
        return "compacting ", store.compacting_since
    if now.summarising:
        return "summarising the branch ", store.clock()
    if not now.running and store.shell is not None:
        return "! ", store.shell.started
    return "", store.run_started


def _model(store: SessionStore, theme: Theme) -> Part:
    level = store.thinking_level
    name = f"{store.model.id} {level}" if store.model.reasoning and level != "off" else store.model.id
    return Part(((name, theme["muted"]),), 2)


def _context(store: SessionStore, theme: Theme) -> Part:
    used, window = store.items.context_tokens, store.model.context_window
    if used is None or not window:
        return Part((("ctx ?", theme["muted"]),), 1)
    percent = round(100 * used / window)
    colour = "error" if percent >= FULL else "warning" if percent >= HIGH else "muted"
    size = f"ctx {tokens(used)}/{tokens(window)} {percent}%" if used else "ctx 0%"
    return Part(((size, theme[colour]),), 1)


def _cost(store: SessionStore, theme: Theme) -> Part:
    cost, complete = store.cost
    if store.max_cost is not None:
        near = store.spent >= NEAR_LIMIT * store.max_cost
        limited = f"{money(store.spent)} / {money(store.max_cost)}"
        return Part(((limited, theme["warning" if near else "muted"]),), 1 if near else 4)
    if not cost and not complete:
        return Part((), 4)  # nothing is known yet: no figure is better than a wrong one
    if not cost and store.model.cost is None:
        return Part((("price unknown", theme["muted"]),), 4)
    spent = ("" if complete else "≥ ") + money(cost)
    turn = f"{money(store.items.turn_cost)} of " if 0 < store.items.turn_cost < cost else ""
    return Part(((turn + spent, theme["muted"]),), 4)


def _branch(store: SessionStore, theme: Theme) -> Part:
    branches, branch = store.outline.branches, store.outline.branch(store.leaf_id)
    if branches < 2:
        return Part((), 3)
    mark = f"⎇ {branch}/{branches}" if branch else f"⎇ {branches}"
    return Part(((mark, theme["accent"]),), 3)
