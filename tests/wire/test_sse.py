"""Reading an event stream from a real socket, and leaving it in every way there is."""

from __future__ import annotations

import contextlib
import gc
import socket
import zlib
from collections.abc import AsyncIterator

import pytest
import trio
import trio.testing

from pi_trio.errors import ConfigError, ProviderError
from pi_trio.llm import sse
from pi_trio.llm.sse import SseRequest, open_sse


def ask(server, **options) -> SseRequest:
    values = {"headers": {}, "body": b"{}", "idle_timeout": 5.0, **options}
    return SseRequest(url=f"{server.base_url}/events", **values)


async def drain(request: SseRequest) -> list[tuple[str, str]]:
    async with open_sse(request) as stream:
        return [(event.event, event.data) async for batch in stream for event in batch]


async def failure_of(request: SseRequest):
    with pytest.raises(ProviderError) as caught:
        await drain(request)
    return caught.value.failure


@pytest.fixture(autouse=True)
async def nothing_is_left_behind() -> AsyncIterator[None]:
    """A generator that was not closed would warn when it is collected."""
    yield
    gc.collect()


async def test_only_line_ends_of_the_protocol_end_a_line(serve) -> None:
    """ST-01: other line letters stay, and CRLF, CR and LF end lines, however the bytes are cut."""
    text = "a\u2028b\u0085c\x0bd"
    body = f"data: {text}\r\n\r\nevent: x\rdata: 1\rdata: 2\r\rdata: last\n\n".encode()

    async def answer(request, reply):
        await reply.begin()
        for number in range(len(body)):
            await reply.piece(body[number : number + 1])
        await reply.end()

    server = await serve(answer)
    assert await drain(ask(server)) == [("message", text), ("x", "1\n2"), ("message", "last")]


async def test_comments_and_empty_events_are_ignored(serve) -> None:
    """ST-02: keep-alive comments, `retry` lines and events without data are nothing to read."""

    async def answer(request, reply):
        await reply.whole(":\n: ping\n\nretry: 10\n\nid: 7\n\nevent: nothing\n\ndata: x\n\n")

    assert await drain(ask(await serve(answer))) == [("message", "x")]


async def test_last_event_needs_no_blank_line(serve) -> None:
    async def answer(request, reply):
        await reply.whole("data: a\n\ndata: b")

    assert [data for _, data in await drain(ask(await serve(answer)))] == ["a", "b"]


async def test_compressed_stream_is_read_as_it_comes(serve) -> None:
    """Each piece is flushed by the server, and shows before the next one is sent."""
    squeeze = zlib.compressobj(wbits=31)
    read_first = trio.Event()

    async def answer(request, reply):
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip\r\n"
        await reply.stream.send_all(head + b"transfer-encoding: chunked\r\n\r\n")
        await reply.piece(squeeze.compress(b"data: one\n\n") + squeeze.flush(zlib.Z_SYNC_FLUSH))
        await read_first.wait()
        await reply.piece(squeeze.compress("data: zwei — é\n\n".encode()) + squeeze.flush())
        await reply.end()

    async with open_sse(ask(await serve(answer))) as stream:
        first = await stream.receive()
        read_first.set()
        second = await stream.receive()
    assert [event.data for event in (*first, *second)] == ["one", "zwei — é"]


async def test_mark_of_the_byte_order_and_zero_bytes_are_no_trouble(serve) -> None:
    async def answer(request, reply):
        await reply.whole(b"\xef\xbb\xbfdata: a\x00b\n\n")

    assert await drain(ask(await serve(answer))) == [("message", "a\x00b")]


async def test_event_of_eight_megabytes_arrives_whole(serve) -> None:
    async def answer(request, reply):
        await reply.whole(b"data: " + b"x" * 8_000_000 + b"\n\n")

    [(_, data)] = await drain(ask(await serve(answer)))
    assert data == "x" * 8_000_000


async def test_silence_ends_the_stream_but_comments_do_not(serve) -> None:
    """ST-08: what counts is the time since the last byte, whatever the byte was for."""

    async def answer(request, reply):
        await reply.begin()
        for _ in range(6):
            await trio.sleep(0.1)
            await reply.piece(b": still here\n\n")
        await reply.piece(b"data: x\n\n")
        if request.body == b"hang":
            await trio.sleep_forever()
        await reply.end()

    server = await serve(answer)
    assert [data for _, data in await drain(ask(server, idle_timeout=0.3))] == ["x"]
    failure = await failure_of(ask(server, idle_timeout=0.3, body=b"hang"))
    assert failure.code == "timeout"


