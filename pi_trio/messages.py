"""Content blocks, messages and usage: values without identity and without I/O.

Field for field those of pi 1.6; `pi_trio.codec` maps the snake_case names here to the
camelCase ones on disk and on the wire. Every value keeps the fields it does not know in
`extra`, so that reading and writing again loses nothing. Timestamps are milliseconds since
the epoch, durations milliseconds, costs US dollars, sizes tokens.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Literal, TypeAlias, TypeGuard

from attrs import evolve, field, frozen

__all__ = [
    "EMPTY",
    "AgentMessage",
    "AssistantContent",
    "AssistantMessage",
    "BashExecutionMessage",
    "BranchSummaryMessage",
    "CompactionSummaryMessage",
    "Content",
    "Cost",
    "CustomMessage",
    "ImageContent",
    "LlmMessage",
    "OpaqueContent",
    "OpaqueMessage",
    "StopReason",
    "SystemMessage",
    "TextContent",
    "ThinkingContent",
    "ToolCall",
    "ToolResultMessage",
    "ToolSchema",
    "Usage",
    "UserContent",
    "UserMessage",
    "as_tuple",
    "is_blank",
    "is_llm_message",
    "is_visible",
    "now_ms",
    "sendable",
    "text_of",
]

EMPTY: Mapping[str, Any] = MappingProxyType({})
"""The shared default of `extra`: no unknown fields."""

StopReason: TypeAlias = Literal["pending", "stop", "length", "toolUse", "error", "aborted", "deferred"]


def as_tuple(items: Iterable[Any]) -> tuple[Any, ...]:
    """The converter of sequence fields: any iterable is accepted, a tuple is kept as it is."""
    return tuple(items)


def now_ms() -> int:
    """The wall clock in milliseconds, as messages carry it."""
    return time.time_ns() // 1_000_000


# ------------------------------------------------------------------ content blocks


@frozen
class TextContent:
    """Text the model wrote, or text for it to read."""

    type: ClassVar[str] = "text"
    text: str
    text_signature: str | None = None
    extra: Mapping[str, Any] = field(default=EMPTY, kw_only=True, repr=False)


@frozen
class ThinkingContent:
    """The model's reasoning. `redacted` text is opaque and only worth sending back."""

    type: ClassVar[str] = "thinking"
    thinking: str
    thinking_signature: str | None = None
    redacted: bool | None = None
    extra: Mapping[str, Any] = field(default=EMPTY, kw_only=True, repr=False)


@frozen
class ImageContent:
    """An image: base64 `data` of the given MIME type."""

    type: ClassVar[str] = "image"
    data: str
    mime_type: str
    extra: Mapping[str, Any] = field(default=EMPTY, kw_only=True, repr=False)


@frozen
class ToolCall:
    """The model's request to run a tool. `arguments_error` tells why they could not be parsed."""

    type: ClassVar[str] = "toolCall"
    id: str
    name: str
    arguments: Mapping[str, Any] = field(factory=dict)
    thought_signature: str | None = None
    namespace: str | None = None
    arguments_error: str | None = None
    extra: Mapping[str, Any] = field(default=EMPTY, kw_only=True, repr=False)


@frozen
class OpaqueContent:
    """A block of a type that this version does not know, kept as it came."""

    type: str
    extra: Mapping[str, Any] = field(default=EMPTY, kw_only=True, repr=False)


Content: TypeAlias = TextContent | ThinkingContent | ImageContent | ToolCall | OpaqueContent
UserContent: TypeAlias = TextContent | ImageContent | OpaqueContent
AssistantContent: TypeAlias = TextContent | ThinkingContent | ToolCall | OpaqueContent


# ------------------------------------------------------------------ usage, tool declarations


@frozen
class Cost:
    """US dollars. `total_from_provider` marks a total that the provider billed, not a sum."""

    input: float = 0.0
    output: float = 0.0
    cache_read: float = 0.0
    cache_write: float = 0.0
    total: float = 0.0
    total_from_provider: bool | None = None
    extra: Mapping[str, Any] = field(default=EMPTY, kw_only=True, repr=False)


@frozen
class Usage:
    """Tokens of one answer. `input` excludes cached tokens; `reasoning` is part of `output`."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cache_write_1h: int | None = None
    reasoning: int | None = None
    total_tokens: int = 0
    cost: Cost = Cost()
    extra: Mapping[str, Any] = field(default=EMPTY, kw_only=True, repr=False)


@frozen
class ToolSchema:
    """What the model is told of a tool: `parameters` is a JSON Schema."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    constrained_sampling: Any = None
    extra: Mapping[str, Any] = field(default=EMPTY, kw_only=True, repr=False)


# ------------------------------------------------------------------ messages


def _blocks(content: Any) -> Any:
    """Content as given: a plain string stays one, any other iterable becomes a tuple."""
    return content if isinstance(content, str) else tuple(content or ())


@frozen
class SystemMessage:
    """The prompt as the transcript keeps it: ordered sections and the tools declared.

    Later ones are patches: a section set to None is removed, others are replaced in place or
    added; `tools_added` declares tools, `tools_removed` withdraws them by `{"name": …}`.
    """

    role: ClassVar[str] = "system"
    content: str | tuple[TextContent, ...] = field(default="", converter=_blocks)
    sections: Mapping[str, str | None] | None = None
    tools_added: tuple[ToolSchema, ...] | None = None
    tools_removed: tuple[Mapping[str, str], ...] | None = None
    timestamp: int = field(factory=now_ms)
    extra: Mapping[str, Any] = field(default=EMPTY, kw_only=True, repr=False)


