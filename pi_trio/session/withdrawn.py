"""Prompts that were stopped before anything came of them, and taken back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pi_trio.session.tree import EntryHead

__all__ = ["withdrawn"]

_SAID = frozenset({"custom_message", "branch_summary", "compaction"})
_ASIDE = frozenset({"user", "system"})


def withdrawn(heads: Sequence[EntryHead], leaf_id: str | None) -> frozenset[str]:
    """The prompts from which the leaf went back to what is before them, and below which nothing was said.

    Those on the way to the leaf are none.
    """
    known = {head.id: head for head in heads}
    kept: set[str] = set()
    for tip in (leaf_id, *_said(heads)):
        at = tip
        while at in known and at not in kept:
            kept.add(at)
            at = known[at].parent_id
    targets = {_anchor(head.id, known) for head in heads if head.type == "leaf"}
    gone: set[str] = set()
    for head in heads:
        if head.id not in kept and (head.type, head.detail) == ("message", "user"):
            before = _anchor(head.parent_id, known)
            if before in targets or before in gone:
                gone.add(head.id)
    return frozenset(gone)


def _said(heads: Iterable[EntryHead]) -> Iterable[str]:
    for head in heads:
        if head.type in _SAID or (head.type == "message" and head.detail not in _ASIDE):
            yield head.id


def _anchor(entry_id: str | None, known: Mapping[str, EntryHead]) -> str | None:
    """What an entry stands for, which of a `leaf` entry is what it points at."""
    seen: set[str] = set()
    while entry_id is not None and entry_id not in seen:
        seen.add(entry_id)
        head = known.get(entry_id)
        if head is None or head.type != "leaf":
            break
        entry_id = head.parent_id
    return entry_id
