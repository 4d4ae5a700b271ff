"""What an item says, as plain text: for copying it, and for finding something in it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pi_trio.codec import dumps
from pi_trio.messages import (
    AgentMessage,
    AssistantMessage,
    BashExecutionMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    OpaqueMessage,
    ThinkingContent,
    ToolResultMessage,
    text_of,
)
from pi_trio.text import printed, sanitise
from pi_tui.bodies import message_of
from pi_tui.shown import Item

__all__ = ["Query", "entry_says", "item_text"]

_SIGNS = re.compile(r"[*`]+|__|~~")
"""What stands around words in Markdown and is not seen."""


class Query:
    """What is looked for. Small letters find large ones too; a large letter finds only itself."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._small = text == text.lower()

    def __bool__(self) -> bool:
        return bool(self.text)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where it is found in a text, as indices."""
        if not self.text:
            return []
        where = text.lower() if self._small and len(text.lower()) == len(text) else text
        found, at = [], where.find(self.text)
        while at >= 0:
            found.append((at, at + len(self.text)))
            at = where.find(self.text, at + len(self.text))
        return found

    def is_in(self, text: str) -> bool:
        """Whether it is found at all, as it is written or as it is seen, without Markdown's signs."""
        where = text.lower() if self._small else text
        return bool(self.text) and (self.text in where or self.text in _SIGNS.sub("", where))


def item_text(item: Item) -> str:
    """All that an item says, in the words of whoever said it."""
    if item.message is None:
        return item.text
    parts = [_said(item.message)]
    if isinstance(item.message, AssistantMessage):
        for wanted in item.message.tool_calls:
            call = item.calls.get(wanted.id)
            parts += [_wanted(wanted.name, wanted.arguments), call.printed if call is not None else ""]
    return sanitise("\n\n".join(part.strip("\n") for part in parts if part.strip()))


def entry_says(entry: Mapping[str, Any], query: Query, templates: Mapping[str, str]) -> bool:
    """Whether an entry says something: an answer with its calls, the result of one, an extension's entry."""
    message = message_of(entry, templates)
    return message is not None and any(query.is_in(sanitise(part)) for part in _parts(message))


def _parts(message: AgentMessage) -> Iterator[str]:
    yield _said(message)
    if isinstance(message, AssistantMessage):
        for call in message.tool_calls:
            yield _wanted(call.name, call.arguments)


def _said(message: AgentMessage) -> str:
    match message:
        case AssistantMessage(content):
            thoughts = [block.thinking for block in content if isinstance(block, ThinkingContent)]
            return "\n\n".join([*thoughts, text_of(content)])
        case BashExecutionMessage(command, output):
            return f"! {command}\n{output}"
        case CompactionSummaryMessage(summary) | BranchSummaryMessage(summary):
            return summary
        case ToolResultMessage(tool_name=name, content=content):
            return printed(name, text_of(content))
        case OpaqueMessage():
            return ""
        case _:
            return text_of(message.content)


def _wanted(name: str, arguments: Mapping[str, Any]) -> str:
    return f"{name} {dumps(dict(arguments)).decode('utf-8', 'replace')}"
