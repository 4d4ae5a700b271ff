"""Entries of a session file as they travel, and what of them is shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pi_trio.codec import message_from_json
from pi_trio.messages import AgentMessage
from pi_trio.session.tree import EntryHead
from pi_tui.shown import ItemKind

__all__ = ["is_answer", "item_kind", "message_of"]

_SHOWN_ROLES = frozenset({"user", "assistant", "bashExecution", "custom"})


def message_of(entry: Mapping[str, Any]) -> AgentMessage | None:
    """What an entry says, as a message; summaries and custom messages become their message kinds."""
    match entry.get("type"):
        case "message" if isinstance(entry.get("message"), Mapping):
            return message_from_json(entry["message"])
        case "custom_message":
            return message_from_json({**entry, "role": "custom"})
        case "compaction":
            return message_from_json({**entry, "role": "compactionSummary"})
        case "branch_summary":
            return message_from_json({**entry, "role": "branchSummary"})
        case _:
            return None


def item_kind(head: EntryHead) -> ItemKind | None:
    """How the transcript shows an entry; None: not, or not by itself."""
    if head.type == "message":
        return "message" if head.detail in _SHOWN_ROLES else None
    if head.type == "custom_message":
        return "message"
    if head.type in ("compaction", "branch_summary"):
        return "summary"
    return "turn" if head.detail == "turn/end" else None


def is_answer(head: EntryHead) -> bool:
    """Whether the entry is an answer of a model."""
    return head.type == "message" and head.detail == "assistant"
