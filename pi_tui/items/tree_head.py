"""The lines above the rows of the session tree. Pure."""

from __future__ import annotations

from pathlib import PurePath

from rich.cells import cell_len
from textual.strip import Strip

from pi_tui.items.paint import BOLD, line
from pi_tui.items.tree_row import columns_for, headings
from pi_tui.items.words import in_rows, money
from pi_tui.store import SessionStore
from pi_tui.theme import Theme

__all__ = ["WIDE", "subtitle_strip", "title_strip"]

WIDE = 70
"""From this width on, figures stand in columns."""


def title_strip(store: SessionStore, shown: str, keys: str, width: int, theme: Theme) -> Strip:
    """The session, its branches, and where there is room what it is about and the most important keys."""
    name = store.session.name or PurePath(store.session.cwd).name or "session"
    if width < WIDE:
        return line(width, [(f" {name}", BOLD)], [(_branches(store), theme["muted"])])
    cost, complete = store.cost
    branches = store.outline.branches
    parts = [
        "Session tree",
        name,
        "1 branch" if branches == 1 else f"{branches} branches",
        "1 entry" if len(store.outline) == 1 else f"{len(store.outline):,} entries",
        f"{money(cost)} in all" if complete else "",
    ]
    right = keys.replace("{}", shown) + " "
    left = in_rows(" · ".join(filter(None, parts)), width - cell_len(right) - 2)[0]
    return line(width, [(f" {left}", BOLD)], [(right, theme["muted"])])


def subtitle_strip(searched: str, shown: str, width: int, theme: Theme) -> Strip:
    """A search, or what is shown where the title does not say so; and the names of the columns."""
    if width >= WIDE:
        return line(width, [(f" {searched}", theme["accent"])], headings(columns_for(width), theme))
    own = (searched, theme["accent"]) if searched else ("" if shown == "turns" else shown, theme["muted"])
    return line(width, [(f" {own[0]}", own[1])])


def _branches(store: SessionStore) -> str:
    branches, branch = store.outline.branches, store.outline.branch(store.leaf_id)
    if branches < 2:
        return ""
    return f"branch {branch} of {branches} " if branch else f"branches {branches} "
