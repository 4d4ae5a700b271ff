"""Recordings read through a decoder, without a network: whole, byte by byte, or cut anywhere."""

from __future__ import annotations

import contextlib
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import trio
from httpx_sse import EventSource

from pi_trio.llm.dialect import Decoder
from pi_trio.llm.loose import CutShortError
from pi_trio.llm.protocol import (
    Done,
    Failed,
    TextDelta,
    TextEnd,
    ThinkingDelta,
    ThinkingEnd,
    ToolCallDelta,
    ToolCallEnd,
)
from pi_trio.messages import TextContent, ThinkingContent


def cut(body: bytes, places: Iterable[int]) -> Iterator[bytes]:
    """The body in pieces that end at the places."""
    bounds = sorted({place % (len(body) + 1) for place in places} | {0, len(body)})
    return (body[start:end] for start, end in pairwise(bounds))


async def decoded(pieces: Iterable[bytes], decoder: Decoder) -> list[Any]:
    """The events of an answer that arrives in these pieces."""

    class Pieces(httpx.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            for piece in pieces:
                yield piece
            yield b"\n\n"

    body = httpx.Response(
        200, headers={"content-type": "text/event-stream; charset=utf-8-sig"}, stream=Pieces()
    )
    events = [event async for event in EventSource(body).aiter_sse()]
    with contextlib.suppress(CutShortError):
        for event in events:
            if event.data and not decoder.ended:
                decoder.feed(event.event, event.data)
    if not decoder.ended:
        decoder.finish()
    return decoder.take()


def replay(size: int | None) -> Callable[[Any, Any], Awaitable[None]]:
    """The answer of a server that sends the file which the request names, in pieces of `size` bytes."""

    async def answer(request: Any, reply: Any) -> None:
        body = await trio.Path(request.headers["x-recording"]).read_bytes()
        await reply.begin()
        places = range(0, len(body), size or len(body))
        await reply.stream.send_all(b"".join(b"%x\r\n%b\r\n" % (len(p), p) for p in cut(body, places)))
        await reply.end()

    return answer


def read_as(events: list[Any]) -> dict[str, Any]:
    """What an answer says, in the terms of a recording's expectations."""
    last = events[-1]
    message = last.message
    return {
        "text": "".join(block.text for block in message.content if isinstance(block, TextContent)),
        "thinking": "".join(
            block.thinking for block in message.content if isinstance(block, ThinkingContent)
        ),
        "tool_calls": [(call.name, call.arguments) for call in message.tool_calls],
        "stop_reason": message.raw_stop_reason,
        "id": message.response_id,
        "model": message.response_model,
        "complete": isinstance(last, Done),
        "streamed": streamed(events),
        "last_events": [isinstance(event, (Done, Failed)) for event in events].count(True),
    }


def streamed(events: list[Any]) -> bool:
    """Whether the deltas of every closed block join to what its end says."""
    joined: defaultdict[int, str] = defaultdict(str)
    right = []
    for event in events:
        if isinstance(event, (TextDelta, ThinkingDelta, ToolCallDelta)):
            joined[event.content_index] += event.delta
        elif isinstance(event, (TextEnd, ThinkingEnd)):
            right.append(joined[event.content_index] == event.content)
        elif isinstance(event, ToolCallEnd) and event.tool_call.arguments_error is None:
            right.append(json.loads(joined[event.content_index] or "{}") == event.tool_call.arguments)
    return all(right)


def wanted(expected: dict[str, Any], *, complete: bool) -> dict[str, Any]:
    """What a careful reader takes from the recording."""
    return {
        "text": expected["text"],
        "thinking": expected["thinking"],
        "tool_calls": [(call["name"], call["arguments"] or {}) for call in expected["tool_calls"]],
        "stop_reason": expected["stop_reason"],
        "id": expected["id"],
        "model": expected["model"],
        "complete": complete,
        "streamed": True,
        "last_events": 1,
    }


def recordings(shared: Path, folder: str, constructed: str) -> list[tuple[Path, dict[str, Any]]]:
    """The recordings of a dialect and what is expected of them."""
    files = sorted((shared / "wire" / folder).glob("*.sse"))
    files += sorted((shared / "wire" / "constructed").glob(f"{constructed}.*.sse"))
    return [(path, json.loads(path.with_suffix(".expected.json").read_bytes())) for path in files]
