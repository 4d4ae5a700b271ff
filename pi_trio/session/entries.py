"""The durable lines of a session file, as values. Version 3 of pi's format.

The first line is a `SessionHeader`; every other line is an entry with `id`, `parentId` and
`timestamp` (ISO 8601, UTC, milliseconds, `Z`). Entries are made without those three; the
session fills them in when it appends. A type that this version does not know is an
`OpaqueEntry` and survives everything.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar, TypeAlias, get_args

from attrs import field, frozen

from pi_trio import codec
from pi_trio.messages import EMPTY, AgentMessage, SystemMessage, Usage, UserContent, as_tuple

__all__ = [
    "ActiveToolsChangeEntry",
    "BranchSummaryEntry",
    "CompactionEntry",
    "ContextEditEntry",
    "CustomEntry",
    "CustomMessageEntry",
    "Entry",
    "LabelEntry",
    "LeafEntry",
    "MessageEntry",
    "ModelChangeEntry",
    "OpaqueEntry",
    "SessionHeader",
    "SessionInfoEntry",
    "ThinkingLevelChangeEntry",
    "UsageEntry",
    "entry_from_json",
    "header_line",
    "is_known_type",
    "milliseconds",
    "timestamp_now",
]

SESSION_VERSION = 3


def timestamp_now() -> str:
    """The wall clock as entries carry it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def milliseconds(timestamp: str) -> int:
    """The time of an entry as messages have it; 0 for what is no time."""
    try:
        return int(datetime.fromisoformat(timestamp).timestamp() * 1000)
    except ValueError:
        return 0


@frozen
class SessionHeader:
    """The first line. `parent_session` is the path of the file that this one was forked from."""

    type: ClassVar[str] = "session"
    version: int
    id: str
    timestamp: str
    cwd: str = ""
    parent_session: str | None = None
    extra: Mapping[str, Any] = field(default=EMPTY, kw_only=True, repr=False)


@frozen
class _Base:
    id: str = field(default="", kw_only=True)
    parent_id: str | None = field(default=None, kw_only=True, metadata={"always": True})
    timestamp: str = field(default="", kw_only=True)
    extra: Mapping[str, Any] = field(default=EMPTY, kw_only=True, repr=False)


@frozen
class MessageEntry(_Base):
    """A message of the conversation."""

    type: ClassVar[str] = "message"
    message: AgentMessage


@frozen
class ThinkingLevelChangeEntry(_Base):
    """The thinking level from here on, on this branch."""

    type: ClassVar[str] = "thinking_level_change"
    thinking_level: str


@frozen
class ModelChangeEntry(_Base):
    """The model from here on, on this branch."""

    type: ClassVar[str] = "model_change"
    provider: str
    model_id: str


@frozen
class ActiveToolsChangeEntry(_Base):
    """The names of the active tools from here on, on this branch."""

    type: ClassVar[str] = "active_tools_change"
    active_tool_names: tuple[str, ...] = field(default=(), converter=as_tuple)


@frozen
class UsageEntry(_Base):
    """Tokens spent outside an answer."""

    type: ClassVar[str] = "usage"
    kind: str
    provider: str
    model: str
    usage: Usage
    note: str | None = None


@frozen
class CompactionEntry(_Base):
    """A summary that replaces the context before `first_kept_entry_id` (its own id: all of it)."""

    type: ClassVar[str] = "compaction"
    summary: str
    first_kept_entry_id: str
    tokens_before: int = 0
    details: Any = None
    usage: Usage | None = None
    from_hook: bool | None = None
    system_message: SystemMessage | None = None


@frozen
class BranchSummaryEntry(_Base):
    """What the branch just left had done. `from_id` is its leaf, or `root`."""

    type: ClassVar[str] = "branch_summary"
    from_id: str
    summary: str
    details: Any = None
    usage: Usage | None = None
    from_hook: bool | None = None


@frozen
class CustomEntry(_Base):
    """Data of an application or a fact of the lifecycle; the model never sees it."""

    type: ClassVar[str] = "custom"
    custom_type: str
    data: Any = None


@frozen
class CustomMessageEntry(_Base):
    """An application's message that the model sees as user content."""

    type: ClassVar[str] = "custom_message"
    custom_type: str
    content: str | tuple[UserContent, ...]
    display: bool = True
    details: Any = None


@frozen
class ContextEditEntry(_Base):
    """Replaces the content of an earlier entry in contexts; None leaves the entry out."""

    type: ClassVar[str] = "context_edit"
    target_id: str
    replacement: Mapping[str, Any] | None = field(default=None, metadata={"always": True})


@frozen
class LabelEntry(_Base):
    """A label of an entry; absent or empty clears it."""

    type: ClassVar[str] = "label"
    target_id: str
    label: str | None = None


@frozen
class LeafEntry(_Base):
    """Moves the leaf to `target_id` (None: before the first entry)."""

    type: ClassVar[str] = "leaf"
    target_id: str | None = field(default=None, metadata={"always": True})


@frozen
class SessionInfoEntry(_Base):
    """The session's name; the latest in file order counts, empty clears it."""

    type: ClassVar[str] = "session_info"
    name: str | None = None


@frozen
class OpaqueEntry(_Base):
    """An entry of a type that this version does not know."""

    type: str


Entry: TypeAlias = (
    MessageEntry
    | ThinkingLevelChangeEntry
    | ModelChangeEntry
    | ActiveToolsChangeEntry
    | UsageEntry
    | CompactionEntry
    | BranchSummaryEntry
    | CustomEntry
    | CustomMessageEntry
    | ContextEditEntry
    | LabelEntry
    | LeafEntry
    | SessionInfoEntry
    | OpaqueEntry
)

_TYPES: dict[str, type[Any]] = {cls.type: cls for cls in get_args(Entry) if cls is not OpaqueEntry}


def is_known_type(name: str) -> bool:
    """Whether entries of this type are more than opaque."""
    return name in _TYPES


def entry_from_json(data: Mapping[str, Any]) -> Entry:
    """The entry of a line; an unknown type, or a known one that lacks a field, stays opaque."""
    message = data.get("message")
    if isinstance(message, dict) and "timestamp" not in message:  # not now: the same each time it is read
        data = {**data, "message": {**message, "timestamp": milliseconds(str(data.get("timestamp")))}}
    cls: type[Entry] = _TYPES.get(str(data.get("type")), OpaqueEntry)
    try:
        return codec.from_json(cls, data)
    except ValueError:
        return codec.from_json(OpaqueEntry, {"type": "", **data})


def header_line(header: SessionHeader) -> bytes:
    """The first line of a file, without the line end."""
    return codec.dumps(codec.to_json(header))
