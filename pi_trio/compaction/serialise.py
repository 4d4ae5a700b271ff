"""A conversation as text, for a model that is to summarise it and not to go on with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pi_trio import codec
from pi_trio.loop.convert import convert_message
from pi_trio.messages import (
    AgentMessage,
    AssistantMessage,
    Content,
    ImageContent,
    LlmMessage,
    TextContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from pi_trio.surrogates import mend_text

__all__ = ["chunks", "serialise"]

LONGEST_RESULT = 2_000
"""Code points of a tool result that are worth a summariser's while."""


def serialise(messages: Iterable[AgentMessage]) -> list[str]:
    """The messages as paragraphs, without thinking, system messages and image data."""
    converted = (convert_message(message) for message in messages)
    texts = (_paragraphs(message) for message in converted if message is not None)
    return [mend_text(text) for paragraphs in texts for text in paragraphs]


def _paragraphs(message: LlmMessage) -> Iterator[str]:
    match message:
        case UserMessage():
            yield from _said("User", _visible(message.content))
        case AssistantMessage():
            yield from _said("Assistant", message.text)
            yield from _said("Assistant tool calls", "; ".join(map(_call, message.tool_calls)))
        case ToolResultMessage():
            yield from _said("Tool result", _clipped(_visible(message.content), LONGEST_RESULT))
        case _:
            pass  # the system prompt stays, so it needs no summary


def _said(who: str, text: str) -> Iterator[str]:
    if text.strip():
        yield f"[{who}]: {text}"


def _visible(content: str | Sequence[Content]) -> str:
    """The text, and a note for each image: not every model that summarises can see."""
    if isinstance(content, str):
        return content
    parts = [
        block.text if isinstance(block, TextContent) else f"(an image, {block.mime_type})"
        for block in content
        if isinstance(block, (TextContent, ImageContent))
    ]
    return "\n".join(parts)


def _call(call: ToolCall) -> str:
    arguments = (f"{name}={codec.dumps(value).decode()}" for name, value in call.arguments.items())
    return f"{call.name}({', '.join(arguments)})"


def _clipped(text: str, longest: int) -> str:
    cut = len(text) - longest
    return text if cut <= 0 else f"{text[:longest]}\n[… {cut:,} more characters]"


def chunks(paragraphs: Iterable[str], longest: int) -> Iterator[str]:
    """The paragraphs in as few texts as fit into `longest` code points each, in order.

    A paragraph that is too long for a text of its own is clipped.
    """
    chunk: list[str] = []
    length = 0
    for paragraph in paragraphs:
        text = _clipped(paragraph, longest)
        if chunk and length + len(text) > longest:
            yield "\n\n".join(chunk)
            chunk, length = [], 0
        chunk.append(text)
        length += len(text) + 2
    if chunk:
        yield "\n\n".join(chunk)
