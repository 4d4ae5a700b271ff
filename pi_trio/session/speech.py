"""What each entry says to models: itself, as an edit has it, or through a projector."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from pi_trio import codec
from pi_trio.messages import AgentMessage, BranchSummaryMessage, CustomMessage
from pi_trio.session.entries import (
    BranchSummaryEntry,
    ContextEditEntry,
    CustomEntry,
    CustomMessageEntry,
    Entry,
    MessageEntry,
    entry_from_json,
    milliseconds,
)
from pi_trio.session.tree import EntryHead

__all__ = ["Projector", "Read", "Speech"]

Read: TypeAlias = Callable[[str], Entry]
"""Gives an entry by its id."""
Projector: TypeAlias = Callable[[CustomEntry], Iterable[AgentMessage]]
"""Makes messages of a custom entry. Must give the same ones each time."""

_SPEAKING = frozenset({"message", "custom_message", "branch_summary"})


class Speech:
    """What the entries of one session say to models. `read` gives an entry by its id."""

    def __init__(self, read: Read) -> None:
        self.read = read
        self._projectors: dict[str, Projector] = {}

    def project(self, custom_type: str, projector: Projector) -> None:
        """Let custom entries of this type speak."""
        self._projectors[custom_type] = projector

    def projects(self, custom_type: str | None) -> bool:
        """Whether custom entries of this type speak."""
        return custom_type in self._projectors

    def speaks(self, head: EntryHead) -> bool:
        """Whether the entry may say something; it need not be read for this."""
        return head.type in _SPEAKING or (head.type == "custom" and self.projects(head.detail))

    def entry(self, entry_id: str, edit_id: str | None = None) -> Entry | None:
        """The entry as a `context_edit` has it; None if that leaves it out."""
        entry = self.read(entry_id)
        return entry if edit_id is None else _edited(entry, self.read(edit_id))

    def messages(self, entry: Entry) -> Iterable[AgentMessage]:
        """What the entry says."""
        if isinstance(entry, CustomEntry):
            projector = self._projectors.get(entry.custom_type)
            return () if projector is None else projector(entry)
        message = _message_of(entry)
        return () if message is None else (message,)

    def said(self, head: EntryHead, edit_id: str | None = None) -> Iterable[AgentMessage]:
        """What the entry of this head says, as the edit has it."""
        entry = self.entry(head.id, edit_id) if self.speaks(head) else None
        return () if entry is None else self.messages(entry)


def _message_of(entry: Entry) -> AgentMessage | None:
    match entry:
        case MessageEntry(message=message):
            return message
        case CustomMessageEntry():
            at = milliseconds(entry.timestamp)
            return CustomMessage(entry.custom_type, entry.content, entry.display, entry.details, at)
        case BranchSummaryEntry() if entry.summary:
            return BranchSummaryMessage(entry.summary, entry.from_id, milliseconds(entry.timestamp))
        case _:
            return None


def _edited(entry: Entry, edit: Entry) -> Entry | None:
    if not isinstance(edit, ContextEditEntry) or not isinstance(entry, (MessageEntry, CustomMessageEntry)):
        return entry
    if edit.replacement is None:
        return None
    data = codec.to_json(entry)
    holder = data["message"] if isinstance(entry, MessageEntry) else data
    content = edit.replacement.get("content", "")
    if isinstance(content, str) and holder.get("role") in ("assistant", "toolResult"):
        content = [{"type": "text", "text": content}]
    holder["content"] = content
    return entry_from_json(data)
