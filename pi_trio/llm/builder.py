"""From a dialect's pieces to events, building the authoritative answer on the way."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from typing import Any

from attrs import define, evolve, field

from pi_trio.codec import loads
from pi_trio.llm.protocol import (
    Done,
    Failed,
    Failure,
    StreamEvent,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from pi_trio.messages import (
    AssistantContent,
    AssistantMessage,
    StopReason,
    TextContent,
    ThinkingContent,
    ToolCall,
    Usage,
)
from pi_trio.surrogates import mend, mend_text

__all__ = ["AnswerBuilder", "parse_arguments"]


@define
class _Prose:
    """A block of text or thinking, as pieces."""

    index: int
    pieces: list[str] = field(factory=list)
    signature: str | None = None


class _Text(_Prose):
    pass


@define
class _Thinking(_Prose):
    redacted: bool | None = None


@define
class _Call:
    index: int
    id: str = ""
    name: str = ""
    signature: str | None = None
    started: bool = False
    pieces: list[str] = field(factory=list)
    whole: ToolCall | None = None


class AnswerBuilder:
    """Takes the pieces of one answer and queues the events they cause.

    A text or thinking block ends where another kind of block begins, or where `end_block` says
    so; tool calls, told apart by a key of the dialect's choice, may interleave and end with
    `end_call` or with the answer. `base` says who was asked. Half of a surrogate pair waits for
    its other half; one that stays alone becomes U+FFFD, since no later request could carry it.
    """

    def __init__(self, base: AssistantMessage) -> None:
        self.usage: Usage = Usage()
        self.response_id: str | None = None
        self.response_model: str | None = None
        self.end_turn: bool | None = None
        self.ended: bool = False
        self._base = base
        self._events: list[StreamEvent] = []
        self._blocks: list[_Text | _Thinking | _Call] = []
        self._open: _Text | _Thinking | None = None
        self._calls: dict[Hashable, _Call] = {}
        self._half = ""
        self._started = False

    # ---- pieces

    def start(self) -> None:
        """The provider has begun to answer; more than once is the same as once."""
        if not self._started:
            self._started = True
            self._events.append(StreamStart())

    def text(self, delta: str, signature: str | None = None) -> int:
        """More visible text. The last `signature` of a block is kept with it. Returns its index."""
        block = self._open
        return self._extend(
            block if type(block) is _Text else self._begin_text(), TextDelta, delta, signature
        )

    def thinking(self, delta: str, signature: str | None = None) -> int:
        """More thinking. The last `signature` of a block is kept with it. Returns its index."""
        block = self._open
        return self._extend(
            block if type(block) is _Thinking else self._begin_thinking(), ThinkingDelta, delta, signature
        )

    def sign(self, index: int, signature: str) -> None:
        """Keep `signature` with the block at `index`, which may have ended long ago."""
        self._blocks[index].signature = signature

    def redacted_thinking(self, data: str) -> None:
        """A whole block of thinking that only its model can read."""
        self.end_block()
        block = self._begin_thinking()
        block.signature, block.redacted = data, True
        self.end_block()

    def tool_call(
        self,
        key: Hashable,
        call_id: str = "",
        name: str = "",
        arguments: str = "",
        signature: str | None = None,
    ) -> None:
        """More of the call `key`. Its name may come in pieces until its arguments begin."""
        call = self._calls.get(key)
        if call is None:
            self.end_block()
            call = self._calls[key] = _Call(len(self._blocks), signature=signature)
            self._blocks.append(call)
        if not call.started:
            call.id = call.id or call_id
            if name != call.name:  # some servers repeat the whole name
                call.name += name
        if arguments:
            self._start_call(call)
            call.pieces.append(arguments)
            shown = arguments if arguments.isascii() else mend_text(arguments)
            self._events.append(ToolCallDelta(call.index, shown))

    def end_block(self) -> None:
        """The open block of text or thinking, if there is one, is whole."""
        block = self._open
        if block is None:
            return
        if self._half:  # its other half will not come
            self._half = ""
            (self.text if isinstance(block, _Text) else self.thinking)("\ufffd")
        self._open = None
        whole = "".join(block.pieces)
        block.pieces = [whole]
        end = TextEnd if isinstance(block, _Text) else ThinkingEnd
        self._events.append(end(block.index, whole))

    def end_call(self, key: Hashable) -> None:
        """The arguments of the call `key` are whole."""
        self._close_call(self._calls[key])

    @property
    def has_calls(self) -> bool:
        """Whether a tool call has begun."""
        return bool(self._calls)

    @property
    def empty(self) -> bool:
        """Whether no block has begun."""
        return not self._blocks

    # ---- the end

    def done(self, stop_reason: StopReason, raw_stop_reason: str | None = None) -> None:
        """The answer is complete."""
        self.end_block()
        content = [self._closed(block) for block in self._blocks]
        self._finish(Done(self._message(content, stop_reason, raw_stop_reason)))

    def failed(self, failure: Failure, raw_stop_reason: str | None = None) -> None:
        """The answer broke off. Calls that had begun are left out: nothing may run them."""
        self.end_block()
        content = [_prose(each) for each in self._blocks if not isinstance(each, _Call)]
        message = evolve(self._message(content, "error", raw_stop_reason), error_message=failure.message)
        self._finish(Failed(failure, message))

    def take(self) -> list[StreamEvent]:
        """The events since the last call."""
        events, self._events = self._events, []
        return events

    # ---- inside

    def _extend(
        self,
        block: _Text | _Thinking,
        kind: type[TextDelta] | type[ThinkingDelta],
        delta: str,
        signature: str | None,
    ) -> int:
        if signature is not None:
            block.signature = signature
        if self._half or not delta.isascii():
            delta = self._mended(delta)
        if delta:
            block.pieces.append(delta)
            self._events.append(kind(block.index, delta))
        return block.index

    def _begin_text(self) -> _Text:
        self.end_block()
        block = self._open = _Text(len(self._blocks))
        self._blocks.append(block)
        self._events.append(TextStart(block.index))
        return block

    def _begin_thinking(self) -> _Thinking:
        self.end_block()
        block = self._open = _Thinking(len(self._blocks))
        self._blocks.append(block)
        self._events.append(ThinkingStart(block.index))
        return block

    def _start_call(self, call: _Call) -> None:
        if not call.started:
            call.started = True
            self._events.append(ToolCallStart(call.index, call.id, call.name))

    def _closed(self, block: _Text | _Thinking | _Call) -> AssistantContent:
        return self._close_call(block) if isinstance(block, _Call) else _prose(block)

    def _close_call(self, call: _Call) -> ToolCall:
        if call.whole is None:
            self._start_call(call)
            arguments, error = parse_arguments("".join(call.pieces))
            call.whole = ToolCall(call.id, call.name, arguments, call.signature, arguments_error=error)
            self._events.append(ToolCallEnd(call.index, call.whole))
        return call.whole

    def _message(
        self, content: Sequence[AssistantContent], stop_reason: StopReason, raw: str | None
    ) -> AssistantMessage:
        return evolve(
            self._base,
            content=content,
            stop_reason=stop_reason,
            raw_stop_reason=raw,
            end_turn=self.end_turn,
            response_id=self.response_id,
            response_model=self.response_model,
            usage=self.usage,
        )

    def _finish(self, event: Done | Failed) -> None:
        self.ended = True
        self._events.append(event)

    def _mended(self, delta: str) -> str:
        """The delta without lone surrogates; a first half at its end is kept for the next one."""
        delta, self._half = self._half + delta, ""
        if "\ud800" <= delta[-1:] <= "\udbff":
            delta, self._half = delta[:-1], delta[-1]
        return mend_text(delta)


def _prose(block: _Text | _Thinking) -> TextContent | ThinkingContent:
    text = "".join(block.pieces)
    if isinstance(block, _Thinking):
        return ThinkingContent(text, block.signature, block.redacted)
    return TextContent(text, block.signature)


# ------------------------------------------------------------------ arguments


_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_KINDS = {list: "a list", str: "text", bool: "a truth value", int: "a number", float: "a number"}


def parse_arguments(text: str) -> tuple[dict[str, Any], str | None]:
    """The arguments of a call, or `{}` and why they could not be read. No text means none."""
    if not text.strip():
        return {}, None
    try:
        value = loads(mend_text(text))
    except (ValueError, RecursionError) as error:
        return {}, f"The arguments are not valid JSON: {error}"
    if not isinstance(value, dict):
        return {}, f"The arguments must be a JSON object, not {_KINDS.get(type(value), 'null')}"
    return (mend(value) if _ESCAPED_SURROGATE.search(text) else value), None
