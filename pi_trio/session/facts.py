"""The names of the lifecycle's durable facts, in one place.

A fact is a `custom` entry whose `customType` is one of these names. Its data always carries
`sessionId`, so that a fork tells the facts that it inherited from its own. Facts about a call
carry `callId`, the id that the model gave it.
"""

from __future__ import annotations

from typing import Any

from pi_trio.session.entries import CustomEntry

__all__ = [
    "ASSISTANT_ATTEMPT",
    "COMPACTION_END",
    "COMPACTION_START",
    "INBOX_FACTS",
    "INBOX_RETURNED",
    "INBOX_SPLICED",
    "PRUNE",
    "REQUEST_CONTEXT",
    "REQUEST_HEADER",
    "RETRY_SCHEDULED",
    "RETRY_STARTED",
    "STEP_END",
    "STEP_START",
    "TOOL_CALL",
    "TURN_END",
    "TURN_START",
    "call_of",
    "fact",
    "session_of",
]

TURN_START = "turn/start"
TURN_END = "turn/end"
STEP_START = "step/start"
STEP_END = "step/end"
TOOL_CALL = "tool/call"
REQUEST_HEADER = "request/header"
REQUEST_CONTEXT = "request/context"
ASSISTANT_ATTEMPT = "assistant/attempt"
RETRY_SCHEDULED = "retry/scheduled"
RETRY_STARTED = "retry/started"
INBOX_SPLICED = "inbox/spliced"
INBOX_RETURNED = "inbox/returned"
PRUNE = "prune"
COMPACTION_START = "compaction/start"
COMPACTION_END = "compaction/end"

INBOX_FACTS = frozenset({INBOX_SPLICED, INBOX_RETURNED})
"""What a fork leaves behind: it inherits no queue."""


def fact(name: str, session_id: str, /, **data: Any) -> CustomEntry:
    """The fact `name` of this session. The keywords are its data, spelled as on disk."""
    return CustomEntry(name, {"sessionId": session_id, **data})


def session_of(entry: CustomEntry) -> str | None:
    """The session that wrote the fact."""
    return _text(entry.data, "sessionId")


def call_of(entry: CustomEntry) -> str | None:
    """The tool call that the fact is about."""
    return _text(entry.data, "callId")


def _text(data: Any, key: str) -> str | None:
    value = data.get(key) if isinstance(data, dict) else None
    return value if isinstance(value, str) else None
