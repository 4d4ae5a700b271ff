"""The Generative AI dialect: Google's Gemini and Gemma models."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

from attrs import evolve

from pi_trio import codec
from pi_trio.llm.dialect import Decoder, post, stream_answer
from pi_trio.llm.failures import error_failure
from pi_trio.llm.google_arguments import GrowingArguments
from pi_trio.llm.google_request import encode_request, sent_level
from pi_trio.llm.loose import count, get, load_chunk, objects, text
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

__all__ = ["API", "ResponseDecoder", "stream"]

API = "google-generative-ai"


@asynccontextmanager
async def stream(model: Model, context: Context, options: StreamOptions) -> AsyncIterator[StreamEvents]:
    """Ask a Gemini host. See `StreamFunction`."""
    body = encode_request(model, context, options)
    path = f"models/{model.id}:streamGenerateContent?alt=sse"
    headers = {"x-goog-api-key": options.api_key} if options.api_key else {}
    request = await post(model, options, path, body, headers)
    async with stream_answer(request, ResponseDecoder(model, options)) as events:
        yield events


# ------------------------------------------------------------------ reading the stream


_STOP_REASONS: Mapping[str, StopReason] = {"MAX_TOKENS": "length", "CONTINUATION": "length"}
_FILTERED = (
    "SAFETY",
    "RECITATION",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "LANGUAGE",
    "MODEL_ARMOR",
    "ESCALATION",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
)
_MALFORMED = ("MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS")
_UNEXPLAINED = ("OTHER", "IMAGE_OTHER", "NO_IMAGE", "FINISH_REASON_UNSPECIFIED")
_FAILED_REASONS: Mapping[str, FailureCode] = {
    **dict.fromkeys(_FILTERED, "content_filter"),
    **dict.fromkeys(_MALFORMED, "malformed_response"),
    **dict.fromkeys(_UNEXPLAINED, "server"),
    "MISSING_THOUGHT_SIGNATURE": "invalid_request",
    "PUP_LIMITED_DISABLED": "auth",
}


class ResponseDecoder(Decoder):
    """Reads one answer, response by response. Only the first candidate is looked at.

    An answer is complete when a finish reason has come, and closed at the end of the body,
    which no mark announces. Parts that the provider runs by itself (code, searches) are not
    part of the answer.
    """

    def __init__(self, model: Model, options: StreamOptions) -> None:
        super().__init__(model, options, sent_level(model, options))
        self._calls = 0
        self._growing: GrowingArguments | None = None
        self._finish_reason: str | None = None
        self._explanation = ""

    def feed(self, event: str, data: str) -> None:
        response = load_chunk(data)
        self._name(response)
        if usage := response.get("usageMetadata"):
            self._builder.usage = _usage(usage, self._rates)
        if response.get("error"):
            self.fail(error_failure(response))
            return
        if reason := text(response.get("promptFeedback"), "blockReason"):
            self.fail(
                Failure(f"The provider refused the request with the reason {reason}.", "content_filter")
            )
            return
        for candidate in objects(response.get("candidates")):
            if not candidate.get("index"):
                self._candidate(candidate)

    def finish(self) -> None:
        self._end()

    def fail(self, failure: Failure) -> None:
        if self._finish_reason is not None and failure.code in ("transport", "timeout"):
            self._end()  # all that mattered had come
        else:
            self._break_off(failure, self._finish_reason)

    # ---- pieces

    def _name(self, response: Mapping[str, Any]) -> None:
        builder = self._builder
        builder.start()
        builder.response_id = text(response, "responseId") or builder.response_id
        builder.response_model = text(response, "modelVersion") or builder.response_model

    def _candidate(self, candidate: Mapping[str, Any]) -> None:
        for part in objects(get(candidate.get("content"), "parts")):
            self._part(part)
        if reason := text(candidate, "finishReason"):
            self._finish_reason = reason
            self._explanation = text(candidate, "finishMessage")

    def _part(self, part: Mapping[str, Any]) -> None:
        """A part: text, a thought or a call, each of which may be signed, even where it is empty."""
        signature = text(part, "thoughtSignature") or None
        words = text(part, "text")
        if isinstance(call := part.get("functionCall"), dict):
            self._call(call, signature)
        elif part.get("thought"):
            if words or signature:
                self._builder.thinking(words, signature)
        elif words or (signature and "text" in part):
            self._builder.text(words, signature)

    def _call(self, call: Mapping[str, Any], signature: str | None) -> None:
        """A call, whole in one part, or in several of which all but the last say that more follows."""
        if self._growing is None:
            self._calls += 1
            call_id = text(call, "id") or f"call_{uuid4().hex[:24]}"
            self._builder.tool_call(self._calls, call_id, text(call, "name"), signature=signature)
            self._growing = GrowingArguments()
        growing = self._growing
        growing.update(call.get("args"))
        for piece in objects(call.get("partialArgs")):
            growing.put(text(piece, "jsonPath"), piece)
        if not call.get("willContinue"):
            self._end_call(codec.dumps(growing.value))

    def _end_call(self, arguments: bytes) -> None:
        self._builder.tool_call(self._calls, arguments=arguments.decode())
        self._builder.end_call(self._calls)
        self._growing = None

    # ---- the end

    def _end(self) -> None:
        reason = self._finish_reason
        if reason is None:
            self.fail(Failure("The connection closed before the answer was complete.", "transport"))
        elif reason in _FAILED_REASONS:
            message = self._explanation or f"The provider ended the answer with the reason {reason}."
            self.fail(Failure(message, _FAILED_REASONS[reason]))
        else:
            if self._growing is not None:  # it never said that this was all, so nothing may run it
                self._end_call(codec.dumps(self._growing.value)[:-1])
            natural: StopReason = "toolUse" if self._builder.has_calls else "stop"
            self._builder.done(_STOP_REASONS.get(reason, natural), reason)


def _usage(raw: Any, rates: ModelCost | None) -> Usage:
    """Usage in our terms: cached tokens apart from input, thinking inside output."""
    cached, thoughts = count(raw, "cachedContentTokenCount"), count(raw, "thoughtsTokenCount")
    prompt = count(raw, "promptTokenCount") + count(raw, "toolUsePromptTokenCount")
    output = count(raw, "candidatesTokenCount") + thoughts
    usage = Usage(
        input=max(0, prompt - cached),
        output=output,
        cache_read=cached,
        reasoning=thoughts or None,
        total_tokens=max(prompt, cached) + output,
    )
    return evolve(usage, cost=price(usage, rates))
