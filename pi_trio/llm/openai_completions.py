"""The Chat Completions dialect: OpenAI's, and that of the many hosts that speak it their own way."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

from attrs import evolve

from pi_trio import codec
from pi_trio.llm.dialect import Decoder, bearer, post, stream_answer
from pi_trio.llm.failures import error_failure
from pi_trio.llm.loose import count, get, load_chunk, objects
from pi_trio.llm.openai_request import REASONING_FIELDS, encode_request
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
from pi_trio.llm.thinking import provider_level
from pi_trio.messages import StopReason, Usage

__all__ = ["API", "ChunkDecoder", "stream"]

API = "openai-completions"


@asynccontextmanager
async def stream(model: Model, context: Context, options: StreamOptions) -> AsyncIterator[StreamEvents]:
    """Ask a Chat Completions host. See `StreamFunction`."""
    body = encode_request(model, context, options)
    request = await post(model, options, "chat/completions", body, bearer(options))
    async with stream_answer(request, ChunkDecoder(model, options)) as events:
        yield events


# ------------------------------------------------------------------ reading the stream


_STOP_REASONS: Mapping[str, StopReason] = {
    "stop": "stop",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "tool_calls": "toolUse",
    "function_call": "toolUse",
}
_FAILED_REASONS: Mapping[str, FailureCode] = {
    "content_filter": "content_filter",
    "sensitive": "content_filter",
    "model_context_window_exceeded": "context_overflow",
    "network_error": "transport",
    "insufficient_system_resource": "overloaded",
    "error": "server",
}


class ChunkDecoder(Decoder):
    """Reads one answer, chunk by chunk. Only the first choice is looked at.

    An answer is complete when a finish reason or the `[DONE]` mark has come. It is closed at
    the mark or at the end of the body, since figures and errors may follow the finish reason.
    """

    def __init__(self, model: Model, options: StreamOptions) -> None:
        super().__init__(model, options, provider_level(model, options.thinking_level))
        self._finish_reason: str | None = None
        self._call_ids: dict[int | None, str] = {}

    def feed(self, event: str, data: str) -> None:
        if data == "[DONE]":
            self._end(marked=True)
            return
        chunk = load_chunk(data)
        self._name(chunk)
        self._count(chunk.get("usage") or get(chunk.get("x_groq"), "usage"))
        if chunk.get("error") or event == "error":
            self.fail(error_failure(chunk))
            return
        for choice in objects(chunk.get("choices")):
            if not choice.get("index"):
                self._choice(choice)

    def finish(self) -> None:
        self._end(marked=False)

    def fail(self, failure: Failure) -> None:
        if self._finish_reason and failure.code in ("transport", "timeout"):
            self._end(marked=False)  # all that mattered had come
        else:
            self._break_off(failure, self._finish_reason)

    # ---- pieces

    def _name(self, chunk: Mapping[str, Any]) -> None:
        """Take note of who answers, which the first chunks may not tell or tell otherwise."""
        builder = self._builder
        builder.start()
        if not builder.response_id:
            builder.response_id = str(chunk.get("id") or "") or None
        model = chunk.get("model")
        if model and isinstance(model, str):
            builder.response_model = model

    def _choice(self, choice: Mapping[str, Any]) -> None:
        delta = choice.get("delta")
        if isinstance(delta, dict):
            self._delta(delta)
        if reason := choice.get("finish_reason"):
            self._finish_reason = str(reason)
        self._count(choice.get("usage"))

    def _delta(self, delta: Mapping[str, Any]) -> None:
        content = delta.get("content")
        for name in REASONING_FIELDS:
            if thinking := delta.get(name):  # hosts repeat the same words under a second name
                self._builder.thinking(str(thinking), name)
                break
        if content:
            if isinstance(content, str):
                self._builder.text(content)
            else:
                self._parts(content)
        if refusal := delta.get("refusal"):
            self._builder.text(str(refusal))
        for call in objects(delta.get("tool_calls")):
            self._call(call)

    def _parts(self, content: Any) -> None:
        """Content as a list of parts, which is how Mistral sends thinking."""
        for part in objects(content):
            if thinking := part.get("thinking"):
                self._builder.thinking(_joined(thinking))
            elif text := part.get("text"):
                self._builder.text(str(text))

    def _call(self, call: Mapping[str, Any]) -> None:
        function = call.get("function")
        function = function if isinstance(function, dict) else {}
        arguments = function.get("arguments") or ""
        if not isinstance(arguments, str):  # a few servers send the object itself
            arguments = codec.dumps(arguments).decode()
        index = call["index"] if isinstance(call.get("index"), int) else None
        call_id = self._call_id(index, call.get("id"))
        self._builder.tool_call((index, call_id), call_id, str(function.get("name") or ""), arguments)

    def _call_id(self, index: int | None, given: Any) -> str:
        """The id of the call that a piece belongs to.

        Pieces name their call by index; some servers leave it out, or number every call 0 and
        tell them apart by id alone. A call without an id gets one.
        """
        known = self._call_ids.get(index)
        if known is None or (given and str(given) != known):
            known = self._call_ids[index] = str(given or f"call_{uuid4().hex[:24]}")
        return known

    def _count(self, usage: Any) -> None:
        """Take the figures, wherever a host puts them: they are totals, so the last ones stand."""
        if usage and isinstance(usage, dict):
            self._builder.usage = _usage(usage, self._rates)

    # ---- the end

    def _end(self, *, marked: bool) -> None:
        reason = self._finish_reason
        if reason is not None and reason in _FAILED_REASONS:
            message = f"The provider ended the answer with the reason {reason}."
            self.fail(Failure(message, _FAILED_REASONS[reason]))
        elif reason is None and not marked:
            self.fail(Failure("The connection closed before the answer was complete.", "transport"))
        elif reason is None and self._builder.empty:
            self.fail(Failure("The provider sent an answer without content.", "empty_response"))
        else:
            self._builder.done(self._stop_reason(reason), reason)

    def _stop_reason(self, reason: str | None) -> StopReason:
        """What the answer means for the loop, where hosts say `stop` before calls or invent words."""
        stop = _STOP_REASONS.get(reason or "", "stop")
        if stop == "length":
            return stop
        return "toolUse" if self._builder.has_calls else "stop"


def _joined(thinking: Any) -> str:
    if isinstance(thinking, str):
        return thinking
    return "".join(str(part.get("text") or "") for part in objects(thinking))


# ------------------------------------------------------------------ usage


def _usage(raw: Mapping[str, Any], rates: ModelCost | None) -> Usage:
    """Usage in our terms: cached tokens apart from input, reasoning inside output."""
    prompt, completion = count(raw, "prompt_tokens"), count(raw, "completion_tokens")
    inputs, outputs = raw.get("prompt_tokens_details"), raw.get("completion_tokens_details")
    cached = (
        count(inputs, "cached_tokens")
        or count(raw, "prompt_cache_hit_tokens")  # DeepSeek
        or count(raw, "cached_tokens")  # Moonshot
    )
    written = count(inputs, "cache_write_tokens") or count(raw, "cache_creation_input_tokens")
    reasoning = count(outputs, "reasoning_tokens")
    if prompt + completion + reasoning == count(raw, "total_tokens"):
        completion += reasoning  # this host counts it apart
    usage = Usage(
        input=max(0, prompt - cached - written),
        output=completion,
        cache_read=cached,
        cache_write=written,
        reasoning=reasoning or None,
        total_tokens=max(prompt, cached + written) + completion,
    )
    return evolve(usage, cost=price(usage, rates, raw.get("cost")))
