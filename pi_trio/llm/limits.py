"""How long an answer may be, so that it still fits behind its question."""

from __future__ import annotations

from pi_trio.llm.encoded import Encodings, dumps
from pi_trio.llm.protocol import Context, Model
from pi_trio.messages import (
    ImageContent,
    LlmMessage,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolSchema,
)

__all__ = ["output_limit"]

_LETTERS_PER_TOKEN = 3.5
_IMAGE_LETTERS = 4800
_MARGIN = 4096
_MARGIN_SHARE = 0.15  # the estimate may be wrong by so much
_AMPLE = 32_768


def output_limit(model: Model, context: Context, wanted: int | None = None) -> int:
    """The tokens that an answer may take: what is `wanted`, but no more than fits.

    Providers refuse a request whose input and limit together exceed the model's window. The
    input is estimated with a margin, which is given up where it would leave little room.
    """
    asked = estimated_tokens(context)
    room = model.context_window - asked - max(_MARGIN, round(asked * _MARGIN_SHARE))
    if room < _AMPLE:
        room = min(_AMPLE, model.context_window - asked - _MARGIN)
    return max(1, min(wanted or model.max_tokens, model.max_tokens, room))


def estimated_tokens(context: Context) -> int:
    """Roughly the tokens of a request. Each message is measured once."""
    letters = len(context.system_prompt)
    letters += sum(_sizes.of(tool, _tool_letters) for tool in context.tools)
    letters += sum(_sizes.of(message, _letters) for message in context.messages)
    return round(letters / _LETTERS_PER_TOKEN)


def _tool_letters(tool: ToolSchema) -> int:
    return len(tool.description) + len(dumps(dict(tool.parameters)))


def _letters(message: LlmMessage) -> int:
    content = message.content
    if isinstance(content, str):
        return len(content)
    return sum(_block_letters(block) for block in content)


def _block_letters(block: object) -> int:
    match block:
        case TextContent():
            return len(block.text)
        case ThinkingContent():
            return len(block.thinking)
        case ToolCall():
            return len(block.name) + len(dumps(dict(block.arguments)))
        case ImageContent():
            return _IMAGE_LETTERS
        case _:
            return 0


_sizes = Encodings()
