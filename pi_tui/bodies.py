"""Entries of a session file as they travel, what of them is shown, and how much of that is held."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from attrs import define, evolve, field

from pi_trio.codec import message_from_json
from pi_trio.extensions.renderers import render
from pi_trio.messages import AgentMessage, CustomMessage
from pi_trio.session.tree import EntryHead
from pi_tui.shown import ItemKind

__all__ = [
    "EMPTY",
    "OUTPUT_CHARACTERS",
    "Shelf",
    "is_answer",
    "item_kind",
    "message_of",
    "size_of",
    "without_long_output",
]

SHELF_CHARACTERS = 8_000_000
"""Letters of large bodies that are held at a time. The rest is read again when it is seen."""

SMALL = 4096
"""Letters up to which a body is held for good: it is worth less than asking for it again."""

OUTPUT_CHARACTERS = 65_536
"""Of what a call printed, so much of its end is held. The tools that come along print less."""

EMPTY: Mapping[str, str] = MappingProxyType({})

_SHOWN_ROLES = frozenset({"user", "assistant", "bashExecution", "custom"})


def message_of(entry: Mapping[str, Any], templates: Mapping[str, str] = EMPTY) -> AgentMessage | None:
    """What an entry says, as a message; summaries and custom messages become their message kinds.

    `templates` are those of extensions, by the types of the entries that they show.
    """
    template = templates.get(entry.get("customType", ""))
    match entry.get("type"):
        case "message" if isinstance(entry.get("message"), Mapping):
            return message_from_json(entry["message"])
        case "custom_message":
            message = message_from_json({**entry, "role": "custom"})
            if template is None or not isinstance(message, CustomMessage):
                return message
            return evolve(message, content=render(template, message.details))
        case "custom" if template is not None:
            return CustomMessage(entry["customType"], render(template, entry.get("data")))
        case "compaction":
            return message_from_json({**entry, "role": "compactionSummary"})
        case "branch_summary":
            return message_from_json({**entry, "role": "branchSummary"})
        case _:
            return None


def item_kind(head: EntryHead, templates: Mapping[str, str] = EMPTY) -> ItemKind | None:
    """How the transcript shows an entry; None: not, or not by itself."""
    if head.type == "message":
        return "message" if head.detail in _SHOWN_ROLES else None
    if head.type == "custom_message":
        return "message"
    if head.type in ("compaction", "branch_summary"):
        return "summary"
    if head.detail == "turn/end":
        return "turn"
    return "entry" if head.type == "custom" and head.detail in templates else None


def is_answer(head: EntryHead) -> bool:
    """Whether the entry is an answer of a model."""
    return head.type == "message" and head.detail == "assistant"


def without_long_output(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """An entry without the output that it keeps, if that is longer than what is shown of one."""
    message = entry.get("message")
    if not isinstance(message, Mapping) or message.get("role") != "toolResult":
        return entry
    if size_of(message.get("content")) <= OUTPUT_CHARACTERS:
        return entry
    return {**entry, "message": {**message, "content": []}}


@define
class Shelf:
    """How much of what was loaded is held, and what has to go when that is too much."""

    most: int = SHELF_CHARACTERS
    _sizes: dict[str, int] = field(factory=dict)
    _held: int = 0

    def put(self, key: str, letters: int) -> None:
        """So much more is held of the item with this key."""
        if letters > SMALL:
            self._sizes[key] = self._sizes.pop(key, 0) + letters
            self._held += letters

    def overflow(self, keep: frozenset[str]) -> Iterator[str]:
        """Take off what was loaded longest ago, but for the keys in `keep`, until the rest fits."""
        for key in [key for key in self._sizes if key not in keep]:
            if self._held <= self.most:
                return
            self._held -= self._sizes.pop(key)
            yield key

    @property
    def full(self) -> bool:
        """Whether something has to go."""
        return self._held > self.most


def size_of(value: Any) -> int:
    """The letters in a value of JSON."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return sum(map(size_of, value.values()))
    return sum(map(size_of, value)) if isinstance(value, list | tuple) else 0
