"""One item of the transcript as strips: which renderer draws which kind."""

from __future__ import annotations

from textual.strip import Strip

from pi_trio.messages import (
    AssistantMessage,
    BashExecutionMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    CustomMessage,
    TextContent,
    ThinkingContent,
    UserMessage,
    text_of,
)
from pi_trio.session.digest import of_branch
from pi_tui.items.markdown import Progress
from pi_tui.items.messages import answer, bash_execution, labelled, running_shell, user
from pi_tui.items.paint import Look, line, wrapped
from pi_tui.items.welcome import welcome
from pi_tui.items.words import duration, money, plural, tokens
from pi_tui.shown import Item, Stats
from pi_tui.store import SessionStore

__all__ = ["MARGIN", "animated", "estimate", "joins", "render_item"]

MARGIN = 2
"""Cells at the left of everything in the stream."""

_ESTIMATES = {"user": 3, "assistant": 8, "custom": 3, "bashExecution": 4}


def render_item(item: Item, store: SessionStore, look: Look, progress: Progress | None = None) -> list[Strip]:
    """The item without its margin. Empty where there is nothing to see."""
    if item.kind == "notice":
        return wrapped(item.text, look.width, look.theme["muted"])
    if item.kind == "welcome":
        return welcome(store, look)
    if item.kind == "turn":
        return _turn_line(store.turn_stats(item), look)
    if item.kind == "shell":
        return running_shell(store.shell, look) if store.shell is not None else []
    match item.message:
        case UserMessage() as message:
            return user(message, look)
        case AssistantMessage() as message:
            return answer(message, item.calls, look, progress)
        case BashExecutionMessage() as message:
            return bash_execution(message, look)
        case CompactionSummaryMessage(summary, before):
            return labelled(f"≡ compacted, {tokens(before)} before", summary, look)
        case BranchSummaryMessage(summary):
            return labelled("⎇ what the other branch had done", of_branch(summary), look)
        case CustomMessage(custom_type, content, display) if display:
            return labelled(custom_type, text_of(content), look)
        case None:
            return [line(look.width, [("…", look.theme["dim"])])] * max(estimate(item) - 1, 1)
        case _:
            return []


def joins(item: Item, above: Item | None) -> bool:
    """Whether no blank line parts the two: calls follow calls, unless something was said."""
    if above is None or not isinstance(above.message, AssistantMessage):
        return False
    message = item.message
    return isinstance(message, AssistantMessage) and bool(above.message.tool_calls) and not _says(message)


def animated(item: Item, store: SessionStore) -> bool:
    """Whether the item looks different a moment later: something of it runs."""
    if item.kind == "shell":
        return True
    return any(call.state == "running" for call in item.calls.values())


def estimate(item: Item) -> int:
    """How many lines an item probably has, before it was ever drawn."""
    if item.kind == "summary":
        return 5
    return _ESTIMATES.get(getattr(item.message, "role", ""), 6 if item.kind == "message" else 2)


def _says(message: AssistantMessage) -> bool:
    return any(
        isinstance(block, TextContent | ThinkingContent) and bool(getattr(block, block.type).strip())
        for block in message.content
    )


def _turn_line(stats: Stats, look: Look) -> list[Strip]:
    parts = []
    if stats.tools:
        parts.append(plural(stats.tools, "tool"))
    if stats.files:
        parts.append(plural(stats.files, "file"))
    if stats.tokens:
        parts.append(f"{tokens(stats.tokens)} tokens")
    if stats.cost:
        parts.append(money(stats.cost))
    if stats.seconds:
        parts.append(duration(stats.seconds))
    more = "" if stats.complete else "at least "
    return [line(look.width, [(more + " · ".join(parts), look.theme["dim"])])] if parts else []
