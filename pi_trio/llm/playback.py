"""Streams that no network feeds: a script says what comes, and when."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import TypeAlias

import trio

from pi_trio.llm.protocol import StreamEvent, StreamEvents

__all__ = ["Beat", "Playback"]

Beat: TypeAlias = "float | Sequence[StreamEvent]"
"""A pause in seconds (infinity hangs), or events that arrive together."""


class Playback:
    """A stream of `beats`, as an async context manager like any other stream.

    An exception raised by the iterable reaches the reader. A cancelled read loses only the
    rest of the pause it was in.
    """

    def __init__(self, beats: Iterable[Beat]) -> None:
        self._channel = _Beats(beats)

    async def __aenter__(self) -> StreamEvents:
        return StreamEvents(self._channel)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._channel.aclose()


class _Beats(trio.abc.ReceiveChannel[Sequence[StreamEvent]]):
    def __init__(self, beats: Iterable[Beat]) -> None:
        self._beats = iter(beats)

    async def receive(self) -> Sequence[StreamEvent]:
        await trio.lowlevel.checkpoint()
        for beat in self._beats:
            if not isinstance(beat, (int, float)):
                return beat
            await trio.sleep(beat)
        raise trio.EndOfChannel

    async def aclose(self) -> None:
        self._beats = iter(())
