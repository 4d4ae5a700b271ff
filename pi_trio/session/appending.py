"""One method for each type of entry: what an application says instead of building entries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from pi_trio.messages import AgentMessage, CustomMessage, SystemMessage, Usage, UserContent
from pi_trio.session.entries import (
    ActiveToolsChangeEntry,
    BranchSummaryEntry,
    CompactionEntry,
    ContextEditEntry,
    CustomEntry,
    CustomMessageEntry,
    Entry,
    LabelEntry,
    MessageEntry,
    ModelChangeEntry,
    SessionInfoEntry,
    ThinkingLevelChangeEntry,
    UsageEntry,
)

__all__ = ["Appending"]

E = TypeVar("E", bound=Entry)


class Appending(ABC):
    """Each method appends at the leaf, gives the entry as it was stored, and raises as `append` does."""

    @abstractmethod
    def append(self, entry: E) -> E:
        """Add `entry` at the leaf and move the leaf to it."""

    def append_message(self, message: AgentMessage) -> MessageEntry | CustomMessageEntry:
        """A message of the conversation; one of an application becomes a `custom_message`."""
        if isinstance(message, CustomMessage):
            return self.append_custom_message(
                message.custom_type, message.content, display=message.display, details=message.details
            )
        return self.append(MessageEntry(message))

    def append_model_change(self, provider: str, model_id: str) -> ModelChangeEntry:
        """Another model from here on."""
        return self.append(ModelChangeEntry(provider, model_id))

    def append_thinking_level_change(self, level: str) -> ThinkingLevelChangeEntry:
        """Another thinking level from here on."""
        return self.append(ThinkingLevelChangeEntry(level))

    def append_active_tools_change(self, names: Iterable[str]) -> ActiveToolsChangeEntry:
        """Other tools from here on."""
        return self.append(ActiveToolsChangeEntry(tuple(names)))

    def append_usage(
        self, kind: str, provider: str, model: str, usage: Usage, note: str | None = None
    ) -> UsageEntry:
        """Tokens that were spent outside an answer."""
        return self.append(UsageEntry(kind, provider, model, usage, note))

    def append_compaction(
        self,
        summary: str,
        first_kept_entry_id: str,
        tokens_before: int,
        *,
        details: Any = None,
        usage: Usage | None = None,
        from_hook: bool | None = None,
        system_message: SystemMessage | None = None,
    ) -> CompactionEntry:
        """A summary in place of what stands before the first kept entry."""
        return self.append(
            CompactionEntry(
                summary, first_kept_entry_id, tokens_before, details, usage, from_hook, system_message
            )
        )

    def append_branch_summary(
        self,
        summary: str,
        from_id: str | None,
        *,
        details: Any = None,
        usage: Usage | None = None,
        from_hook: bool | None = None,
    ) -> BranchSummaryEntry:
        """What the branch that ended at `from_id` had done; None: at the root."""
        return self.append(BranchSummaryEntry(from_id or "root", summary, details, usage, from_hook))

    def append_custom_entry(self, custom_type: str, data: Any = None) -> CustomEntry:
        """Data of an application, which the model does not see."""
        return self.append(CustomEntry(custom_type, data))

    def append_custom_message(
        self,
        custom_type: str,
        content: str | Iterable[UserContent],
        *,
        display: bool = True,
        details: Any = None,
    ) -> CustomMessageEntry:
        """A message of an application, which the model sees."""
        kept = content if isinstance(content, str) else tuple(content)
        return self.append(CustomMessageEntry(custom_type, kept, display, details))

    def append_context_edit(self, target_id: str, replacement: Mapping[str, Any] | None) -> ContextEditEntry:
        """Other content (`{"content": …}`) for an earlier entry in contexts; None leaves it out."""
        return self.append(ContextEditEntry(target_id, replacement))

    def append_label(self, target_id: str, label: str | None) -> LabelEntry:
        """A label for an entry; None or empty takes it away."""
        return self.append(LabelEntry(target_id, label))

    def append_session_name(self, name: str) -> SessionInfoEntry:
        """A name for the session; empty takes it away."""
        return self.append(SessionInfoEntry(name))
