"""Any history, made into one that the model asked now accepts.

A conversation may have been begun with another provider, broken off by an abort, edited or
imported. What only its author can read (thinking, signatures, blocks of its own) goes to no
other model; ids of calls take the form that the provider allows; each call is followed by its
one result. Messages that fit are handed on as the same objects, so that what a dialect made
of them before is still good.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TypeVar

import attrs
from attrs import frozen

from pi_trio.llm.encoded import Encodings
from pi_trio.llm.protocol import Model
from pi_trio.messages import (
    AssistantContent,
    AssistantMessage,
    ImageContent,
    LlmMessage,
    OpaqueContent,
    SystemMessage,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserContent,
    UserMessage,
    text_of,
)

__all__ = ["CallIds", "Order", "Reader", "hand_over"]

M = TypeVar("M", UserMessage, ToolResultMessage)

_NO_EYES = "(image omitted: model does not support images)"
_NO_EYES_FOR_TOOLS = "(tool image omitted: model does not support images)"


@frozen
class CallIds:
    """The ids of tool calls that a provider takes.

    One that fits is kept, any other is replaced by a digest of `length` letters after
    `prefix`: the same for a call and its result, and in every request.
    """

    allowed: re.Pattern[str]
    prefix: str = "call_"
    length: int = 32

    def fit(self, call_id: str) -> str:
        """The id as the provider takes it."""
        if self.allowed.fullmatch(call_id):
            return call_id
        digest = hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()
        return self.prefix + digest[: self.length]


@frozen
class Reader:
    """The model that is asked now, as far as the form of a history depends on it."""

    provider: str
    api: str
    model: str
    images: bool
    call_ids: CallIds

    @classmethod
    def of(cls, model: Model, call_ids: CallIds) -> Reader:
        """The reader that `model` is."""
        return cls(model.provider, model.api, model.id, "image" in model.input, call_ids)

    def wrote(self, message: AssistantMessage) -> bool:
        """Whether this very model gave that answer."""
        return (message.provider, message.api, message.model) == (self.provider, self.api, self.model)


def hand_over(
    messages: Iterable[LlmMessage], reader: Reader, order: Order | None = None
) -> Iterator[LlmMessage]:
    """The history as `reader` accepts it.

    Failed answers, empty messages and results without a call are left out. Of an aborted
    answer the text stays. A call without a result gets one that says so, and system messages
    that stand between a call and its results follow them. An id that was used before, as by
    hosts that number the calls of each answer from 0, is replaced. `order` is what came of the
    messages before these, if they are not all.
    """
    changes = _changes.setdefault(reader, Encodings())
    change = partial(_change, reader)
    order = order or Order(reader.call_ids)
    for message in messages:
        changed = changes.of(message, change)
        kept = message if changed is None else changed.message
        if kept is not None:
            yield from order.take(kept)
    order.is_whole = not order.is_waiting
    yield from order.settle()


class Order:
    """Lets nothing come between calls and their results, and no id stand for two calls.

    `is_whole` tells that the messages ended where nothing had to be added: what follows them
    changes nothing of what was handed over.
    """

    def __init__(self, call_ids: CallIds) -> None:
        self.is_whole = True
        self._call_ids = call_ids
        self._times: Counter[str] = Counter()
        self._unanswered: list[tuple[str, ToolCall]] = []  # under the id that its result has
        self._held: list[LlmMessage] = []

    @property
    def is_waiting(self) -> bool:
        """Whether a call has no result yet, or a message waits for one."""
        return bool(self._unanswered or self._held)

    def copy(self) -> Order:
        """Another one in the same state, of one that is not waiting."""
        other = Order(self._call_ids)
        other._times = self._times.copy()
        return other

    def take(self, message: LlmMessage) -> Iterator[LlmMessage]:
        """What can be sent now that `message` has come."""
        if isinstance(message, ToolResultMessage):
            yield from self._result(message)
        elif isinstance(message, SystemMessage) and self._unanswered:
            self._held.append(message)
        else:
            yield from self.settle()
            yield self._answer(message) if isinstance(message, AssistantMessage) else message

    def settle(self) -> Iterator[LlmMessage]:
        """What must come before any other message."""
        for _, call in self._unanswered:
            missing = (TextContent("No result provided"),)
            yield ToolResultMessage(call.id, call.name, missing, is_error=True)
        yield from self._held
        self._unanswered, self._held = [], []

    def _result(self, message: ToolResultMessage) -> Iterator[ToolResultMessage]:
        found = next((pair for pair in self._unanswered if pair[0] == message.tool_call_id), None)
        if found is not None:
            self._unanswered.remove(found)
            call_id = found[1].id
            yield message if call_id == found[0] else attrs.evolve(message, tool_call_id=call_id)

    def _answer(self, message: AssistantMessage) -> AssistantMessage:
        calls = message.tool_calls
        sent = [self._distinct(call) for call in calls]
        self._unanswered = [(old.id, new) for old, new in zip(calls, sent, strict=True)]
        if all(new is old for old, new in zip(calls, sent, strict=True)):
            return message
        rest = iter(sent)
        content = [next(rest) if isinstance(block, ToolCall) else block for block in message.content]
        return attrs.evolve(message, content=content)

    def _distinct(self, call: ToolCall) -> ToolCall:
        self._times[call.id] += 1
        times = self._times[call.id]
        if times == 1:
            return call
        return attrs.evolve(call, id=self._call_ids.fit(f"{call.id}#{times}"))


# ------------------------------------------------------------------ one message


@frozen
class _Change:
    """What is sent instead of a message; None sends nothing."""

    message: LlmMessage | None


_changes: dict[Reader, Encodings] = {}
"""The changes by message, for each reader. They never hold the message itself."""


def _change(reader: Reader, message: LlmMessage) -> _Change | None:
    """What to do with a message; None hands it on as it is."""
    new = _adapted(message, reader)
    return None if new is message else _Change(new)


def _adapted(message: LlmMessage, reader: Reader) -> LlmMessage | None:
    match message:
        case SystemMessage():
            return message if text_of(message.content) else None
        case UserMessage():
            return _user(message, reader)
        case ToolResultMessage():
            return _result(message, reader)
        case AssistantMessage():
            return _answer(message, reader)


def _user(message: UserMessage, reader: Reader) -> UserMessage | None:
    if isinstance(message.content, str):
        return message if message.content else None
    blocks = tuple(_readable(message.content, reader, _NO_EYES))
    return _with_content(message, blocks) if blocks else None


def _result(message: ToolResultMessage, reader: Reader) -> ToolResultMessage:
    call_id = reader.call_ids.fit(message.tool_call_id)
    if call_id != message.tool_call_id:
        message = attrs.evolve(message, tool_call_id=call_id)
    if isinstance(message.content, str) and message.content:
        return message
    blocks = tuple(_readable(message.content, reader, _NO_EYES_FOR_TOOLS))
    if not text_of(blocks) and not any(isinstance(block, ImageContent) for block in blocks):
        blocks = (TextContent("(no output)"),)
    return _with_content(message, blocks)


def _readable(content: str | Iterable[UserContent], reader: Reader, note: str) -> Iterator[UserContent]:
    """Text and images; for a model without eyes, a note in the place of each row of images."""
    noted = False
    for block in () if isinstance(content, str) else content:
        image = isinstance(block, ImageContent)
        if isinstance(block, OpaqueContent):
            continue
        if not image or reader.images:
            yield block
        elif not noted:
            yield TextContent(note)
        noted = image


def _with_content(message: M, content: tuple[UserContent, ...]) -> M:
    """The message with this content; the same object if that is what it has."""
    return message if content == message.content else attrs.evolve(message, content=content)


def _answer(message: AssistantMessage, reader: Reader) -> AssistantMessage | None:
    if message.stop_reason == "error":
        return None
    content = tuple(_blocks(message, reader))
    if all(isinstance(block, ThinkingContent) for block in content):  # which is refused
        return None
    return message if content == message.content else attrs.evolve(message, content=content)


def _blocks(message: AssistantMessage, reader: Reader) -> Iterator[AssistantContent]:
    whole = message.stop_reason != "aborted"  # its calls never ran, its thinking was not signed
    own = whole and reader.wrote(message)
    for block in message.content:
        if isinstance(block, TextContent):
            if block.text.strip() or (own and block.text_signature):
                yield block if own else _unsigned_text(block)
        elif isinstance(block, ToolCall):
            if whole:
                yield _call(block, reader, own=own)
        elif own and not _is_hollow(block):
            yield block


def _unsigned_text(block: TextContent) -> TextContent:
    return block if block.text_signature is None else attrs.evolve(block, text_signature=None)


def _call(call: ToolCall, reader: Reader, *, own: bool) -> ToolCall:
    call_id = reader.call_ids.fit(call.id)
    signature = call.thought_signature if own else None
    if (call_id, signature) == (call.id, call.thought_signature):
        return call
    return attrs.evolve(call, id=call_id, thought_signature=signature)


def _is_hollow(block: AssistantContent) -> bool:
    return isinstance(block, ThinkingContent) and not block.thinking and not block.thinking_signature
