"""Keys that were given to two actions at once: pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

from pi_tui.keymap import KEYS, UNBOUND, Key, key_label

__all__ = ["clashes"]


def clashes(keymap: Mapping[str, str]) -> list[str]:
    """A sentence for each key that the user gave to two actions of one place.

    Where the table itself has a key twice, the pane that has the focus decides; that is meant.
    """
    meant = {(one.id, other.id) for one, other, _ in _shared({})}
    return [
        f"keybindings.json: {key_label(key)} is given to both {one.id} ({one.help}) "
        f"and {other.id} ({other.help})"
        for one, other, key in _shared(keymap)
        if (one.id, other.id) not in meant
    ]


def _shared(keymap: Mapping[str, str]) -> Iterator[tuple[Key, Key, str]]:
    """Two actions that can both be meant, and a key that they share."""
    for one, other in combinations(KEYS, 2):
        if one.area == other.area or "everywhere" in (one.area, other.area):
            for key in _keys(one, keymap) & _keys(other, keymap):
                yield one, other, key


def _keys(key: Key, keymap: Mapping[str, str]) -> set[str]:
    return set(keymap.get(key.id, key.keys).split(",")) - {UNBOUND}
