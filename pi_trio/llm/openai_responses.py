"""The Responses dialect: OpenAI's, and that of hosts that took it over."""

from __future__ import annotations

from collections.abc import AsyncIterator, Hashable, Mapping
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

from attrs import define, evolve

from pi_trio import codec
from pi_trio.llm.dialect import Decoder, bearer, post, stream_answer
from pi_trio.llm.failures import error_failure
from pi_trio.llm.loose import count, get, load_chunk, objects, text
from pi_trio.llm.openai_responses_request import can_go_back, encode_request
from pi_trio.llm.pricing import price
from pi_trio.llm.protocol import (
    Context,
    Failure,
    Model,
    ModelCost,
    StreamEvents,
    StreamOptions,
)
from pi_trio.llm.thinking import provider_level
from pi_trio.messages import Usage

__all__ = ["API", "EventDecoder", "stream"]

API = "openai-responses"


@asynccontextmanager
async def stream(model: Model, context: Context, options: StreamOptions) -> AsyncIterator[StreamEvents]:
    """Ask a Responses host. See `StreamFunction`."""
    body = encode_request(model, context, options)
    request = await post(model, options, "responses", body, bearer(options))
    async with stream_answer(request, EventDecoder(model, options)) as events:
        yield events


# ------------------------------------------------------------------ reading the stream


@define
class _Item:
    """An item of the answer: the content block that it became, once it has, and what has come."""

    block: int | None = None
    part: Any = None
    streamed: bool = False


