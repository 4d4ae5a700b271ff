"""Conversations as Chat Completions bodies, each message encoded once and reused."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from attrs import define, field, frozen

from pi_trio.llm.encoded import Encodings, dumps
from pi_trio.llm.handoff import CallIds, Order, Reader, hand_over
from pi_trio.llm.limits import output_limit
from pi_trio.llm.protocol import Context, Model, StreamOptions
from pi_trio.llm.thinking import provider_level
from pi_trio.messages import (
    AssistantMessage,
    ImageContent,
    LlmMessage,
    SystemMessage,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    ToolSchema,
    UserContent,
    UserMessage,
    text_of,
)

__all__ = ["REASONING_FIELDS", "encode_request"]

REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_text")
"""The names under which hosts send thinking, and want it handed back."""

_CALL_IDS = CallIds(re.compile(r"[^|]{1,40}"))
_MISTRAL_CALL_IDS = CallIds(re.compile(r"[A-Za-z0-9]{9}"), prefix="", length=9)


def encode_request(model: Model, context: Context, options: StreamOptions) -> bytes:
    """The body of a streaming request."""
    compat = model.compat or {}
    profile = _Profile.of(model)
    head = dumps(_parameters(model, context, options, compat))
    body = [head[:-1], b',"messages":[', b",".join(_messages(context, profile)), b"]"]
    if context.tools:
        tools = (_encoded_tools.of(tool, _tool) for tool in context.tools)
        body += [b',"tools":[', b",".join(tools), b"]"]
    return b"".join([*body, b"}"])


@frozen
class _Profile:
    """What the encoded form of a message depends on besides the message."""

    reader: Reader
    always_reasoning: bool

    @classmethod
    def of(cls, model: Model) -> _Profile:
        call_ids = _MISTRAL_CALL_IDS if model.provider == "mistral" else _CALL_IDS
        compat = model.compat or {}
        return cls(
            Reader.of(model, call_ids), bool(compat.get("requiresReasoningContentOnAssistantMessages"))
        )


# ------------------------------------------------------------------ parameters


def _parameters(
    model: Model, context: Context, options: StreamOptions, compat: Mapping[str, Any]
) -> dict[str, Any]:
    out: dict[str, Any] = {"model": model.id, "stream": True}
    if compat.get("supportsUsageInStreaming") is not False:
        out["stream_options"] = {"include_usage": True}
    if options.temperature is not None:
        out["temperature"] = options.temperature
    if options.max_tokens is not None:
        field = compat.get("maxTokensField") or _max_tokens_field(model)
        out[field] = output_limit(model, context, options.max_tokens)
    return {**out, **_thinking(model, options, compat)}


def _thinking(model: Model, options: StreamOptions, compat: Mapping[str, Any]) -> dict[str, Any]:
    """How much to think, in the host's own words: an effort, a switch, or nothing."""
    if not model.reasoning:
        return {}
    effort = provider_level(model, options.thinking_level)
    match compat.get("thinkingFormat"):
        case "openrouter":
            return {"reasoning": {"effort": effort or "none"}}
        case "deepseek" | "zai":
            return {"thinking": {"type": "enabled" if effort else "disabled"}}
        case "qwen":
            return {"enable_thinking": bool(effort)}
        case "qwen-chat-template":
            return {"chat_template_kwargs": {"enable_thinking": bool(effort)}}
    if effort is None or compat.get("supportsReasoningEffort") is False:
        return {}
    return {"reasoning_effort": effort}


def _max_tokens_field(model: Model) -> str:
    """OpenAI's reasoning models refuse the name that every other host knows."""
    return "max_completion_tokens" if urlsplit(model.base_url).hostname == "api.openai.com" else "max_tokens"


def _tool(tool: ToolSchema) -> bytes:
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return dumps({"type": "function", "function": function})


# ------------------------------------------------------------------ messages


@frozen
class _Piece:
    """A message as it is sent. Images of a tool result go apart, after all results."""

    body: bytes
    images: bytes = b""


@define
class _Sent:
    """The beginning of a conversation as a request had it: `count` messages, the first and `rest`."""

    order: Order
    count: int = 0
    rest: tuple[LlmMessage, ...] = ()
    bodies: list[bytes] = field(factory=list)

    def begins(self, messages: Sequence[LlmMessage]) -> bool:
        """Whether these messages go on from it."""
        found = messages[1 : self.count]
        return len(found) == len(self.rest) and all(map(operator.is_, found, self.rest))


