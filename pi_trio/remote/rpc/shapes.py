"""What commands tell of a session, in pi's words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

from pi_trio.codec import dumps, to_json
from pi_trio.events import CompactionResult
from pi_trio.harness.harness import AgentHarness
from pi_trio.llm.protocol import Model, ModelCost
from pi_trio.messages import AgentMessage, AssistantMessage, BashExecutionMessage, Usage
from pi_trio.remote.interface import CommandInfo
from pi_trio.session.entries import BranchSummaryEntry, CompactionEntry, Entry, MessageEntry, UsageEntry
from pi_trio.session.session import Session

__all__ = [
    "NULL",
    "Encoded",
    "bash_result",
    "command_info",
    "compaction_result",
    "messages_of",
    "model_info",
    "session_state",
    "session_stats",
    "session_tree",
]


def messages_of(harness: AgentHarness) -> list[AgentMessage]:
    """What the next request would say, the system prompt first."""
    conversation = harness.conversation
    system = [] if conversation.system is None else [conversation.system]
    return [*system, *conversation.transcript]


def model_info(model: Model) -> dict[str, Any]:
    """A model. Its headers stay here, since they may hold a key; an unknown price is zero, as in pi."""
    data: dict[str, Any] = {"type": "chat", **to_json(model)}
    data.pop("headers", None)
    data.setdefault("cost", to_json(ModelCost()))
    return data


def bash_result(message: BashExecutionMessage) -> dict[str, Any]:
    """What came of a command of the user."""
    data: dict[str, Any] = to_json(message)
    keys = ("output", "exitCode", "cancelled", "truncated", "fullOutputPath")
    return {key: data[key] for key in keys if key in data}


def compaction_result(result: CompactionResult) -> dict[str, Any]:
    """What came of a compaction."""
    data: dict[str, Any] = to_json(result)
    return data


def command_info(info: CommandInfo, cwd: Path) -> dict[str, Any]:
    """A slash command and where it comes from."""
    path = info.path or ""
    scope = "project" if Path(path).is_relative_to(cwd) else "user"
    source = {"path": path, "source": "local", "scope": scope, "origin": "top-level"}
    data = {"name": info.name, "description": info.description, "source": info.source, "sourceInfo": source}
    return {key: value for key, value in data.items() if value}


# ------------------------------------------------------------------ the state


def session_state(harness: AgentHarness) -> dict[str, Any]:
    """What a client shows of a session at one moment."""
    session, inbox = harness.session, harness.inbox
    waiting = inbox.summary()
    state = {
        "model": model_info(harness.model),
        "thinkingLevel": harness.thinking_level,
        "isStreaming": harness.running,
        "isCompacting": harness.compacting,
        "steeringMode": inbox.steering_mode,
        "followUpMode": inbox.follow_up_mode,
        "sessionFile": _path(session),
        "sessionId": session.id,
        "sessionName": session.name,
        "autoCompactionEnabled": harness.compactor.enabled,
        "messageCount": len(messages_of(harness)),
        "pendingMessageCount": len(waiting.steering) + len(waiting.follow_up),
    }
    return {key: value for key, value in state.items() if value is not None}


def session_stats(harness: AgentHarness) -> dict[str, Any]:
    """What the whole file comes to, all branches and summaries included, and how full the context is."""
    session = harness.session
    roles = [head.detail for head in session.heads if head.type == "message"]
    entries = [session.entry(head.id) for head in session.heads if head.type in _SPENDING]
    usages = [usage for entry in entries if (usage := _usage(entry)) is not None]
    answers = [message for entry in entries if isinstance(message := _message(entry), AssistantMessage)]
    tokens = {
        "input": sum(usage.input for usage in usages),
        "output": sum(usage.output for usage in usages),
        "cacheRead": sum(usage.cache_read for usage in usages),
        "cacheWrite": sum(usage.cache_write for usage in usages),
    }
    stats = {
        "sessionFile": _path(session),
        "sessionId": session.id,
        "userMessages": roles.count("user"),
        "assistantMessages": roles.count("assistant"),
        "toolCalls": sum(len(answer.tool_calls) for answer in answers),
        "toolResults": roles.count("toolResult"),
        "totalMessages": len(roles),
        "tokens": {**tokens, "total": sum(tokens.values())},
        "cost": sum(usage.cost.total for usage in usages),
        "contextUsage": _context_usage(harness),
    }
    return {key: value for key, value in stats.items() if value is not None}


_SPENDING = frozenset({"message", "compaction", "branch_summary", "usage"})


def _context_usage(harness: AgentHarness) -> dict[str, Any]:
    size, window = harness.compactor.meter.size, harness.model.context_window
    return {"tokens": size, "contextWindow": window, "percent": 100 * size / window if window else None}


def _message(entry: Entry) -> AgentMessage | None:
    return entry.message if isinstance(entry, MessageEntry) else None


def _usage(entry: Entry) -> Usage | None:
    if isinstance(entry, (CompactionEntry, BranchSummaryEntry, UsageEntry)):
        return entry.usage
    usage = getattr(_message(entry), "usage", None)
    return usage if isinstance(usage, Usage) else None


def _path(session: Session) -> str | None:
    return None if session.path is None else str(session.path)


# ------------------------------------------------------------------ the tree


@frozen
class Encoded:
    """JSON that is written already."""

    json: bytes


NULL = Encoded(b"null")
"""Data that is there, and says that there is nothing."""


def session_tree(session: Session) -> Encoded:
    """The roots, each with what hangs on it, and the leaf. A branch may be thousands deep."""
    leaf = dumps(session.get_leaf_id())
    return Encoded(b"".join([b'{"tree":[', *_nodes(session), b'],"leafId":', leaf, b"}"]))


def _nodes(session: Session) -> Iterator[bytes]:
    levels = [session.tree.children(None)[::-1]]
    comma = b""
    while levels:
        if levels[-1]:
            entry_id = levels[-1].pop()
            yield comma + dumps(_node(session, entry_id))[:-1] + b',"children":['
            levels.append(session.tree.children(entry_id)[::-1])
            comma = b""
        else:
            levels.pop()
            yield b"]}" if levels else b""
            comma = b","


def _node(session: Session, entry_id: str) -> Mapping[str, Any]:
    label = session.label_of(entry_id)
    return {"entry": session.raw(entry_id), **({"label": label} if label else {})}
