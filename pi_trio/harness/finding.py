"""Finding entries of an open session by words, a little at a time: a run beside it goes on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import trio

from pi_trio.session.digest import calls_of, said
from pi_trio.session.search import needle, words
from pi_trio.session.session import Session
from pi_trio.session.tree import EntryHead

__all__ = ["MOST_FOUND", "find_entries"]

MOST_FOUND = 5000
"""Entries that are found at most, the newest of them: nobody walks through more."""

AT_ONCE = 100
"""Entries that are looked at before others have their turn."""

_SPEAK = frozenset({"message", "custom_message", "compaction", "branch_summary", "label", "session_info"})


async def find_entries(session: Session, text: str) -> list[str]:
    """The ids of entries that have all the words, in file order; of a label, that of what it is on.

    Looked at are texts, calls, results and names, without regard to case. Nothing is found
    without a word.
    """
    sought = words(text)
    needles = [needle(word) for word in sought]
    found: dict[str, None] = {}
    for count, head in enumerate(reversed(list(session.heads)) if sought else ()):
        if count % AT_ONCE == 0:
            await trio.lowlevel.checkpoint()
        if head.type in _SPEAK and _has(session, head, sought, needles):
            found[head.detail or head.id if head.type == "label" else head.id] = None
            if len(found) == MOST_FOUND:
                break
    return list(found)[::-1]


def _has(session: Session, head: EntryHead, sought: Sequence[str], needles: Sequence[bytes]) -> bool:
    """The line as it stands in the file tells quickly that a word is not there, not that it is."""
    line = session.line(head.id).lower()
    if not all(each in line for each in needles):
        return False
    said_here = _words_of(session.raw(head.id)).casefold()
    return all(word in said_here for word in sought)


def _words_of(entry: Mapping[str, Any]) -> str:
    message = entry.get("message")
    calls = calls_of(message) if isinstance(message, Mapping) else ""
    return f"{said(entry)}\n{calls}"
