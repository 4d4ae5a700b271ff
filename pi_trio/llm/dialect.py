"""What every dialect shares: a request goes out, and a decoder turns its answer into events."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

import trio

from pi_trio import codec
from pi_trio.errors import ProviderError
from pi_trio.llm.builder import AnswerBuilder
from pi_trio.llm.failures import redact
from pi_trio.llm.loose import CutShortError
from pi_trio.llm.protocol import Failure, Model, StreamEvent, StreamEvents, StreamOptions
from pi_trio.llm.sse import ResponseHook, SseRequest, SseStream, open_sse
from pi_trio.messages import AssistantMessage

__all__ = ["Decoder", "bearer", "post", "stream_answer"]


class Decoder(ABC):
    """A dialect's reading of one answer. Exactly one `Done` or `Failed` comes out of it.

    `level` is how much thinking was asked for, in the provider's word.
    """

    def __init__(self, model: Model, options: StreamOptions, level: str | None) -> None:
        unanswered = AssistantMessage(
            (),
            model.api,
            model.provider,
            model.id,
            thinking_level=options.thinking_level,
            provider_thinking_level=level,
        )
        self._builder = AnswerBuilder(unanswered)
        self._rates = model.cost
        self._secret = options.api_key

    @property
    def ended(self) -> bool:
        """Whether the last event has been made."""
        return self._builder.ended

    def take(self) -> list[StreamEvent]:
        """The events since the last call."""
        return self._builder.take()

    @abstractmethod
    def feed(self, event: str, data: str) -> None:
        """Take in a server-sent event.

        Raises `CutShortError` for half of one, and `ValueError` for what is not the dialect.
        """

    @abstractmethod
    def finish(self) -> None:
        """The body has come to its end, perhaps in the middle of an event."""

    @abstractmethod
    def fail(self, failure: Failure) -> None:
        """The request or the connection failed."""

    def _break_off(self, failure: Failure, stop_reason: str | None) -> None:
        """The answer failed; no key is in what is told of it."""
        self._builder.failed(redact(failure, self._secret), stop_reason)


async def post(
    model: Model, options: StreamOptions, path: str, body: bytes, headers: Mapping[str, str]
) -> SseRequest:
    """The request for `body` at `path` under the model's address.

    The model's own headers and those of `options` win over the dialect's.
    """
    if options.on_payload is not None:
        changed = await options.on_payload(codec.loads(body), model)
        body = body if changed is None else codec.dumps(changed)
    merged = {"content-type": "application/json", "accept": "text/event-stream"}
    for more in (headers, model.headers or {}, options.headers or {}):
        merged.update({name.lower(): value for name, value in more.items()})
    url = f"{model.base_url.rstrip('/')}/{path}"
    if options.on_request is not None:
        options.on_request(url, merged, body)
    return SseRequest(
        url=url,
        headers=merged,
        body=body,
        idle_timeout=options.idle_timeout,
        proxy=options.proxy,
        on_response=_response_hook(model, options),
    )


def bearer(options: StreamOptions) -> dict[str, str]:
    """The key as most hosts want it; nothing for a host that wants none."""
    return {"authorization": f"Bearer {options.api_key}"} if options.api_key else {}


def _response_hook(model: Model, options: StreamOptions) -> ResponseHook | None:
    notify = options.on_response
    if notify is None:
        return None

    async def on_response(status: int, headers: Mapping[str, str]) -> None:
        await notify(status, headers, model)

    return on_response


@asynccontextmanager
async def stream_answer(request: SseRequest, decoder: Decoder) -> AsyncIterator[StreamEvents]:
    """Send `request` and yield what `decoder` makes of the answer."""
    async with open_sse(request) as source:
        yield StreamEvents(_Decoded(source, decoder))
        if decoder.ended:
            await source.wind_up()


class _Decoded(trio.abc.ReceiveChannel[Sequence[StreamEvent]]):
    def __init__(self, source: SseStream, decoder: Decoder) -> None:
        self._source = source
        self._decoder = decoder

    async def receive(self) -> Sequence[StreamEvent]:
        while not self._decoder.ended:
            await self._advance()
            if events := self._decoder.take():
                return events
        raise trio.EndOfChannel

    async def _advance(self) -> None:
        decoder = self._decoder
        try:
            for event in await self._source.receive():
                if decoder.ended:
                    return
                decoder.feed(event.event, event.data)
        except (trio.EndOfChannel, CutShortError):
            decoder.finish()
        except ProviderError as error:
            decoder.fail(error.failure)
        except (ValueError, RecursionError) as error:
            decoder.fail(Failure(f"The provider's answer cannot be read: {error}", "malformed_response"))

    async def aclose(self) -> None:
        await self._source.aclose()