def _messages(context: Context, profile: _Profile) -> Iterator[bytes]:
    if context.system_prompt:
        yield dumps({"role": "system", "content": context.system_prompt})
    if context.messages:
        yield from _growing(context.messages, profile)


def _growing(messages: Sequence[LlmMessage], profile: _Profile) -> list[bytes]:
    """The conversation, made from where an earlier request of it ended: a step costs what is new."""
    sent = _sent.setdefault(profile, Encodings()).of(
        messages[0], lambda _: _Sent(Order(profile.reader.call_ids))
    )
    if not sent.begins(messages):
        sent.order, sent.count, sent.rest, sent.bodies = Order(profile.reader.call_ids), 0, (), []
    order = sent.order.copy()
    bodies = [*sent.bodies, *_bodies(messages[sent.count :], profile, order)]
    if order.is_whole:
        sent.order, sent.count, sent.rest, sent.bodies = order, len(messages), tuple(messages[1:]), bodies
    return bodies


def _bodies(messages: Iterable[LlmMessage], profile: _Profile, order: Order) -> Iterator[bytes]:
    encodings = _encoded_messages.setdefault(profile, Encodings())
    encode = partial(_piece, profile)
    images: list[bytes] = []
    for message in hand_over(messages, profile.reader, order):
        piece = encodings.of(message, encode)
        if images and not isinstance(message, ToolResultMessage):
            yield _tool_images(images)
            images = []
        yield piece.body
        if piece.images:
            images.append(piece.images)
    if images:
        yield _tool_images(images)


def _tool_images(images: list[bytes]) -> bytes:
    """Results hold text only, so what they show comes from the user."""
    note = dumps(_text_part("The images that the tools returned:"))
    return b'{"role":"user","content":[' + b",".join([note, *images]) + b"]}"


def _piece(profile: _Profile, message: LlmMessage) -> _Piece:
    match message:
        case SystemMessage():
            return _Piece(dumps({"role": "system", "content": text_of(message.content)}))
        case UserMessage():
            return _Piece(dumps({"role": "user", "content": _user_content(message)}))
        case ToolResultMessage():
            return _tool_result(message)
        case AssistantMessage():
            return _Piece(dumps(_assistant(message, profile)))


def _user_content(message: UserMessage) -> Any:
    if isinstance(message.content, str):
        return message.content
    parts = [_part(block) for block in message.content]
    only_text = len(parts) == 1 and parts[0]["type"] == "text"
    return parts[0]["text"] if only_text else parts


def _part(block: UserContent) -> dict[str, Any]:
    return _image_part(block) if isinstance(block, ImageContent) else _text_part(text_of((block,)))


def _text_part(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _image_part(image: ImageContent) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": f"data:{image.mime_type};base64,{image.data}"}}


def _tool_result(message: ToolResultMessage) -> _Piece:
    blocks = () if isinstance(message.content, str) else message.content
    images = [dumps(_image_part(block)) for block in blocks if isinstance(block, ImageContent)]
    text = text_of(message.content) or "(see the image that follows)"
    body = dumps({"role": "tool", "tool_call_id": message.tool_call_id, "content": text})
    return _Piece(body, b",".join(images))


def _assistant(message: AssistantMessage, profile: _Profile) -> dict[str, Any]:
    text = "".join(block.text for block in message.content if isinstance(block, TextContent))
    out: dict[str, Any] = {"role": "assistant", "content": text or None}
    if profile.always_reasoning:
        out["reasoning_content"] = ""
    out.update(_reasoning(message))
    if calls := message.tool_calls:
        out["tool_calls"] = [_call(call) for call in calls]
    return out


def _reasoning(message: AssistantMessage) -> dict[str, str]:
    """The thinking, under the names that it came by."""
    fields: dict[str, str] = {}
    for block in message.content:
        if isinstance(block, ThinkingContent) and block.thinking_signature in REASONING_FIELDS:
            name = block.thinking_signature
            fields[name] = fields.get(name, "") + block.thinking
    return fields


def _call(call: ToolCall) -> dict[str, Any]:
    arguments = dumps(dict(call.arguments)).decode()
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


_encoded_tools = Encodings()
_sent: dict[_Profile, Encodings] = {}
"""What was sent, by the first message, which it does not hold: it goes when the conversation does."""
_encoded_messages: dict[_Profile, Encodings] = {}
