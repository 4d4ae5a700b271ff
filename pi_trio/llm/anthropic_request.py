"""Conversations as Messages bodies, each message encoded once and reused."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any, TypeAlias, TypeGuard

from attrs import evolve, frozen

from pi_trio.llm.encoded import Encodings, dumps
from pi_trio.llm.handoff import CallIds, Reader, hand_over
from pi_trio.llm.limits import output_limit
from pi_trio.llm.protocol import Context, Model, StreamOptions
from pi_trio.llm.thinking import budget_tokens, clamp_level, provider_level
from pi_trio.messages import (
    AssistantContent,
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

__all__ = ["encode_request", "headers_for", "sent_level"]

_VERSION = "2023-06-01"
_EFFORTS = ("low", "medium", "high", "xhigh", "max")
_BETWEEN_CALLS = "interleaved-thinking-2025-05-14"  # newer models think between calls without being asked
_EFFORT_ON_THE_WAY = "mid-conversation-output-config-2026-07-01,thinking-binding-controls-2026-08-01"
_LEAST_BUDGET = 1024
_LEAST_ANSWER = 1024
_NOTHING = Context()
_CALL_IDS = CallIds(re.compile(r"[A-Za-z0-9_-]{1,64}"))


def encode_request(model: Model, context: Context, options: StreamOptions) -> bytes:
    """The body of a streaming request.

    What stays the same from one request to the next comes first: parameters, system, tools,
    then the messages, of which a later request only has more (but for the cache marks).
    """
    compat = model.compat or {}
    mark = _mark(options, compat)
    instructions, turns = _conversation(context, model)
    rows = [(answer, list(row)) for answer, row in groupby(turns, key=lambda turn: turn.role == "assistant")]
    thinking = _Thinking.of(model, options, context)
    if thinking.budget and not _may_think(rows):
        thinking = evolve(thinking, budget=0)
    parts = [_dumps_open(_parameters(model, options, thinking))]
    if instructions:
        parts.append(b',"system":' + _list(_marked(instructions, mark)))
    if context.tools:
        on_tools = mark if compat.get("supportsCacheControlOnTools") is not False else b""
        parts.append(b',"tools":' + _list(_marked(_tools(context.tools, compat), on_tools)))
    effort = thinking.effort if thinking.on_the_way else ""
    parts.append(b',"messages":' + _list(_messages(rows, mark, effort)))
    return b"".join([*parts, b"}"])


def headers_for(model: Model, options: StreamOptions) -> dict[str, str]:
    """The headers of a request: who asks, and which edition of the API is meant."""
    headers = {"anthropic-version": _VERSION}
    if options.api_key:
        headers["x-api-key"] = options.api_key
    thinking = _Thinking.of(model, options)
    if thinking.budget:
        headers["anthropic-beta"] = _BETWEEN_CALLS
    elif thinking.on_the_way:
        headers["anthropic-beta"] = _EFFORT_ON_THE_WAY
    return headers


def sent_level(model: Model, options: StreamOptions) -> str | None:
    """What the host is told of thinking: an effort, or tokens; None for nothing."""
    thinking = _Thinking.of(model, options)
    return thinking.effort or (str(thinking.budget) if thinking.budget else None)


# ------------------------------------------------------------------ parameters


@frozen
class _Thinking:
    """How a model is to think: by an effort, within a budget, or not at all.

    The effort is a parameter, and with it a part of what is cached. The newest models take it
    `on_the_way`, so that another one spoils nothing.
    """

    effort: str = ""
    budget: int = 0
    max_tokens: int = 0
    on_the_way: bool = False

    @classmethod
    def of(cls, model: Model, options: StreamOptions, context: Context = _NOTHING) -> _Thinking:
        """Newer models take an effort. For older ones the budget is part of the output limit."""
        limit = output_limit(model, context, options.max_tokens)
        level = clamp_level(model, options.thinking_level)
        compat = model.compat or {}
        if level == "off":
            return cls(max_tokens=limit)
        if compat.get("forceAdaptiveThinking"):
            effort = provider_level(model, level) or level
            effort = "low" if effort == "minimal" else effort
            on_the_way = bool(compat.get("supportsMidConvoEffort"))
            return cls(effort=effort, max_tokens=limit, on_the_way=on_the_way)
        budget = budget_tokens(level, options.thinking_budgets)
        if options.max_tokens is not None:
            limit = output_limit(model, context, options.max_tokens + budget)
        budget = min(budget, limit - _LEAST_ANSWER)
        return cls(budget=budget if budget >= _LEAST_BUDGET else 0, max_tokens=limit)

    def parameters(self) -> dict[str, Any]:
        if self.effort:
            thinking: dict[str, Any] = {"type": "adaptive", "display": "summarized"}
            if self.on_the_way:  # thoughts are bound to what they followed; after a change they only get lost
                thinking["block_binding"] = {"prefix_mismatch_behavior": "drop_block"}
            effort = _EFFORTS[0] if self.on_the_way else self.effort  # no organisation forbids the least
            return {"thinking": thinking, "output_config": {"effort": effort}}
        if self.budget:
            return {"thinking": {"type": "enabled", "budget_tokens": self.budget, "display": "summarized"}}
        return {"thinking": {"type": "disabled"}}


def _parameters(model: Model, options: StreamOptions, thinking: _Thinking) -> dict[str, Any]:
    out: dict[str, Any] = {"model": model.id, "max_tokens": thinking.max_tokens, "stream": True}
    thinks = bool(thinking.effort or thinking.budget)
    takes_it = (model.compat or {}).get("supportsTemperature") is not False
    if options.temperature is not None and not thinks and takes_it:
        out["temperature"] = options.temperature
    return {**out, **thinking.parameters()} if model.reasoning else out


def _mark(options: StreamOptions, compat: Mapping[str, Any]) -> bytes:
    """What asks for the cache: everything up to a block that holds this is kept for the next request."""
    if options.cache_retention == "none":
        return b""
    mark = {"type": "ephemeral"}
    if options.cache_retention == "long" and compat.get("supportsLongCacheRetention") is not False:
        mark["ttl"] = "1h"
    return b',"cache_control":' + dumps(mark) + b"}"


def _marked(blocks: Sequence[bytes], mark: bytes) -> Sequence[bytes]:
    """The encoded objects, the last one marked."""
    return [*blocks[:-1], blocks[-1][:-1] + mark] if mark else blocks


def _tools(tools: Iterable[ToolSchema], compat: Mapping[str, Any]) -> list[bytes]:
    eager = compat.get("supportsEagerToolInputStreaming") is not False
    return [_encoded_tools[eager].of(tool, partial(_tool, eager)) for tool in tools]


def _tool(eager: bool, tool: ToolSchema) -> bytes:
    """A tool. `eager` asks for arguments as they are written, not a whole value at a time."""
    refused = ("oneOf", "anyOf", "allOf")
    schema = {key: value for key, value in tool.parameters.items() if key not in refused}
    out: dict[str, Any] = {"name": tool.name, "description": tool.description}
    if eager:
        out["eager_input_streaming"] = True
    return dumps({**out, "input_schema": {**schema, "type": "object"}})


# ------------------------------------------------------------------ messages


@frozen
class _Profile:
    """What the encoded form of a message depends on besides the message."""

    reader: Reader
    unsigned_thinking: bool
    system_turns: bool

    @classmethod
    def of(cls, model: Model) -> _Profile:
        compat = model.compat or {}
        return cls(
            Reader.of(model, _CALL_IDS),
            bool(compat.get("allowEmptySignature")),
            bool(compat.get("supportsMidConvoSystemMessages")),
        )


@frozen
class _Turn:
    """A message as blocks. Results must come first in a turn of the user."""

    role: str
    results: tuple[bytes, ...] = ()
    blocks: tuple[bytes, ...] = ()
    effort: str = ""
    thinks: bool = False


_Accepted: TypeAlias = TextContent | ThinkingContent | ToolCall
_Row: TypeAlias = tuple[bool, list[_Turn]]
"""Turns of one side in a row; true for answers."""


def _conversation(context: Context, model: Model) -> tuple[list[bytes], list[_Turn]]:
    """The instructions and the turns. Older models take system messages only as instructions."""
    profile = _Profile.of(model)
    encodings = _encoded_messages.setdefault(profile, Encodings())
    instructions = [_text(context.system_prompt)] if context.system_prompt.strip() else []
    turns = []
    for message in hand_over(context.messages, profile.reader):
        turn = encodings.of(message, partial(_turn, profile))
        if turn.role == "system" and not profile.system_turns:
            instructions += turn.blocks
        elif turn.blocks or turn.results:
            turns.append(turn)
    return instructions, turns


def _may_think(rows: Iterable[_Row]) -> bool:
    """Whether the answer in progress, with all its calls so far, began with thinking.

    If it did not, as when another model began it or thinking was off, older models refuse to
    think before it is over.
    """
    opening: _Turn | None = None
    for answer, row in rows:
        if answer:
            opening = opening or row[0]
        elif not any(turn.results for turn in row):
            opening = None
    return opening is None or opening.thinks


def _messages(rows: Sequence[_Row], mark: bytes, effort: str) -> Iterator[bytes]:
    """What one side says in a row is one message.

    The last block of the user is marked, and also that of the turn before: a mark finds what
    was kept no more than 20 blocks back, and a step may well have more of them. System messages
    and an `effort` stand right before the answer that they are for.
    """
    asked = [index for index, (answer, _) in enumerate(rows) if not answer][-2:]
    for index, (answer, row) in enumerate(rows):
        if answer:
            if effort and row[0].effort:
                yield _effort(row[0].effort)
            yield _message("assistant", row)
            continue
        for role in ("user", "system"):
            if said := [turn for turn in row if turn.role == role]:
                yield _message(role, said, mark if role == "user" and index in asked else b"")
    if effort:
        yield _effort(effort)


def _effort(effort: str) -> bytes:
    return dumps({"role": "system", "content": [], "output_config": {"effort": effort}})


def _message(role: str, turns: Sequence[_Turn], mark: bytes = b"") -> bytes:
    results = [block for turn in turns for block in turn.results]
    blocks = [block for turn in turns for block in turn.blocks]
    content = _list(_marked([*results, *blocks], mark))
    return b'{"role":"%b","content":%b}' % (role.encode(), content)


def _turn(profile: _Profile, message: LlmMessage) -> _Turn:
    match message:
        case SystemMessage():
            return _Turn("system", blocks=tuple(_user_blocks(text_of(message.content))))
        case UserMessage():
            return _Turn("user", blocks=tuple(_user_blocks(message.content)))
        case ToolResultMessage():
            return _result(message)
        case AssistantMessage():
            return _answer(message, profile)


def _user_blocks(content: str | Iterable[UserContent]) -> Iterator[bytes]:
    """Text and images. Blank text is refused, so it is left out."""
    for block in (TextContent(content),) if isinstance(content, str) else content:
        if isinstance(block, ImageContent):
            source = {"type": "base64", "media_type": block.mime_type, "data": block.data}
            yield dumps({"type": "image", "source": source})
        elif isinstance(block, TextContent) and block.text.strip():
            yield _text(block.text)


def _result(message: ToolResultMessage) -> _Turn:
    """A result. One that tells of an error takes only text, so its images follow the results."""
    content = message.content
    images = () if isinstance(content, str) else [each for each in content if isinstance(each, ImageContent)]
    shown = text_of(content) if message.is_error else content
    blocks = tuple(_user_blocks(shown)) or (
        _text("(see the image that follows)" if images else "(no output)"),
    )
    head: dict[str, Any] = {"type": "tool_result", "tool_use_id": message.tool_call_id}
    if message.is_error:
        head["is_error"] = True
    result = _dumps_open(head) + b',"content":' + _list(blocks) + b"}"
    return _Turn("user", (result,), tuple(_user_blocks(images)) if message.is_error else ())


def _answer(message: AssistantMessage, profile: _Profile) -> _Turn:
    sent = [block for block in message.content if _is_accepted(block, profile)]
    return _Turn(
        "assistant",
        blocks=tuple(_answer_block(block) for block in sent),
        effort=_effort_of(message, profile.reader),
        thinks=bool(sent) and isinstance(sent[0], ThinkingContent),
    )


def _is_accepted(block: AssistantContent, profile: _Profile) -> TypeGuard[_Accepted]:
    """Whether the host takes the block back. It refuses thinking that nobody signed."""
    if isinstance(block, ThinkingContent):
        return bool(block.thinking_signature) or (profile.unsigned_thinking and not block.redacted)
    return isinstance(block, (TextContent, ToolCall))


def _answer_block(block: _Accepted) -> bytes:
    match block:
        case TextContent():
            return _text(block.text)
        case ToolCall():
            call = {"type": "tool_use", "id": block.id, "name": block.name, "input": dict(block.arguments)}
            return dumps(call)
        case ThinkingContent(redacted=True):
            return dumps({"type": "redacted_thinking", "data": block.thinking_signature})
        case ThinkingContent():
            signature = block.thinking_signature or ""
            return dumps({"type": "thinking", "thinking": block.thinking, "signature": signature})


def _effort_of(message: AssistantMessage, reader: Reader) -> str:
    """The effort that was sent for an answer of this host; empty for any other answer."""
    here = (message.provider, message.api) == (reader.provider, reader.api)
    level = message.provider_thinking_level
    return level if here and level in _EFFORTS else ""


def _text(text: str) -> bytes:
    return dumps({"type": "text", "text": text})


def _list(items: Iterable[bytes]) -> bytes:
    return b"[" + b",".join(items) + b"]"


def _dumps_open(value: Mapping[str, Any]) -> bytes:
    """An object without its end, so that more members can follow."""
    return dumps(value)[:-1]


_encoded_tools = {True: Encodings(), False: Encodings()}
_encoded_messages: dict[_Profile, Encodings] = {}