async def test_connect_that_never_completes_ends_at_its_own_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """ST-08: the limit for connecting is not the one for silence."""
    monkeypatch.setattr(sse, "CONNECT_TIMEOUT", 0.2)
    with socket.socket() as listener, contextlib.ExitStack() as waiting:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(8):  # nobody accepts: further connections are left unanswered
            client = waiting.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(listener.getsockname())
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        with trio.fail_after(5):
            failure = await failure_of(SseRequest(url=url, headers={}, body=b"", idle_timeout=60))
    assert failure.code == "timeout"
    assert "No connection" in failure.message


async def test_unreachable_host_is_a_transport_failure() -> None:
    with trio.socket.socket() as placeholder:
        await placeholder.bind(("127.0.0.1", 0))
        port = placeholder.getsockname()[1]
    request = SseRequest(url=f"http://127.0.0.1:{port}/", headers={}, body=b"", idle_timeout=5)
    failure = await failure_of(request)
    assert failure.code == "transport"
    assert str(port) in failure.message


@pytest.mark.parametrize("url", ["", "nonsense", "ftp://example.invalid/", "http://[::1/"])
async def test_unusable_address_is_a_configuration_failure(url: str) -> None:
    failure = await failure_of(SseRequest(url=url, headers={}, body=b"", idle_timeout=5))
    assert failure.code == "configuration"


async def test_connection_cut_in_the_middle_is_a_transport_failure(serve) -> None:
    async def answer(request, reply):
        await reply.begin()
        await reply.piece(b"data: a\n\ndata: b")
        await reply.cut()

    assert (await failure_of(ask(await serve(answer)))).code == "transport"


async def test_header_that_cannot_be_sent_is_refused_without_showing_it(serve) -> None:
    """PQ-08: a key with a line break never reaches the connection or the error."""

    async def answer(request, reply):
        await reply.whole("")

    server = await serve(answer)
    for bad in ("Bearer sk-te\nst", "Bearer sk-te\u2013st"):
        with pytest.raises(ConfigError, match="authorization") as caught:
            await drain(ask(server, headers={"authorization": bad}))
        assert "sk-te" not in str(caught.value)
    assert server.requests == []


async def endless(request, reply) -> None:
    await reply.begin()
    while True:
        await reply.piece(b"data: x\n\n" * 1000)


async def test_leaving_by_break_closes_the_connection(serve) -> None:
    server = await serve(endless)
    async with open_sse(ask(server)) as stream:
        async for _ in stream:
            break
    await server.none_open()


async def test_leaving_by_an_exception_raises_that_very_exception(serve) -> None:
    server = await serve(endless)
    error = KeyError("mine")

    async def raise_in_the_middle() -> None:
        async with open_sse(ask(server)) as stream:
            await stream.receive()
            raise error

    with pytest.raises(KeyError) as caught:
        await raise_in_the_middle()
    assert caught.value is error
    await server.none_open()


async def test_cancelling_arrives_as_a_plain_cancellation(serve) -> None:
    server = await serve(endless)
    seen: list[BaseException] = []
    with trio.CancelScope() as scope:
        try:
            async with open_sse(ask(server)) as stream:
                async for _ in stream:
                    scope.cancel()
        except BaseException as error:
            seen.append(error)
            raise
    assert [type(error) for error in seen] == [trio.Cancelled]
    await server.none_open()


async def test_slow_reader_holds_the_server_back(serve) -> None:
    """What is read ahead is bounded: the server's writes stop when nobody takes the events."""
    sent = 0

    async def answer(request, reply):
        nonlocal sent
        await reply.begin()
        while True:
            await reply.piece(b"data: " + b"x" * 60_000 + b"\n\n")
            sent += 60_000

    server = await serve(answer)
    async with open_sse(ask(server)):
        before = -1
        while sent != before:
            before = sent
            await trio.testing.wait_all_tasks_blocked(0.1)
        assert 0 < sent < 64_000_000
    await server.none_open()


async def test_two_hundred_aborts_leave_no_socket_open(serve) -> None:
    """ST-06: aborting in mid-stream, at any point, gives the connection back."""

    async def answer(request, reply):
        await reply.begin()
        for _ in range(20):
            await reply.piece(b"data: x\n\n")
        await reply.end()

    server = await serve(answer)
    for number in range(200):
        with trio.CancelScope() as scope:
            async with open_sse(ask(server)) as stream:
                for _ in range(number % 7):
                    await trio.lowlevel.checkpoint()
                if number % 3:
                    await stream.receive()
                scope.cancel()
                await trio.lowlevel.checkpoint()
    with trio.fail_after(1):
        while server.open_now > 2:
            await server.changed.wait()


async def test_connection_is_used_again_after_an_answer_was_read(serve) -> None:
    async def answer(request, reply):
        await reply.whole("data: x\n\n")

    server = await serve(answer)
    for _ in range(5):
        await drain(ask(server))
    assert (len(server.requests), server.connections) == (5, 1)
