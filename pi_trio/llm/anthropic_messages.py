"""The Messages dialect: Anthropic's, and that of the servers that imitate it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from attrs import evolve

from pi_trio import codec
from pi_trio.llm.anthropic_request import encode_request, headers_for, sent_level
from pi_trio.llm.dialect import Decoder, post, stream_answer
from pi_trio.llm.failures import error_failure
from pi_trio.llm.loose import count, get, load_chunk, text
from pi_trio.llm.pricing import price
from pi_trio.llm.protocol import (
    Context,
    Failure,
    FailureCode,
    Model,
    ModelCost,
    StreamEvents,
    StreamOptions,
)
from pi_trio.messages import StopReason, Usage

__all__ = ["API", "EventDecoder", "stream"]

API = "anthropic-messages"


@asynccontextmanager
async def stream(model: Model, context: Context, options: StreamOptions) -> AsyncIterator[StreamEvents]:
    """Ask a Messages host. See `StreamFunction`."""
    body = encode_request(model, context, options)
    path = "messages" if model.base_url.rstrip("/").endswith("/v1") else "v1/messages"
    request = await post(model, options, path, body, headers_for(model, options))
    async with stream_answer(request, EventDecoder(model, options)) as events:
        yield events


# ------------------------------------------------------------------ reading the stream


_STOP_REASONS: Mapping[str, StopReason] = {"max_tokens": "length"}
_FAILED_REASONS: Mapping[str, FailureCode] = {
    "refusal": "content_filter",
    "sensitive": "content_filter",
    "model_context_window_exceeded": "context_overflow",
}


class EventDecoder(Decoder):
    """Reads one answer, event by event.

    It is complete at `message_stop`, or when a stop reason has come before the body ends.
    Blocks that the provider runs by itself (searches, code) are not part of the answer.
    """

    def __init__(self, model: Model, options: StreamOptions) -> None:
        super().__init__(model, options, sent_level(model, options))
        self._usage: dict[str, Any] = {}
        self._calls: dict[int, object] = {}
        self._signature = ""
        self._stop_reason: str | None = None
        self._explanation = ""

    def feed(self, event: str, data: str) -> None:
        if data == "[DONE]":  # a mark of another dialect, which some gateways add
            return
        value = load_chunk(data)
        match value.get("type") or event:
            case "content_block_delta":
                self._delta(count(value, "index"), value.get("delta"))
            case "content_block_start":
                self._block(count(value, "index"), value.get("content_block"))
            case "content_block_stop":
                self._block_end(count(value, "index"))
            case "message_start":
                self._start(value.get("message"))
            case "message_delta":
                self._message(value)
            case "message_stop":
                self._end()
            case "error":
                self.fail(error_failure(value))
            case _:
                pass  # pings, and what later versions may add

    def finish(self) -> None:
        if self._stop_reason is not None:
            self._end()
        else:
            self.fail(Failure("The connection closed before the answer was complete.", "transport"))

    def fail(self, failure: Failure) -> None:
        if self._stop_reason is not None and failure.code in ("transport", "timeout"):
            self._end()  # all that mattered had come
        else:
            self._break_off(failure, self._stop_reason)

    # ---- the message

    def _start(self, message: Any) -> None:
        """The head of the answer, which some gateways send twice."""
        builder = self._builder
        builder.start()
        builder.response_id = text(message, "id") or builder.response_id
        builder.response_model = text(message, "model") or builder.response_model
        self._count(get(message, "usage"))

    def _message(self, value: Mapping[str, Any]) -> None:
        """The end of the answer: why it stopped, and what it took."""
        delta = value.get("delta")
        self._stop_reason = text(delta, "stop_reason") or self._stop_reason
        self._explanation = text(get(delta, "stop_details"), "explanation")
        self._count(value.get("usage"))

    def _count(self, usage: Any) -> None:
        """Take the figures: totals, of which later ones replace earlier ones where they are given."""
        if isinstance(usage, dict):
            self._usage.update({key: value for key, value in usage.items() if value is not None})
            self._builder.usage = _usage(self._usage, self._rates)

    # ---- its blocks

    def _block(self, index: int, block: Any) -> None:
        """A block begins; it may hold something already."""
        builder = self._builder
        builder.end_block()
        self._calls.pop(index, None)
        match text(block, "type"):
            case "text" if words := text(block, "text"):
                builder.text(words)
            case "thinking":
                self._signature = text(block, "signature")
                builder.thinking(text(block, "thinking"), self._signature or None)
            case "redacted_thinking":
                builder.redacted_thinking(text(block, "data"))
            case "tool_use":
                key = self._calls[index] = object()  # some servers give every block the same index
                builder.tool_call(key, text(block, "id"), text(block, "name"))
                if given := get(block, "input"):  # … or send the whole input at once
                    builder.tool_call(key, arguments=codec.dumps(given).decode())
            case _:
                pass

    def _delta(self, index: int, delta: Any) -> None:
        builder = self._builder
        match text(delta, "type"):
            case "text_delta":
                builder.text(text(delta, "text"))
            case "input_json_delta":
                if index in self._calls:
                    builder.tool_call(self._calls[index], arguments=text(delta, "partial_json"))
            case "thinking_delta":
                builder.thinking(text(delta, "thinking"))
            case "signature_delta":
                self._signature += text(delta, "signature")
                builder.thinking("", self._signature)
            case _:
                pass

    def _block_end(self, index: int) -> None:
        self._builder.end_block()
        if index in self._calls:
            self._builder.end_call(self._calls.pop(index))

    # ---- the end

    def _end(self) -> None:
        reason, builder = self._stop_reason, self._builder
        if reason is not None and reason in _FAILED_REASONS:
            message = self._explanation or f"The provider ended the answer with the reason {reason}."
            self.fail(Failure(message, _FAILED_REASONS[reason]))
        elif reason is None and builder.empty:
            self.fail(Failure("The provider sent an answer without content.", "empty_response"))
        else:
            if reason == "pause_turn":  # it wants to go on with what it runs by itself
                builder.end_turn = False
            natural: StopReason = "toolUse" if builder.has_calls else "stop"
            builder.done(_STOP_REASONS.get(reason or "", natural), reason)


def _usage(raw: Mapping[str, Any], rates: ModelCost | None) -> Usage:
    """Usage in our terms. Here input comes without cached tokens, and thinking is part of output."""
    new, output = count(raw, "input_tokens"), count(raw, "output_tokens")
    read, written = count(raw, "cache_read_input_tokens"), count(raw, "cache_creation_input_tokens")
    usage = Usage(
        input=new,
        output=output,
        cache_read=read,
        cache_write=written,
        cache_write_1h=count(raw.get("cache_creation"), "ephemeral_1h_input_tokens") or None,
        reasoning=count(raw.get("output_tokens_details"), "thinking_tokens") or None,
        total_tokens=new + output + read + written,
    )
    return evolve(usage, cost=price(usage, rates))
