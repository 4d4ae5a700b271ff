"""The seam between the runtime and a model: what is asked, and what streams back.

A dialect (one file per `api`) offers a `StreamFunction`. Calling it gives an async context
manager; entering it yields a `StreamEvents` channel. The events are pi's: an optional
`start`, then block events that may interleave between blocks (told apart by
`content_index`), then exactly one `done` or `error`. A stream that ends without one is a
failure, never a success. Failures of the provider are values here, not exceptions.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

import trio
from attrs import define, field, frozen

from pi_trio.errors import UsageError
from pi_trio.messages import EMPTY, AgentMessage, AssistantMessage, LlmMessage, ToolCall, ToolSchema, as_tuple
from pi_trio.prefix import frozen_sequence

__all__ = [
    "CacheRetention",
    "Context",
    "Done",
    "Failed",
    "Failure",
    "FailureCode",
    "Model",
    "ModelCost",
    "StreamEvent",
    "StreamEvents",
    "StreamFunction",
    "StreamOptions",
    "StreamStart",
    "TextDelta",
    "TextEnd",
    "TextStart",
    "ThinkingDelta",
    "ThinkingEnd",
    "ThinkingLevel",
    "ThinkingStart",
    "ToolCallDelta",
    "ToolCallEnd",
    "ToolCallStart",
    "as_model",
]

ThinkingLevel: TypeAlias = Literal["off", "minimal", "low", "medium", "high", "xhigh", "max"]
CacheRetention: TypeAlias = Literal["none", "short", "long"]


# ------------------------------------------------------------------ what is asked


@frozen
class ModelCost:
    """Prices in US dollars for a million tokens."""

    input: float = 0.0
    output: float = 0.0
    cache_read: float = 0.0
    cache_write: float = 0.0
    extra: Mapping[str, Any] = field(default=EMPTY, kw_only=True, repr=False)


@frozen
class Model:
    """A model of a provider, with its limits in tokens. The fields are those of models.json.

    `cost` is None when the price is unknown, which is not the same as free.
    """

    id: str
    name: str = ""
    api: str = "unknown"
    provider: str = "unknown"
    base_url: str = ""
    reasoning: bool = False
    thinking_level_map: Mapping[str, str | None] | None = None
    input: tuple[str, ...] = ("text",)
    cost: ModelCost | None = None
    context_window: int = 128_000
    max_tokens: int = 16_384
    headers: Mapping[str, str] | None = None
    compat: Mapping[str, Any] | None = None
    extra: Mapping[str, Any] = field(default=EMPTY, kw_only=True, repr=False)

    @property
    def reference(self) -> str:
        """`provider/id`, as `--model` takes it."""
        return f"{self.provider}/{self.id}"


def as_model(model: object) -> Model:
    """The model given. Raises `UsageError` for what is none, such as the name of one."""
    if not isinstance(model, Model):
        raise UsageError(f"{model!r} is no Model: Models(…).get_model finds one by its name")
    return model


@frozen
class Context:
    """The conversation of one request. `tools` are those that the model may call."""

    system_prompt: str = ""
    messages: Sequence[LlmMessage] = field(default=(), converter=frozen_sequence)
    tools: tuple[ToolSchema, ...] = field(default=(), converter=as_tuple)


@frozen(kw_only=True)
class StreamOptions:
    """How one request is to be sent. Times are seconds.

    `idle_timeout` is how long the provider may send nothing, also before its first byte.
    Without a `proxy` (a URL) that of the environment is used, if there is one.
    `cache_retention` is how long the provider is to keep the prompt for later requests, where it
    wants to be told. `on_payload` may return another request body; `on_request` sees the address, the
    headers, with their secrets, and the body as they go out, `on_response` status and headers.
    """

    api_key: str | None = None
    thinking_level: ThinkingLevel = "off"
    thinking_budgets: Mapping[str, int] | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    session_id: str | None = None
    cache_retention: CacheRetention = "short"
    transport: str = "auto"
    headers: Mapping[str, str] | None = None
    idle_timeout: float = 300.0
    proxy: str | None = None
    on_payload: Callable[[dict[str, Any], Model], Awaitable[dict[str, Any] | None]] | None = None
    on_request: Callable[[str, Mapping[str, str], bytes], None] | None = None
    on_response: Callable[[int, Mapping[str, str], Model], Awaitable[None]] | None = None


# ------------------------------------------------------------------ what streams back


FailureCode: TypeAlias = Literal[
    "auth",
    "rate_limit",
    "quota",
    "overloaded",
    "server",
    "timeout",
    "transport",
    "invalid_request",
    "not_found",
    "context_overflow",
    "content_filter",
    "empty_response",
    "malformed_response",
    "configuration",
    "unknown",
]


@frozen
class Failure:
    """Why a request failed, told once. `retry_after` is the provider's wish in seconds.

    `message` is one sentence for a person and never holds a credential.
    """

    message: str
    code: FailureCode = "unknown"
    status: int | None = None
    retry_after: float | None = None
    request_id: str | None = None


@define
class StreamStart:
    """The provider has begun to answer."""

    type: ClassVar[str] = "start"


@define
class TextStart:
    """A text block begins."""

    type: ClassVar[str] = "text_start"
    content_index: int


@define
class TextDelta:
    """More text of a block."""

    type: ClassVar[str] = "text_delta"
    content_index: int
    delta: str


@define
class TextEnd:
    """A text block is whole."""

    type: ClassVar[str] = "text_end"
    content_index: int
    content: str


@define
class ThinkingStart:
    """A thinking block begins."""

    type: ClassVar[str] = "thinking_start"
    content_index: int


@define
class ThinkingDelta:
    """More thinking of a block."""

    type: ClassVar[str] = "thinking_delta"
    content_index: int
    delta: str


@define
class ThinkingEnd:
    """A thinking block is whole."""

    type: ClassVar[str] = "thinking_end"
    content_index: int
    content: str


@define
class ToolCallStart:
    """A tool call begins; its arguments follow as JSON text."""

    type: ClassVar[str] = "toolcall_start"
    content_index: int
    id: str
    tool_name: str


@define
class ToolCallDelta:
    """More of a call's arguments: a piece of JSON text."""

    type: ClassVar[str] = "toolcall_delta"
    content_index: int
    delta: str


