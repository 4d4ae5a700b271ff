"""Conversations as Chat Completions bodies, each message encoded once and reused."""

from __future__ import annotations

import hashlib
import re
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

from attrs import frozen

from pi_trio import codec
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
from pi_trio.surrogates import mend

__all__ = ["REASONING_FIELDS", "encode_request"]

REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_text")
"""The names under which hosts send thinking, and want it handed back."""

_LONGEST_CALL_ID = 40
_MISTRAL_CALL_ID = re.compile(r"[A-Za-z0-9]{9}")


def encode_request(model: Model, context: Context, options: StreamOptions) -> bytes:
    """The body of a streaming request."""
    compat = model.compat or {}
    profile = _Profile.of(model)
    head = _dumps(_parameters(model, options, compat))
    body = [head[:-1], b',"messages":[', b",".join(_messages(context, profile)), b"]"]
    if context.tools:
        tools = (_encoded_tools.of(tool, _tool) for tool in context.tools)
        body += [b',"tools":[', b",".join(tools), b"]"]
    return b"".join([*body, b"}"])


@frozen
class _Profile:
    """What the encoded form of a message depends on besides the message."""

    provider: str
    api: str
    model: str
    images: bool
    always_reasoning: bool
    short_call_ids: bool

    @classmethod
    def of(cls, model: Model) -> _Profile:
        compat = model.compat or {}
        return cls(
            provider=model.provider,
            api=model.api,
            model=model.id,
            images="image" in model.input,
            always_reasoning=bool(compat.get("requiresReasoningContentOnAssistantMessages")),
            short_call_ids=model.provider == "mistral",
        )

    def call_id(self, call_id: str) -> str:
        """The id as this host accepts it. Calls and results map alike, whoever made the id."""
        if self.short_call_ids:
            return call_id if _MISTRAL_CALL_ID.fullmatch(call_id) else _digest(call_id, 9)
        if len(call_id) <= _LONGEST_CALL_ID and "|" not in call_id:
            return call_id
        return f"call_{_digest(call_id, 32)}"

    def wrote(self, message: AssistantMessage) -> bool:
        """Whether the model that is asked now gave this answer."""
        return (message.provider, message.api, message.model) == (self.provider, self.api, self.model)


def _digest(text: str, length: int) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:length]


# ------------------------------------------------------------------ parameters


