"""What must hold of every session file that is at rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pi_trio.session.session import Session

__all__ = ["check_balance", "entries_of", "facts_of"]


def entries_of(path: Path) -> list[Any]:
    """All entries of a session file, in order."""
    session = Session.open(path, writable=False)
    return [session.raw(head.id) for head in session.heads]


def facts_of(path: Path) -> list[str]:
    """The names of its facts."""
    return [entry["customType"] for entry in entries_of(path) if entry["type"] == "custom"]


def check_balance(path: Path) -> None:
    """Brackets nest, and every call of a complete answer has exactly one result on the branch."""
    open_brackets: list[str] = []
    for name in facts_of(path):
        kind, _, edge = name.partition("/")
        if kind in ("turn", "step"):
            if edge == "start":
                open_brackets.append(kind)
            else:
                assert open_brackets.pop() == kind
    assert open_brackets == []
    messages = Session.open(path, writable=False).build_context().messages
    calls = [call.id for message in messages if message.role == "assistant" for call in message.tool_calls]
    results = [message.tool_call_id for message in messages if message.role == "toolResult"]
    assert results == calls