@frozen
class UserMessage:
    """What a person said."""

    role: ClassVar[str] = "user"
    content: str | tuple[UserContent, ...] = field(converter=_blocks)
    timestamp: int = field(factory=now_ms)
    extra: Mapping[str, Any] = field(default=EMPTY, kw_only=True, repr=False)

    @classmethod
    def of(cls, text: str, images: Iterable[ImageContent] = ()) -> UserMessage:
        """A message of `text`, with `images` after it."""
        return cls((TextContent(text), *images))


@frozen
class AssistantMessage:
    """One answer of a model. `timestamp` is the start of the request."""

    role: ClassVar[str] = "assistant"
    content: tuple[AssistantContent, ...] = field(converter=_blocks)
    api: str = "unknown"
    provider: str = "unknown"
    model: str = "unknown"
    response_model: str | None = None
    response_id: str | None = None
    usage: Usage = Usage()
    stop_reason: StopReason = "stop"
    raw_stop_reason: str | None = None
    end_turn: bool | None = None
    error_message: str | None = None
    deferred: Mapping[str, Any] | None = None
    diagnostics: tuple[Mapping[str, Any], ...] | None = None
    timestamp: int = field(factory=now_ms)
    duration_ms: int | None = None
    thinking_level: str | None = None
    provider_thinking_level: str | None = None
    extra: Mapping[str, Any] = field(default=EMPTY, kw_only=True, repr=False)

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls of this answer, in the model's order."""
        return tuple(block for block in self.content if isinstance(block, ToolCall))

    @property
    def text(self) -> str:
        """The visible text, blocks joined by line ends."""
        return text_of(self.content)


@frozen
class ToolResultMessage:
    """The one answer to one tool call."""

    role: ClassVar[str] = "toolResult"
    tool_call_id: str
    tool_name: str
    content: str | tuple[UserContent, ...] = field(converter=_blocks)
    details: Any = None
    usage: Usage | None = None
    is_error: bool = False
    duration_ms: int | None = None
    nested_calls: Mapping[str, Any] | None = None
    timestamp: int = field(factory=now_ms)
    extra: Mapping[str, Any] = field(default=EMPTY, kw_only=True, repr=False)


@frozen
class BashExecutionMessage:
    """A command that the user ran with `!`; `exclude_from_context` marks `!!`."""

    role: ClassVar[str] = "bashExecution"
    command: str
    output: str
    exit_code: int | None = None
    cancelled: bool = False
    truncated: bool = False
    full_output_path: str | None = None
    exclude_from_context: bool | None = None
    timestamp: int = field(factory=now_ms)
    extra: Mapping[str, Any] = field(default=EMPTY, kw_only=True, repr=False)


@frozen
class CustomMessage:
    """An application's message to the model; `display` false hides it from the screen."""

    role: ClassVar[str] = "custom"
    custom_type: str
    content: str | tuple[UserContent, ...] = field(converter=_blocks)
    display: bool = True
    details: Any = None
    timestamp: int = field(factory=now_ms)
    extra: Mapping[str, Any] = field(default=EMPTY, kw_only=True, repr=False)


@frozen
class BranchSummaryMessage:
    """What the branch just left had done. `from_id` is its last entry."""

    role: ClassVar[str] = "branchSummary"
    summary: str
    from_id: str | None = None
    timestamp: int = field(factory=now_ms)
    extra: Mapping[str, Any] = field(default=EMPTY, kw_only=True, repr=False)


@frozen
class CompactionSummaryMessage:
    """A summary that stands for older context of `tokens_before` tokens."""

    role: ClassVar[str] = "compactionSummary"
    summary: str
    tokens_before: int = 0
    timestamp: int = field(factory=now_ms)
    extra: Mapping[str, Any] = field(default=EMPTY, kw_only=True, repr=False)


@frozen
class OpaqueMessage:
    """A message of a role that this version does not know, kept as it came."""

    role: str
    extra: Mapping[str, Any] = field(default=EMPTY, kw_only=True, repr=False)


LlmMessage: TypeAlias = SystemMessage | UserMessage | AssistantMessage | ToolResultMessage
AgentMessage: TypeAlias = (
    LlmMessage
    | BashExecutionMessage
    | CustomMessage
    | BranchSummaryMessage
    | CompactionSummaryMessage
    | OpaqueMessage
)


def is_llm_message(message: AgentMessage) -> TypeGuard[LlmMessage]:
    """Whether providers know this kind of message as it is."""
    return isinstance(message, (SystemMessage, UserMessage, AssistantMessage, ToolResultMessage))


def is_blank(content: str | Iterable[Content]) -> bool:
    """Whether there is nothing but white space in it, which no provider takes."""
    if isinstance(content, str):
        return not content.strip()
    return not any(_says_something(block) for block in content)


def text_of(content: str | Iterable[Content]) -> str:
    """The text of a message's content; blocks of text are joined by line ends, others left out."""
    if isinstance(content, str):
        return content
    return "\n".join(block.text for block in content if isinstance(block, TextContent))


def is_visible(block: Content) -> bool:
    """Whether a person would see anything of a block of text or thinking."""
    if isinstance(block, TextContent):
        return bool(block.text.strip())
    return isinstance(block, ThinkingContent) and bool(block.thinking.strip())


def sendable(message: AssistantMessage) -> AssistantMessage | None:
    """What of an answer goes into later requests; None if nothing does.

    Nothing of a failed or an empty one; of an aborted one the text and thinking, without its
    calls, which never ran, and only if a person saw text of it.
    """
    if message.stop_reason == "error":
        return None
    if message.stop_reason != "aborted":
        return message if any(_says_something(block) for block in message.content) else None
    visible = tuple(block for block in message.content if is_visible(block))
    has_text = any(isinstance(block, TextContent) for block in visible)
    return evolve(message, content=visible) if has_text else None


def _says_something(block: Content) -> bool:
    return not isinstance(block, TextContent) or is_visible(block)
