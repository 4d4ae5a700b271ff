"""How large a context is, in tokens.

One rule for all roles: a token for each four characters, rounded up block by block, a little
for each block and each message, and a fixed price for an image. Providers count better: the
last usage that one told of this context is taken, and estimates are for what came after it.
"""

from __future__ import annotations

from collections.abc import Iterable

from pi_trio import codec
from pi_trio.loop.convert import convert_message
from pi_trio.messages import (
    AgentMessage,
    AssistantMessage,
    Content,
    ImageContent,
    OpaqueContent,
    SystemMessage,
    TextContent,
    ThinkingContent,
    ToolCall,
)
from pi_trio.session.session import Session

__all__ = ["Meter", "estimate", "estimate_all", "estimate_text", "estimated", "measure", "told_size"]

CHARS_PER_TOKEN = 4
PER_BLOCK = 4
PER_MESSAGE = 4
PER_IMAGE = 1_200


# ------------------------------------------------------------------ the estimate


def estimate_text(text: str) -> int:
    """The tokens of bare text."""
    return -(-len(text) // CHARS_PER_TOKEN)


def estimate(message: AgentMessage) -> int:
    """The tokens of a message in the form that models know; 0 for one that they never see."""
    converted = convert_message(message)
    if converted is None:
        return 0
    if isinstance(converted, SystemMessage):
        return PER_MESSAGE + sum(PER_BLOCK + estimate_text(text) for text in _system_texts(converted))
    content = converted.content
    blocks = (TextContent(content),) if isinstance(content, str) else content
    return PER_MESSAGE + sum(PER_BLOCK + _block(block) for block in blocks)


def estimate_all(messages: Iterable[AgentMessage]) -> int:
    """The tokens of several messages."""
    return sum(map(estimate, messages))


def _block(block: Content) -> int:
    match block:
        case TextContent(text=text):
            return estimate_text(text)
        case ThinkingContent(thinking=text, thinking_signature=signature):
            return estimate_text(text if text or not signature else signature)
        case ToolCall(name=name, arguments=arguments):
            return estimate_text(name) + _json(dict(arguments))
        case ImageContent():
            return PER_IMAGE
        case OpaqueContent(extra=extra):
            return _json(dict(extra))


def _json(data: object) -> int:
    return -(-len(codec.dumps(data)) // CHARS_PER_TOKEN)


def _system_texts(message: SystemMessage) -> Iterable[str]:
    content = message.content
    yield from (content,) if isinstance(content, str) else (block.text for block in content)
    yield from (text for text in (message.sections or {}).values() if text)
    for tool in message.tools_added or ():
        yield codec.dumps(codec.to_json(tool)).decode()


# ------------------------------------------------------------------ what providers tell


def told_size(message: AgentMessage) -> int | None:
    """The size of the context that ends with this answer, as its provider told it.

    None for everything else, for failed and aborted answers, whose usage is partial, and for
    a usage that does not know what was sent.
    """
    if not isinstance(message, AssistantMessage) or message.stop_reason in ("error", "aborted"):
        return None
    usage = message.usage
    sent = usage.input + usage.cache_read + usage.cache_write
    return max(usage.total_tokens, sent + usage.output) if sent > 0 else None


# ------------------------------------------------------------------ the meter


class Meter:
    """The size of a context that grows. Adding costs what is added, whatever came before.

    It starts with an estimate of `messages`: usage that they tell was measured in another
    context, since a summary or an edit came after it.
    """

    def __init__(self, system: SystemMessage | None = None, messages: Iterable[AgentMessage] = ()) -> None:
        self._size = (0 if system is None else estimate(system)) + estimate_all(messages)
        self._measured = False

    @property
    def size(self) -> int:
        """Tokens."""
        return self._size

    @property
    def measured(self) -> bool:
        """Whether a provider has told the size of this context, the last messages excepted."""
        return self._measured

    def add(self, message: AgentMessage) -> None:
        """The next message; an answer that tells its usage is a new base."""
        told = told_size(message)
        if told is None:
            self._size += estimate(message)
        else:
            self._size, self._measured = told, True


def measure(session: Session) -> Meter:
    """A meter of the session's context as it is now.

    Reads back to the last usage; a summary or an edit on the way makes it estimate everything.
    """
    later: list[AgentMessage] = []
    for head in session.tree.up(session.get_leaf_id()):
        if head.type in ("compaction", "context_edit"):
            break
        for message in reversed(tuple(session.speech.said(head))):
            later.append(message)
            if told_size(message) is not None:
                return _followed(Meter(), reversed(later))
    return estimated(session)


def estimated(session: Session) -> Meter:
    """The same by estimate alone: to compare a context with what it was before a rewrite."""
    context = session.build_context()
    return Meter(context.system_message, context.messages)


def _followed(meter: Meter, messages: Iterable[AgentMessage]) -> Meter:
    for message in messages:
        meter.add(message)
    return meter