def _parameters(model: Model, options: StreamOptions, compat: Mapping[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {"model": model.id, "stream": True}
    if compat.get("supportsUsageInStreaming") is not False:
        out["stream_options"] = {"include_usage": True}
    if options.temperature is not None:
        out["temperature"] = options.temperature
    if options.max_tokens is not None:
        field = compat.get("maxTokensField") or _max_tokens_field(model)
        out[field] = min(options.max_tokens, model.max_tokens)
    effort = provider_level(model, options.thinking_level)
    if effort is not None and compat.get("supportsReasoningEffort") is not False:
        out["reasoning_effort"] = effort
    return out


def _max_tokens_field(model: Model) -> str:
    """OpenAI's reasoning models refuse the name that every other host knows."""
    return "max_completion_tokens" if urlsplit(model.base_url).hostname == "api.openai.com" else "max_tokens"


def _tool(tool: ToolSchema) -> bytes:
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return _dumps({"type": "function", "function": function})


# ------------------------------------------------------------------ messages


@frozen
class _Piece:
    """A message as it is sent: empty if left out. Images of a tool result go apart."""

    body: bytes = b""
    images: bytes = b""
    calls: tuple[str, ...] = ()


def _messages(context: Context, profile: _Profile) -> Iterator[bytes]:
    """The encoded messages. Every call is followed by its results, and those by their images."""
    if context.system_prompt:
        yield _dumps({"role": "system", "content": context.system_prompt})
    encodings = _encoded_messages.setdefault(profile, _Encodings())
    tail = _Tail(profile)

    def encode(message: LlmMessage) -> _Piece:
        return _piece(message, profile)

    for message in context.messages:
        piece = encodings.of(message, encode)
        if isinstance(message, ToolResultMessage):
            yield piece.body
            tail.take_result(message.tool_call_id, piece.images)
        elif isinstance(message, SystemMessage) and tail.unanswered:
            tail.held.append(piece.body)
        else:
            yield from tail.settle()
            if piece.body:
                yield piece.body
            tail.unanswered = list(piece.calls)
    yield from tail.settle()


class _Tail:
    """What must still come before the next message: results, their images, system messages."""

    def __init__(self, profile: _Profile) -> None:
        self.unanswered: list[str] = []
        self.held: list[bytes] = []
        self._images: list[bytes] = []
        self._profile = profile

    def take_result(self, call_id: str, images: bytes) -> None:
        if call_id in self.unanswered:
            self.unanswered.remove(call_id)
        if images:
            self._images.append(images)

    def settle(self) -> Iterator[bytes]:
        for call_id in self.unanswered:
            yield _tool_message(self._profile.call_id(call_id), "No result provided")
        if self._images:
            note = _dumps(_text_part("The images that the tools returned:"))
            yield b'{"role":"user","content":[' + b",".join([note, *self._images]) + b"]}"
        yield from filter(None, self.held)
        self.unanswered, self._images, self.held = [], [], []


def _piece(message: LlmMessage, profile: _Profile) -> _Piece:
    match message:
        case SystemMessage():
            text = text_of(message.content)
            return _Piece(_dumps({"role": "system", "content": text}) if text else b"")
        case UserMessage():
            return _Piece(_user(message, profile))
        case ToolResultMessage():
            return _tool_result(message, profile)
        case AssistantMessage():
            return _assistant(message, profile)


def _user(message: UserMessage, profile: _Profile) -> bytes:
    if isinstance(message.content, str):
        return _dumps({"role": "user", "content": message.content})
    parts = list(_parts(message.content, profile))
    if not parts:
        return b""
    only_text = len(parts) == 1 and parts[0]["type"] == "text"
    return _dumps({"role": "user", "content": parts[0]["text"] if only_text else parts})


def _parts(content: Iterable[UserContent], profile: _Profile) -> Iterator[dict[str, Any]]:
    """Text and images; a model without eyes is told once that there were some."""
    omitted = False
    for block in content:
        if isinstance(block, TextContent):
            yield _text_part(block.text)
            omitted = False
        elif isinstance(block, ImageContent) and profile.images:
            yield _image_part(block)
        elif isinstance(block, ImageContent) and not omitted:
            yield _text_part("(image omitted: model does not support images)")
            omitted = True


def _text_part(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _image_part(image: ImageContent) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": f"data:{image.mime_type};base64,{image.data}"}}


def _tool_result(message: ToolResultMessage, profile: _Profile) -> _Piece:
    text = text_of(message.content)
    blocks = () if isinstance(message.content, str) else message.content
    images = [block for block in blocks if isinstance(block, ImageContent)]
    if images and not profile.images:
        text = "\n".join(filter(None, [text, "(tool image omitted: model does not support images)"]))
    text = text or ("(see the image that follows)" if images else "(no output)")
    body = _tool_message(profile.call_id(message.tool_call_id), text)
    sent = images if profile.images else []
    return _Piece(body, b",".join(_dumps(_image_part(image)) for image in sent))


def _tool_message(call_id: str, text: str) -> bytes:
    return _dumps({"role": "tool", "tool_call_id": call_id, "content": text})


def _assistant(message: AssistantMessage, profile: _Profile) -> _Piece:
    """An answer given back. Failed ones are left out; aborted ones keep only their text."""
    if message.stop_reason == "error":
        return _Piece()
    calls = () if message.stop_reason == "aborted" else message.tool_calls
    text = "".join(block.text for block in message.content if isinstance(block, TextContent))
    if not text.strip() and not calls:
        return _Piece()
    out: dict[str, Any] = {"role": "assistant", "content": text or None}
    if profile.always_reasoning:
        out["reasoning_content"] = ""
    if profile.wrote(message):
        out.update(_reasoning(message))
    if calls:
        out["tool_calls"] = [_call(call, profile) for call in calls]
    return _Piece(_dumps(out), calls=tuple(call.id for call in calls))


def _reasoning(message: AssistantMessage) -> dict[str, str]:
    """The thinking, under the names that it came by."""
    fields: dict[str, str] = {}
    for block in message.content:
        if isinstance(block, ThinkingContent) and block.thinking_signature in REASONING_FIELDS:
            name = block.thinking_signature
            fields[name] = fields.get(name, "") + block.thinking
    return fields


def _call(call: ToolCall, profile: _Profile) -> dict[str, Any]:
    arguments = _dumps(dict(call.arguments)).decode()
    return {
        "id": profile.call_id(call.id),
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    }


def _dumps(value: Any) -> bytes:
    """JSON that every host can read: no host takes the lone surrogates an old session may hold."""
    data = codec.dumps(value)
    return codec.dumps(mend(value)) if b"\\ud" in data else data


# ------------------------------------------------------------------ encoded once


_T = TypeVar("_T")
_V = TypeVar("_V")


class _Encodings:
    """Encoded values by identity, each kept as long as the value itself."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[weakref.ref[Any], Any]] = {}

    def of(self, value: _V, encode: Callable[[_V], _T]) -> _T:
        """`encode(value)`, made at the first call."""
        key = id(value)
        made = self._made.get(key)
        if made is None:
            forget = weakref.ref(value, lambda _: self._made.pop(key, None))
            made = self._made[key] = forget, encode(value)
        return cast("_T", made[1])


_encoded_tools = _Encodings()
_encoded_messages: dict[_Profile, _Encodings] = {}
