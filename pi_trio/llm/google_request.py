"""Conversations as Generative AI bodies, each message encoded once and reused."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any

from attrs import frozen

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

__all__ = ["encode_request", "sent_level"]

_CALL_IDS = CallIds(re.compile(r"[A-Za-z0-9_-]{1,64}"))
_OLDER = re.compile(r"gemini-[12]\b")
"""Models that count thinking in tokens, and know neither ids of calls nor images in results."""

_UNSIGNED = "skip_thought_signature_validator"
"""What the documentation gives for a call that another model made: newer models refuse it unsigned."""


def encode_request(model: Model, context: Context, options: StreamOptions) -> bytes:
    """The body of a streaming request.

    What stays the same from one request to the next comes first, then the contents, of which a
    later request only has more.
    """
    instructions, turns = _conversation(context, model)
    parts = []
    if instructions:
        parts.append(b'"systemInstruction":{"parts":%b}' % _list(instructions))
    if context.tools:
        declarations = [_encoded_tools.of(tool, _tool) for tool in context.tools]
        parts.append(b'"tools":[{"functionDeclarations":%b}]' % _list(declarations))
    if parameters := _parameters(model, context, options):
        parts.append(b'"generationConfig":' + dumps(parameters))
    parts.append(b'"contents":' + _list(_contents(turns)))
    return b"{%b}" % b",".join(parts)


def sent_level(model: Model, options: StreamOptions) -> str | None:
    """What the host is told of thinking: a level, or tokens; None for nothing."""
    config = _thinking(model, options)
    sent = config.get("thinkingLevel", config.get("thinkingBudget"))
    return None if sent is None else str(sent)


# ------------------------------------------------------------------ parameters


_BUDGETS: Mapping[str, Mapping[str, int]] = {
    "gemini-2.5-pro": {"minimal": 128, "low": 2048, "medium": 8192, "high": 32_768},
    "gemini-2.5-flash-lite": {"minimal": 512, "low": 2048, "medium": 8192, "high": 24_576},
    "gemini-2.5-flash": {"minimal": 128, "low": 2048, "medium": 8192, "high": 24_576},
}
_AS_IT_LIKES = {"minimal": -1, "low": -1, "medium": -1, "high": -1}


def _parameters(model: Model, context: Context, options: StreamOptions) -> dict[str, Any]:
    out: dict[str, Any] = {}
    if options.temperature is not None:
        out["temperature"] = options.temperature
    if options.max_tokens is not None:
        out["maxOutputTokens"] = output_limit(model, context, options.max_tokens)
    if thinking := _thinking(model, options):
        out["thinkingConfig"] = thinking
    return out


def _thinking(model: Model, options: StreamOptions) -> dict[str, Any]:
    """How the model is to think: newer ones take a level, older ones a budget.

    A model that cannot do without is kept at its least; its thoughts are shown if asked for.
    """
    if not model.reasoning:
        return {}
    level = clamp_level(model, options.thinking_level)
    shown = {} if options.thinking_level == "off" else {"includeThoughts": True}
    if not _OLDER.search(model.id):
        name = provider_level(model, level)
        return {**shown, "thinkingLevel": name.upper()} if name else {**shown, "thinkingBudget": 0}
    if level == "off":
        return {"thinkingBudget": 0}
    usual = next((tokens for name, tokens in _BUDGETS.items() if name in model.id), _AS_IT_LIKES)
    return {**shown, "thinkingBudget": budget_tokens(level, options.thinking_budgets, usual)}


def _tool(tool: ToolSchema) -> bytes:
    schema = dict(tool.parameters)
    return dumps({"name": tool.name, "description": tool.description, "parametersJsonSchema": schema})


# ------------------------------------------------------------------ messages


@frozen
class _Profile:
    """What the encoded form of a message depends on besides the message."""

    reader: Reader
    older: bool


@frozen
class _Turn:
    """A message as parts. Results must come first in a turn of the user."""

    role: str
    results: tuple[bytes, ...] = ()
    parts: tuple[bytes, ...] = ()


def _conversation(context: Context, model: Model) -> tuple[list[bytes], list[_Turn]]:
    """The instructions and the turns. There are no system messages on the way: they join the former."""
    profile = _Profile(Reader.of(model, _CALL_IDS), _OLDER.search(model.id) is not None)
    encodings = _encoded_messages.setdefault(profile, Encodings())
    instructions = [_text(context.system_prompt)] if context.system_prompt else []
    turns = []
    for message in hand_over(context.messages, profile.reader):
        turn = encodings.of(message, partial(_turn, profile))
        if turn.role == "system":
            instructions += turn.parts
        elif turn.parts or turn.results:
            turns.append(turn)
    return instructions, turns


def _contents(turns: Iterable[_Turn]) -> Iterator[bytes]:
    """Turns by turns: what one side says in a row is one content."""
    for role, row in groupby(turns, key=lambda turn: turn.role):
        said = list(row)
        results = [part for turn in said for part in turn.results]
        parts = [part for turn in said for part in turn.parts]
        yield b'{"role":"%b","parts":%b}' % (role.encode(), _list([*results, *parts]))


def _turn(profile: _Profile, message: LlmMessage) -> _Turn:
    match message:
        case SystemMessage():
            return _Turn("system", parts=(_text(text_of(message.content)),))
        case UserMessage():
            return _Turn("user", parts=tuple(_user_parts(message.content)))
        case ToolResultMessage():
            return _result(message, profile)
        case AssistantMessage():
            return _Turn("model", parts=tuple(_answer_parts(message.content, profile)))


def _user_parts(content: str | Iterable[UserContent]) -> Iterator[bytes]:
    """Text and images. Empty text is refused, so it is left out."""
    for block in (TextContent(content),) if isinstance(content, str) else content:
        if isinstance(block, ImageContent):
            yield dumps(_image(block))
        elif isinstance(block, TextContent) and block.text:
            yield _text(block.text)


def _image(block: ImageContent) -> dict[str, Any]:
    return {"inlineData": {"mimeType": block.mime_type, "data": block.data}}


def _result(message: ToolResultMessage, profile: _Profile) -> _Turn:
    content = message.content
    images = [] if isinstance(content, str) else [each for each in content if isinstance(each, ImageContent)]
    text = text_of(content) or ("(see the image)" if images else "(no output)")
    response: dict[str, Any] = {
        "name": message.tool_name,
        "response": {"error" if message.is_error else "output": text},
    }
    if profile.older:
        return _Turn("user", (dumps({"functionResponse": response}),), tuple(_user_parts(images)))
    response["id"] = message.tool_call_id
    if images:
        response["parts"] = [_image(image) for image in images]
    return _Turn("user", (dumps({"functionResponse": response}),))


def _answer_parts(content: Sequence[AssistantContent], profile: _Profile) -> Iterator[bytes]:
    first_call = next((block for block in content if isinstance(block, ToolCall)), None)
    for block in content:
        match block:
            case TextContent():
                yield _signed({"text": block.text}, block.text_signature)
            case ThinkingContent():
                yield _signed({"text": block.thinking, "thought": True}, block.thinking_signature)
            case ToolCall():
                unsigned = _UNSIGNED if block is first_call and not profile.older else None
                yield _signed(_call(block, profile), block.thought_signature or unsigned)
            case _:
                pass


def _call(call: ToolCall, profile: _Profile) -> dict[str, Any]:
    function: dict[str, Any] = {"name": call.name, "args": dict(call.arguments)}
    return {"functionCall": function if profile.older else {**function, "id": call.id}}


def _signed(part: dict[str, Any], signature: str | None) -> bytes:
    return dumps({**part, "thoughtSignature": signature} if signature else part)


def _text(text: str) -> bytes:
    return dumps({"text": text})


def _list(items: Iterable[bytes]) -> bytes:
    return b"[" + b",".join(items) + b"]"


_encoded_tools = Encodings()
_encoded_messages: dict[_Profile, Encodings] = {}
