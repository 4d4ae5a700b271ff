"""A row of the session tree as a line: where it is, what was said, and its figures. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import takewhile

from attrs import frozen
from rich.cells import cell_len
from rich.style import Style
from textual.strip import Strip

from pi_trio.session.digest import Digest
from pi_tui.items.paint import BOLD, Span, fit, line, one_line
from pi_tui.items.words import age, money, plural, tokens
from pi_tui.outline import Code
from pi_tui.theme import Theme
from pi_tui.tree_rows import Row

__all__ = ["Columns", "Mark", "columns_for", "figures_strip", "headings", "row_strip"]

MIN_TEXT = 50
"""Cells that what was said has at least, as long as there is a column to give up for it."""

TOLD_APART = 10
"""Letters from where texts differ that tell them apart."""

STATE_CELLS = 11
GAP = 2

_HEADINGS = re.compile(r"^#.*\n", re.MULTILINE)
"""Of a summary, which begins with one."""

_STATES = {"aborted": "■ stopped", "error": "✗ failed", "length": "✗ cut off"}
_SIGNS = {
    Code.COMPACTION: "≡ ",
    Code.SUMMARY: "⎇ ",
    Code.RESULT: "↳ ",
    Code.RECORD: "· ",
    Code.TURN_END: "· ",
    Code.WITHDRAWN: "· ",
}


@frozen
class Column:
    """A figure of a row. `show` gives it as a person reads it, empty for what is not known or not there."""

    title: str
    cells: int
    show: Callable[[Row, Digest], str]


_COLUMNS = (
    Column("tools", 5, lambda row, told: str(row.tools or "·")),
    Column("files", 5, lambda row, told: str(len(told.files) or "·")),
    Column("ctx", 5, lambda row, told: tokens(told.context) if told.context else "·"),
    Column("cost", 6, lambda row, told: money(told.cost) if told.answers or told.cost else "·"),
    Column("age", 4, lambda row, told: age(told.timestamp)),
)
"""From left to right. Where there is no room, the first ones go first."""

Columns = Sequence[Column]


@frozen
class Mark:
    """What is drawn about a row besides itself. `doing` is what it does now, `found`: a search has it.

    `like` are the texts of the rows beside which it is to be told apart.
    """

    chosen: bool = False
    found: bool = False
    label: str = ""
    doing: str = ""
    like: Sequence[str] = ()


def columns_for(width: int) -> Columns:
    """The figures that there is room for beside what was said."""
    columns: Columns = _COLUMNS
    while columns and width - _cells(columns) < MIN_TEXT:
        columns = columns[1:]
    return columns


def _cells(columns: Columns) -> int:
    return STATE_CELLS + sum(each.cells + GAP for each in columns)


def headings(columns: Columns, theme: Theme) -> list[Span]:
    """The names of the columns, for the right end of the line above them."""
    names = "".join(" " * GAP + each.title.rjust(each.cells) for each in columns)
    return [(names + " " * STATE_CELLS, theme["dim"])]


def row_strip(
    row: Row, told: Digest | None, mark: Mark, columns: Columns | None, width: int, theme: Theme
) -> Strip:
    """The row. Without `columns` its figures are on a line of their own."""
    right = [] if columns is None else _figures(row, told, mark, columns, theme)
    label = f" [{fit(one_line(mark.label), width // 3)}]" if mark.label else ""
    left = _left(row, told, mark, width, theme)
    text, look = left.pop()
    room = width - sum(cell_len(each) for each, _ in [*left, *right]) - cell_len(label) - bool(right)
    left += [(_fit_apart(text, mark.like, max(room, 1)), look), (label, theme["warning"])]
    ground = theme["selectedBg"] if mark.chosen else theme["searchMatchBg"] if mark.found else None
    return line(width, left, right, ground)


def figures_strip(row: Row, told: Digest | None, mark: Mark, width: int, theme: Theme) -> Strip:
    """The second line of a row in a narrow tree."""
    left = [(f"  {_cut(row.rest, width)}   ", theme["border"]), (_summary(row, told, mark), theme["dim"])]
    return line(width, left, (), theme["selectedBg"] if mark.chosen else None)


def _left(row: Row, told: Digest | None, mark: Mark, width: int, theme: Theme) -> list[Span]:
    """Cursor, path, branch lines, number, and what was said."""
    look = theme["text" if row.kind == "prompt" else "muted"]
    look += Style(bold=row.active or None, underline=mark.found or None)
    return [
        ("›" if mark.chosen else " ", theme["accent"] + BOLD),
        ("•" if row.active else " ", theme["accent"]),
        (_cut(row.prefix, width), theme["border"]),
        (" ", Style()),
        (f"⊞ {row.hidden} " if row.hidden else "", theme["warning"]),
        (f"{row.number} " if row.kind == "prompt" else "", theme["muted"]),
        (_text(row, told), look),
    ]


def _cut(lines: str, width: int) -> str:
    """Branch lines leave room for what was said."""
    most = max(width // 5, 4)
    return lines if len(lines) <= most else "…" + lines[1 - most :]


def _text(row: Row, told: Digest | None) -> str:
    if told is None:
        return "…"
    said = one_line(_HEADINGS.sub("", told.text) if row.kind in ("compaction", "summary") else told.text)
    if row.kind == "compaction":
        said = f"compacted: {said}" if said else "compacted"
    if row.kind == "entry" and len(row.members) > 1:
        said = f"… {said}"  # the end of a turn that begins above, where the paths part
    return _SIGNS.get(row.code, "") + (said or "(nothing)")


def _fit_apart(text: str, like: Sequence[str], width: int) -> str:
    """`text` cut to a width; where others begin alike for longer than that, its beginning is cut off."""
    alike = max((_alike(text, one_line(each)) for each in like), default=0)
    differs = text[: alike + TOLD_APART]
    if cell_len(differs) < width or cell_len(text) <= width or alike == len(text):
        return fit(text, width)
    starts = [at + 1 for at in range(alike) if text[at] == " "]
    start = next((at for at in starts if cell_len(differs[at:]) + 2 <= width), alike)
    return fit("…" + text[start:], width)


def _alike(one: str, two: str) -> int:
    """With how many letters both begin."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, two, strict=False)))


def _figures(row: Row, told: Digest | None, mark: Mark, columns: Columns, theme: Theme) -> list[Span]:
    told = told or Digest()
    shown = "".join(" " * GAP + each.show(row, told).rjust(each.cells) for each in columns)
    state, colour = _state(told, mark)
    return [(shown, theme["muted"]), (f" {state}".ljust(STATE_CELLS), theme[colour])]


def _state(told: Digest, mark: Mark) -> tuple[str, str]:
    if mark.doing:
        return mark.doing, "accent"
    if told.stop_reason in _STATES:
        return _STATES[told.stop_reason], "warning" if told.stop_reason == "aborted" else "error"
    return ("✗ failed", "error") if told.failed else ("", "dim")


def _summary(row: Row, told: Digest | None, mark: Mark) -> str:
    if mark.doing:
        return f"running {mark.doing}"
    if told is None:
        return ""
    parts = [
        plural(row.tools, "tool") if row.tools else "",
        plural(len(told.files), "file") if told.files else "",
        money(told.cost) if told.cost else "",
        _state(told, mark)[0] or age(told.timestamp),
    ]
    return "  ".join(filter(None, parts))