@define
class ToolCallEnd:
    """A tool call is whole and its arguments are parsed (or `arguments_error` is set)."""

    type: ClassVar[str] = "toolcall_end"
    content_index: int
    tool_call: ToolCall


@define
class Done:
    """The answer is complete. `message` is the authoritative one."""

    type: ClassVar[str] = "done"
    message: AssistantMessage

    @property
    def reason(self) -> str:
        """`stop`, `length`, `toolUse` or `deferred`."""
        return self.message.stop_reason


@define
class Failed:
    """The request failed. `message` holds what had arrived, with stop reason `error`."""

    type: ClassVar[str] = "error"
    failure: Failure
    message: AssistantMessage


StreamEvent: TypeAlias = (
    StreamStart
    | TextStart
    | TextDelta
    | TextEnd
    | ThinkingStart
    | ThinkingDelta
    | ThinkingEnd
    | ToolCallStart
    | ToolCallDelta
    | ToolCallEnd
    | Done
    | Failed
)


class StreamEvents(trio.abc.ReceiveChannel[StreamEvent]):
    """The events of one stream, read one at a time from batches.

    A provider's bytes arrive in pieces that hold many events; waiting once for each piece
    instead of once for each event is what keeps a stream cheap. Reading is a checkpoint
    only when nothing is left of the last batch. A cancelled read loses nothing.
    """

    def __init__(self, batches: trio.abc.ReceiveChannel[Sequence[StreamEvent]]) -> None:
        self._batches = batches
        self._batch: Sequence[StreamEvent] = ()
        self._next = 0

    async def receive(self) -> StreamEvent:
        """The next event. Raises `trio.EndOfChannel` after the last one."""
        while self._next >= len(self._batch):
            self._batch = await self._batches.receive()
            self._next = 0
        event = self._batch[self._next]
        self._next += 1
        return event

    async def __anext__(self) -> StreamEvent:
        if self._next < len(self._batch):  # the fast path of a flood
            event = self._batch[self._next]
            self._next += 1
            return event
        try:
            return await self.receive()
        except trio.EndOfChannel:
            raise StopAsyncIteration from None

    def watched(self, look: Callable[[Sequence[StreamEvent]], None]) -> StreamEvents:
        """The same events; `look` sees each batch before it is read. Use only what this returns."""
        return StreamEvents(_Watched(self._batches, look))

    async def aclose(self) -> None:
        """Stop reading. The stream itself ends when its context manager is left."""
        await self._batches.aclose()


class _Watched(trio.abc.ReceiveChannel[Sequence[StreamEvent]]):
    def __init__(
        self,
        batches: trio.abc.ReceiveChannel[Sequence[StreamEvent]],
        look: Callable[[Sequence[StreamEvent]], None],
    ) -> None:
        self._batches = batches
        self._look = look

    async def receive(self) -> Sequence[StreamEvent]:
        batch = await self._batches.receive()
        self._look(batch)
        return batch

    async def aclose(self) -> None:
        await self._batches.aclose()


class StreamFunction(Protocol):
    """Opens one stream. Entering may raise `ConfigError`; a provider's failure is an event.

    Leaving the context early, by an exception or by cancellation, closes the connection.
    """

    def __call__(
        self, model: Model, context: Context, options: StreamOptions
    ) -> AbstractAsyncContextManager[StreamEvents]: ...


ConvertToLlm: TypeAlias = Callable[[Sequence[AgentMessage]], Awaitable[Sequence[LlmMessage]]]
