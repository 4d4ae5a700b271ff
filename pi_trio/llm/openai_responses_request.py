"""Conversations as Responses bodies, each message encoded once and reused.

Nothing is stored at the provider: a request tells the whole conversation, and the model's
own reasoning goes back with it in the encrypted form that it came in. Ids of items are not
sent, since a provider that keeps nothing has no use for them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pi_trio import codec
from pi_trio.llm.encoded import Encodings, dumps
from pi_trio.llm.handoff import CallIds, Reader, hand_over
from pi_trio.llm.limits import output_limit
from pi_trio.llm.loose import text
from pi_trio.llm.protocol import Context, Model, StreamOptions
from pi_trio.llm.thinking import provider_level
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

__all__ = ["can_go_back", "encode_request"]

_CALL_IDS = CallIds(re.compile(r"[^|]{1,64}"))
_LONGEST_CACHE_KEY = 64
_FEWEST_TOKENS = 16  # OpenAI refuses a lower limit


def encode_request(model: Model, context: Context, options: StreamOptions) -> bytes:
    """The body of a streaming request."""
    head = dumps(_parameters(model, context, options))
    body = [head[:-1], b',"input":[', b",".join(_items(context, Reader.of(model, _CALL_IDS))), b"]"]
    if context.tools:
        tools = (_encoded_tools.of(tool, _tool) for tool in context.tools)
        body += [b',"tools":[', b",".join(tools), b"]"]
    return b"".join([*body, b"}"])


def can_go_back(item: Any) -> bool:
    """Whether a reasoning item says enough to be taken back by a provider that stored nothing."""
    return bool(
        isinstance(item, dict)
        and item.get("type") == "reasoning"
        and (item.get("encrypted_content") or item.get("content"))
    )


def _parameters(model: Model, context: Context, options: StreamOptions) -> dict[str, Any]:
    out: dict[str, Any] = {"model": model.id, "stream": True, "store": False}
    if context.system_prompt:
        out["instructions"] = context.system_prompt
    if options.temperature is not None:
        out["temperature"] = options.temperature
    if options.max_tokens is not None:
        limit = output_limit(model, context, options.max_tokens)
        out["max_output_tokens"] = max(_FEWEST_TOKENS, limit)
    if options.session_id:
        out["prompt_cache_key"] = options.session_id[:_LONGEST_CACHE_KEY]
    if model.reasoning:
        out["include"] = ["reasoning.encrypted_content"]
    effort = provider_level(model, options.thinking_level)
    if effort is not None:
        out["reasoning"] = {"effort": effort, "summary": "auto"}
    return out


def _tool(tool: ToolSchema) -> bytes:
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return dumps({"type": "function", **function, "strict": False})


# ------------------------------------------------------------------ messages


def _items(context: Context, reader: Reader) -> Iterator[bytes]:
    encodings = _encoded_messages.setdefault(reader, Encodings())
    for message in hand_over(context.messages, reader):
        yield encodings.of(message, _encoded)


def _encoded(message: LlmMessage) -> bytes:
    return b",".join(dumps(item) for item in _message_items(message))


def _message_items(message: LlmMessage) -> Iterator[dict[str, Any]]:
    match message:
        case SystemMessage():
            yield {"role": "system", "content": text_of(message.content)}
        case UserMessage():
            yield {"role": "user", "content": _content(message.content)}
        case ToolResultMessage():
            output = _content(message.content)
            yield {"type": "function_call_output", "call_id": message.tool_call_id, "output": output}
        case AssistantMessage():
            yield from _answer_items(message)


def _content(content: str | tuple[UserContent, ...]) -> str | list[dict[str, Any]]:
    """Text alone as text, anything else as a list of parts."""
    if isinstance(content, str) or not any(isinstance(block, ImageContent) for block in content):
        return text_of(content)
    return [_part(block) for block in content]


def _part(block: UserContent) -> dict[str, Any]:
    if isinstance(block, ImageContent):
        url = f"data:{block.mime_type};base64,{block.data}"
        return {"type": "input_image", "detail": "auto", "image_url": url}
    return {"type": "input_text", "text": text_of((block,))}


def _answer_items(message: AssistantMessage) -> Iterator[dict[str, Any]]:
    """The answer's items. Reasoning is held until what it led to follows, else it is refused."""
    reasoning: list[dict[str, Any]] = []
    for block in message.content:
        if isinstance(block, ThinkingContent):
            reasoning += _reasoning_item(block)
        else:
            yield from reasoning
            yield from _answer_item(block)
            reasoning = []


def _reasoning_item(block: ThinkingContent) -> list[dict[str, Any]]:
    item = _signed(block.thinking_signature)
    return [item] if can_go_back(item) else []


def _answer_item(block: AssistantContent) -> Iterator[dict[str, Any]]:
    if isinstance(block, TextContent):
        phase = text(_signed(block.text_signature), "phase")
        yield {"role": "assistant", "content": block.text, **({"phase": phase} if phase else {})}
    elif isinstance(block, ToolCall):
        arguments = dumps(dict(block.arguments)).decode()
        yield {"type": "function_call", "call_id": block.id, "name": block.name, "arguments": arguments}


def _signed(signature: str | None) -> Any:
    """What the decoder put into a signature; pi writes plain ids as well."""
    try:
        return codec.loads(signature or "null")
    except ValueError:
        return None


_encoded_tools = Encodings()
_encoded_messages: dict[Reader, Encodings] = {}
