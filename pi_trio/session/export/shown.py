"""What a person is shown of an entry: a heading and parts, whatever they are written as."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, TypeAlias

from attrs import evolve, frozen

from pi_trio import codec
from pi_trio.messages import (
    AgentMessage,
    AssistantMessage,
    BashExecutionMessage,
    Content,
    ImageContent,
    SystemMessage,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from pi_trio.session.entries import (
    ActiveToolsChangeEntry,
    BranchSummaryEntry,
    CompactionEntry,
    CustomMessageEntry,
    Entry,
    MessageEntry,
    ModelChangeEntry,
    ThinkingLevelChangeEntry,
)
from pi_trio.text import printed

__all__ = ["Kind", "Part", "Shown", "show"]

Kind: TypeAlias = Literal["user", "assistant", "tool", "system", "summary", "custom", "change", "record"]
"""`record` is what only a programmer wants to see."""


@frozen
class Part:
    """`text` is prose, `thinking` prose of the model for itself, `code` what has its lines as they are.

    An `image` has its base64 in `text` and its MIME type in `title`.
    """

    style: Literal["text", "thinking", "code", "error", "image"]
    text: str
    title: str = ""


@frozen
class Shown:
    """An entry for a person."""

    kind: Kind
    title: str
    parts: tuple[Part, ...] = ()


def show(entry: Entry) -> Shown:
    """What is shown of an entry."""
    match entry:
        case MessageEntry(message=message):
            return _message(message)
        case CompactionEntry():
            title = f"Compaction of {entry.tokens_before:,} tokens"
            return Shown("summary", title, (Part("text", entry.summary),))
        case BranchSummaryEntry():
            return Shown("summary", "Summary of the branch that was left", (Part("text", entry.summary),))
        case CustomMessageEntry():
            return Shown("custom", entry.custom_type, tuple(_parts(entry.content)))
        case ModelChangeEntry():
            return Shown("change", f"Model {entry.provider}/{entry.model_id}")
        case ThinkingLevelChangeEntry():
            return Shown("change", f"Thinking {entry.thinking_level}")
        case ActiveToolsChangeEntry():
            return Shown("change", f"Tools {', '.join(entry.active_tool_names) or 'none'}")
        case _:
            return _record(codec.to_json(entry))


def _record(data: Mapping[str, Any]) -> Shown:
    rest = {key: item for key, item in data.items() if key not in ("type", "id", "parentId", "timestamp")}
    title = " ".join(str(each) for each in (data.get("type"), data.get("customType")) if each)
    return Shown("record", title, (Part("code", _json(rest)),) if rest else ())


def _message(message: AgentMessage) -> Shown:
    match message:
        case UserMessage():
            return Shown("user", "User", tuple(_parts(message.content)))
        case AssistantMessage():
            return Shown("assistant", _answer_title(message), tuple(_answer(message)))
        case ToolResultMessage():
            title = f"{message.tool_name} {'failed' if message.is_error else 'result'}"
            parts = _parts(message.content, "error" if message.is_error else "code")
            seen = (evolve(part, text=printed(message.tool_name, part.text)) for part in parts)
            return Shown("tool", title, tuple(seen))
        case BashExecutionMessage():
            code = f" (exit {message.exit_code})" if message.exit_code else ""
            return Shown("tool", f"Command{code}", (Part("code", f"$ {message.command}\n{message.output}"),))
        case SystemMessage():
            return Shown("system", "System prompt", tuple(_system(message)))
        case _:
            data = codec.to_json(message)
            return Shown("custom", str(data.get("customType") or data["role"]), (Part("code", _json(data)),))


def _answer_title(message: AssistantMessage) -> str:
    return "Assistant" if message.model == "unknown" else f"Assistant · {message.model}"


def _answer(message: AssistantMessage) -> Iterator[Part]:
    yield from _parts(message.content)
    if message.error_message or message.stop_reason in ("error", "aborted", "length"):
        yield Part("error", message.error_message or message.stop_reason, "ended early")


def _system(message: SystemMessage) -> Iterator[Part]:
    yield from _parts(message.content)
    for name, text in (message.sections or {}).items():
        yield Part("code", text if text is not None else "(removed)", name)
    if message.tools_added:
        yield Part("code", "\n".join(tool.name for tool in message.tools_added), "tools added")
    if message.tools_removed:
        names = (str(tool.get("name")) for tool in message.tools_removed)
        yield Part("code", "\n".join(names), "tools removed")


def _parts(
    content: str | Iterable[Content], style: Literal["text", "code", "error"] = "text"
) -> Iterator[Part]:
    for block in (TextContent(content),) if isinstance(content, str) else content:
        match block:
            case TextContent(text=text):
                if text.strip():
                    yield Part(style, text)
            case ThinkingContent(thinking=text):
                if text.strip():
                    yield Part("thinking", text)
            case ImageContent():
                yield Part("image", block.data, block.mime_type)
            case ToolCall():
                yield Part("code", _arguments(block), block.name)
            case _:
                yield Part("code", _json(codec.to_json(block)), "unknown content")


def _arguments(call: ToolCall) -> str:
    """A command or a path as it is, everything else as JSON."""
    if len(call.arguments) == 1:
        (value,) = call.arguments.values()
        if isinstance(value, str):
            return value
    return _json(call.arguments)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)
