"""What every dialect shares: a request goes out, and a decoder turns its answer into events."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

import trio

from pi_trio.errors import ProviderError
from pi_trio.llm.protocol import Failure, StreamEvent, StreamEvents
from pi_trio.llm.sse import SseRequest, SseStream, open_sse

__all__ = ["Decoder", "stream_answer"]


class Decoder(Protocol):
    """A dialect's reading of one answer. Exactly one `Done` or `Failed` comes out of it."""

    @property
    def ended(self) -> bool:
        """Whether the last event has been made."""

    def feed(self, event: str, data: str) -> None:
        """Take in a server-sent event. Raises `ValueError` for what is not the dialect."""

    def finish(self) -> None:
        """The body has come to its end."""

    def fail(self, failure: Failure) -> None:
        """The request or the connection failed."""

    def take(self) -> list[StreamEvent]:
        """The events since the last call."""


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
        except trio.EndOfChannel:
            decoder.finish()
        except ProviderError as error:
            decoder.fail(error.failure)
        except (ValueError, RecursionError) as error:
            decoder.fail(Failure(f"The provider's answer cannot be read: {error}", "malformed_response"))

    async def aclose(self) -> None:
        await self._source.aclose()