class EventDecoder(Decoder):
    """Reads one answer, event by event.

    An answer is complete when the provider says how the response ended. Events belong to
    items by their place in the answer: ids of items differ from event to event on some hosts.
    """

    def __init__(self, model: Model, options: StreamOptions) -> None:
        super().__init__(model, options, provider_level(model, options.thinking_level))
        self._items: dict[Hashable, _Item] = {}

    def feed(self, event: str, data: str) -> None:
        if data == "[DONE]":  # not of this dialect, but of some of its hosts
            return
        chunk = load_chunk(data)
        match text(chunk, "type") or event:
            case "response.output_text.delta" | "response.refusal.delta":
                self._text(chunk)
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                self._thinking(chunk)
            case "response.function_call_arguments.delta":
                self._arguments(chunk)
            case "response.output_item.added":
                self._item_begins(chunk)
            case "response.output_item.done":
                self._item_ends(chunk)
            case "response.created" | "response.in_progress":
                self._name(get(chunk, "response"))
            case "response.completed" | "response.incomplete":
                self._end(get(chunk, "response"))
            case "response.failed":
                self._name(get(chunk, "response"))
                self.fail(error_failure(get(chunk, "response")))
            case "error":
                self.fail(error_failure(chunk))

    def finish(self) -> None:
        self.fail(Failure("The connection closed before the answer was complete.", "transport"))

    def fail(self, failure: Failure) -> None:
        told = failure.code not in ("transport", "timeout")
        self._break_off(failure, "failed" if told else None)

    # ---- pieces

    def _name(self, response: Any) -> None:
        """Take note of who answers. The first id stands, the last model does."""
        builder = self._builder
        builder.start()
        builder.response_id = builder.response_id or text(response, "id") or None
        builder.response_model = text(response, "model") or builder.response_model

    def _text(self, chunk: Mapping[str, Any]) -> None:
        item = self._items.setdefault(_place(chunk), _Item())
        item.block, item.streamed = self._builder.text(text(chunk, "delta")), True

    def _thinking(self, chunk: Mapping[str, Any]) -> None:
        item = self._items.setdefault(_place(chunk), _Item())
        part = chunk.get("summary_index", chunk.get("content_index"))
        between = "\n\n" if item.streamed and part != item.part else ""
        item.block = self._builder.thinking(between + text(chunk, "delta"))
        item.part, item.streamed = part, True

    def _arguments(self, chunk: Mapping[str, Any]) -> None:
        item = self._items.get(_place(chunk))
        if item is not None:  # one that was never announced has no name yet: its end tells all
            item.streamed = True
            self._builder.tool_call(_place(chunk), arguments=text(chunk, "delta"))

    def _item_begins(self, chunk: Mapping[str, Any]) -> None:
        place, item = _place(chunk), get(chunk, "item")
        self._items[place] = _Item()
        self._builder.end_block()
        if text(item, "type") in ("function_call", "custom_tool_call"):
            self._builder.tool_call(place, _call_id(item), text(item, "name"))

    def _item_ends(self, chunk: Mapping[str, Any]) -> None:
        """An item is whole: add what was not streamed of it, and what is to go back with it."""
        place, item = _place(chunk), get(chunk, "item")
        known = self._items.setdefault(place, _Item())
        match text(item, "type"):
            case "message":
                self._message_ends(known, item)
            case "reasoning":
                self._reasoning_ends(known, item)
            case "function_call":
                self._call_ends(place, known, item, text(item, "arguments"))
            case "custom_tool_call":
                arguments = codec.dumps({"input": text(item, "input")}).decode()
                self._call_ends(place, known, item, arguments)

    def _message_ends(self, known: _Item, item: Any) -> None:
        if not known.streamed:
            whole = "".join(
                text(part, "text") or text(part, "refusal") for part in objects(get(item, "content"))
            )
            known.block = self._builder.text(whole) if whole else None
        if known.block is not None and text(item, "id"):
            signature = {"v": 1, "id": text(item, "id"), "phase": text(item, "phase") or None}
            told = {key: value for key, value in signature.items() if value}
            self._builder.sign(known.block, codec.dumps(told).decode())

    def _reasoning_ends(self, known: _Item, item: Any) -> None:
        """Reasoning that can be sent back is kept even if no word of it can be read."""
        if known.block is None:
            parts = objects(get(item, "summary")) or objects(get(item, "content"))
            whole = "\n\n".join(text(part, "text") for part in parts)
            if not whole and not can_go_back(item):
                return
            known.block = self._builder.thinking(whole)
        self._builder.sign(known.block, codec.dumps(item).decode())

    def _call_ends(self, place: Hashable, known: _Item, item: Any, arguments: str) -> None:
        missing = "" if known.streamed else arguments
        known.streamed = True
        self._builder.tool_call(place, _call_id(item), text(item, "name"), missing)
        self._builder.end_call(place)

    # ---- the end

    def _end(self, response: Any) -> None:
        self._name(response)
        status = text(response, "status") or "completed"
        self._builder.usage = _usage(get(response, "usage"), self._rates)
        if status != "incomplete":
            self._builder.done("toolUse" if self._builder.has_calls else "stop", status)
        elif text(get(response, "incomplete_details"), "reason") == "content_filter":
            self.fail(Failure("The provider's content filter ended the answer.", "content_filter"))
        else:
            self._builder.done("length", status)


def _place(chunk: Mapping[str, Any]) -> Hashable:
    """Which item an event is about: by its place, or by its id where a host tells no places."""
    index = chunk.get("output_index")
    if isinstance(index, int):
        return index
    return text(chunk, "item_id") or text(chunk.get("item"), "id")


def _call_id(item: Any) -> str:
    return text(item, "call_id") or f"call_{uuid4().hex[:24]}"


def _usage(raw: Any, rates: ModelCost | None) -> Usage:
    """Usage in our terms: cached tokens apart from input."""
    inputs = get(raw, "input_tokens_details")
    cached, written = count(inputs, "cached_tokens"), count(inputs, "cache_write_tokens")
    asked, answered = count(raw, "input_tokens"), count(raw, "output_tokens")
    usage = Usage(
        input=max(0, asked - cached - written),
        output=answered,
        cache_read=cached,
        cache_write=written,
        reasoning=count(get(raw, "output_tokens_details"), "reasoning_tokens") or None,
        total_tokens=max(asked, cached + written) + answered,
    )
    return evolve(usage, cost=price(usage, rates, get(raw, "cost")))
