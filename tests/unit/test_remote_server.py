"""The server's door and its limits: who gets in, what is refused, and that none of it slows the agent."""

from __future__ import annotations

import json
import resource
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from served import PORT, TOKEN, Seen, Served, served
from trio.testing import MockClock
from trio_websocket import ConnectionClosed, WebSocketConnection, wrap_client_stream
from wsproto.connection import Connection, ConnectionType
from wsproto.events import CloseConnection, Event, TextMessage

from pi_trio.errors import ConfigError, UsageError
from pi_trio.events import AgentEvent, AgentStart, MessageUpdate, TurnStart
from pi_trio.hub import Hub
from pi_trio.llm.partial import PartialMessage
from pi_trio.llm.protocol import TextDelta
from pi_trio.messages import AssistantMessage
from pi_trio.remote.access import PATH, checked_url, made_token, read_token
from pi_trio.remote.methods import METHODS
from pi_trio.remote.server import connection, server
from pi_trio.remote.server.door import HEAD_BYTES, Door, Refused, read_head
from pi_trio.remote.server.feed import Feed

pytestmark = pytest.mark.usefixtures("demo_in_a_hurry")

HOST = f"127.0.0.1:{PORT}"


def head(*headers: tuple[str, str], target: str = f"{PATH}?client=me", host: str | None = HOST) -> bytes:
    lines = [f"GET {target} HTTP/1.1", *([f"Host: {host}"] if host is not None else [])]
    return "\r\n".join([*lines, *(f"{name}: {value}" for name, value in headers), "", ""]).encode()


UPGRADE = (
    ("Upgrade", "websocket"),
    ("Connection", "Upgrade"),
    ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", "x3JJHMbDL1EzLkh9GBhXDw=="),
)
BEARER = ("Authorization", f"Bearer {TOKEN}")


# ------------------------------------------------------------------ who gets in


async def _answer(there: Served, request: bytes) -> tuple[int, str]:
    """What the server says to a request, in plain HTTP."""
    stream = await there.stream()
    await stream.send_all(request)
    said = b""
    while piece := await stream.receive_some():
        said += piece
        if said.startswith(b"HTTP/1.1 101 "):
            break
    headers, _, body = said.partition(b"\r\n\r\n")
    return int(headers.split()[1]), body.decode()


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (head(BEARER, *UPGRADE), 101),
        (head(BEARER, *UPGRADE, host=f"localhost:{PORT}"), 101),
        (head(BEARER, *UPGRADE, host=f"LOCALHOST:{PORT}"), 101),
        (head(BEARER, *UPGRADE, host=f"[::1]:{PORT}"), 101),
        (head(BEARER, *UPGRADE, ("Origin", f"http://{HOST}")), 101),
        (head(*UPGRADE), 401),  # SE-09 from here on
        (head(("Authorization", "Bearer wrong"), *UPGRADE), 401),
        (head(("Authorization", f"Basic {TOKEN}"), *UPGRADE), 401),
        (head(("Authorization", f"Bearer {TOKEN}x"), *UPGRADE), 401),
        (head(("Authorization", "Bearer "), *UPGRADE), 401),
        (head(("Authorization", "Bearer \xe9"), *UPGRADE), 401),
        (head(BEARER, BEARER, *UPGRADE), 401),
        (head(*UPGRADE, target=f"{PATH}?client=me&token={TOKEN}"), 401),
        (head(BEARER, *UPGRADE, ("Origin", "https://evil.invalid")), 403),
        (head(BEARER, *UPGRADE, ("Origin", "null")), 403),
        (head(BEARER, *UPGRADE, ("Origin", "http://localhost:3000")), 403),
        (head(BEARER, *UPGRADE, ("Origin", f"https://{HOST}")), 403),
        (head(BEARER, *UPGRADE, host=f"evil.invalid:{PORT}"), 403),  # SE-10 from here on
        (head(BEARER, *UPGRADE, host=f"localhost.:{PORT}"), 403),
        (head(BEARER, *UPGRADE, host=f"localhost:{PORT}.evil.invalid"), 403),
        (head(BEARER, *UPGRADE, host="127.0.0.1"), 403),
        (head(BEARER, *UPGRADE, host=f"127.0.0.1:{PORT + 1}"), 403),
        (head(BEARER, *UPGRADE, host="::1"), 403),
        (head(BEARER, *UPGRADE, host=""), 403),
        (head(BEARER, *UPGRADE, host=None), 400),
        (head(BEARER, *UPGRADE, ("Host", "evil.invalid")), 400),
        (b"GET /v1?client=me HTTP/1.0\r\n\r\n", 403),
        (head(BEARER, *UPGRADE, target="/v2?client=me"), 404),
        (head(BEARER, *UPGRADE, target=PATH), 400),
        (head(BEARER, *UPGRADE, target=f"{PATH}?client={'x' * 65}"), 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 nonsense\r\n\r\n", 400),
        (head(BEARER, ("X-Large", "x" * HEAD_BYTES)), 431),
    ],
)
async def test_only_with_the_token_and_by_a_name_of_ours(
    tmp_path: Path, request_bytes: bytes, status: int
) -> None:
    """SE-09, SE-10: everything else is refused before anything is done, and the token is told nowhere."""
    async with served(tmp_path, tcp=True) as there:
        found, reason = await _answer(there, request_bytes)
        assert found == status, reason
        assert bool(reason) == (status != 101)
        assert TOKEN not in "".join([reason, *there.told])


async def test_a_name_can_be_allowed() -> None:
    door = Door(token=TOKEN, port=443, names=["box.example"], encrypted=True)
    ours, theirs = trio.testing.memory_stream_pair()
    await ours.send_all(head(BEARER, host="BOX.example"))
    request, _ = await read_head(theirs)
    assert door.judge(request).client_id == "me"
    await ours.send_all(head(BEARER, host="other.example"))
    request, _ = await read_head(theirs)
    with pytest.raises(Refused, match="--allow-host"):
        door.judge(request)


def test_the_token_is_made_once_for_its_owner_only(tmp_path: Path) -> None:
    """SE-06, SE-09."""
    path = tmp_path / "agent" / "server-token"
    token = made_token(path)
    assert (made_token(path), read_token(path), len(token) >= 40) == (token, token, True)
    assert oct(path.stat().st_mode & 0o777) == "0o600"
    path.chmod(0o640)
    with pytest.raises(ConfigError, match="read by others"):
        read_token(path)
    path.chmod(0o600)
    path.write_text("short")
    with pytest.raises(ConfigError, match="no token"):
        made_token(path)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_token(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("ws://localhost", f"ws://localhost:{PORT}"),
        ("ws://[::1]:80/", "ws://[::1]:80"),
        ("wss://box.example", "wss://box.example:443"),
    ],
)
def test_an_address_is_completed(url: str, said: str) -> None:
    assert checked_url(url) == said


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost",
        "localhost",
        "ws://",
        "ws://localhost/../../x",
        "ws://localhost?token=x",
        "ws://me:secret@localhost",
        "ws://localhost:99999999",
        "ws://192.168.1.5:7717",
    ],
)
def test_an_address_that_is_none_or_not_safe_is_refused(url: str) -> None:
    """SE-05, SE-09."""
    with pytest.raises(UsageError):
        checked_url(url)


# ------------------------------------------------------------------ limits


class Raw:
    """A client that does only what a test says."""

    def __init__(self, there: Served, socket: WebSocketConnection) -> None:
        self.there, self.socket = there, socket

    @classmethod
    async def of(cls, there: Served, nursery: trio.Nursery, name: str = "raw") -> Raw:
        stream: Any = await there.stream()
        socket = await wrap_client_stream(
            nursery,
            stream,
            HOST,
            f"{PATH}?client={name}",
            extra_headers=[(b"Authorization", f"Bearer {TOKEN}".encode())],
            max_message_size=1 << 30,
        )
        raw = cls(there, socket)
        assert (await raw.read())["type"] == "welcome"
        return raw

    async def send(self, **message: Any) -> None:
        await self.socket.send_message(json.dumps(message))

    async def read(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(await self.socket.get_message())
        return message

    async def ask(self, **message: Any) -> dict[str, Any]:
        await self.send(**message)
        while (said := await self.read())["type"] != "response":
            pass
        return said

    async def closed(self) -> tuple[int, str]:
        """Read to the end: how it was closed."""
        try:
            while True:
                await self.socket.get_message()
        except ConnectionClosed:
            reason = self.socket.closed
        assert reason is not None
        return reason.code, str(reason.reason)


@pytest.fixture
def open_files() -> Iterator[int]:
    """How many files this process may have open, which are more for the time of the test."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    many = 4096 if before[1] == resource.RLIM_INFINITY else min(4096, before[1])
    resource.setrlimit(resource.RLIMIT_NOFILE, (many, before[1]))
    yield many
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


async def test_a_thousand_idle_connections_keep_nobody_out(
    tmp_path: Path, mock_clock: MockClock, open_files: int
) -> None:
    count = 1000 if open_files > 1500 else 300
    ended = 0

    async def read_to_its_end(stream: trio.abc.Stream) -> None:
        nonlocal ended
        assert await stream.receive_some() == b""
        ended += 1

    async with served(tmp_path, tcp=True) as there:
        async with trio.open_nursery() as nursery:
            for _ in range(count):
                nursery.start_soon(read_to_its_end, await there.stream())
            while ended < count - server.MAX_PENDING:
                await trio.lowlevel.checkpoint()
            assert there.server.pending == server.MAX_PENDING
            async with there.client() as remote:
                assert (await remote.runtime.new_session()).session.id
                assert ended < count
                mock_clock.jump(server.HANDSHAKE_SECONDS)
                mock_clock.rate = 1.0  # leaving takes a moment
        assert there.server.pending == 0


async def test_there_are_only_so_many_clients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MAX_CLIENTS", 2)
    async with served(tmp_path) as there, there.client():
        async with there.client():
            assert there.server.clients == 2
            status, reason = await _answer(there, head(BEARER, *UPGRADE))
            assert (status, reason) == (503, "2 clients are attached already\n")
        while there.server.clients == 2:
            await trio.lowlevel.checkpoint()
        async with there.client() as remote:
            assert await remote.sessions() == []


class Bare:
    """A client that does not even read unless a test says so. `connection` makes and reads the frames."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self.stream = stream
        self.connection = Connection(ConnectionType.CLIENT)

    @classmethod
    async def of(cls, there: Served) -> Bare:
        bare = cls(await there.stream())
        await bare.stream.send_all(head(BEARER, *UPGRADE))
        assert (await bare.stream.receive_some(1 << 16)).startswith(b"HTTP/1.1 101 ")
        return bare

    async def last(self) -> Event:
        """Read to the end: what came last."""
        with suppress(trio.BrokenResourceError):  # so it ends for who is still sending
            while data := await self.stream.receive_some():
                self.connection.receive_data(bytes(data))
        *_, last = self.connection.events()
        return last


async def test_a_message_of_a_hundred_megabytes_is_cut_short(tmp_path: Path) -> None:
    size, piece, sent = 100_000_000, b"x" * 100_000, 0

    async def send(stream: trio.abc.Stream) -> None:
        nonlocal sent
        await stream.send_all(b"\x81\xff" + size.to_bytes(8, "big") + b"\0\0\0\0")
        with suppress(trio.BrokenResourceError):
            while sent < size:
                await stream.send_all(piece)
                sent += len(piece)

    async with served(tmp_path, tcp=True) as there, trio.open_nursery() as nursery:
        bare = await Bare.of(there)
        nursery.start_soon(send, bare.stream)
        last = await bare.last()
        assert isinstance(last, CloseConnection)
        assert last.code == 1009
        assert str(server.MAX_MESSAGE) in str(last.reason)
        nursery.cancel_scope.cancel()
    assert sent < size


async def test_who_does_not_read_is_let_go_with_a_reason_and_the_agent_does_not_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mock_clock: MockClock
) -> None:
    """Patience lasts longer than the test, but for a jump at its end: the agent cannot have waited for it."""
    monkeypatch.setattr(connection, "PATIENCE_SECONDS", 1000.0)
    mock_clock.rate = 1.0
    async with served(tmp_path, tcp=True) as there, there.client() as remote:
        session_id = (await remote.runtime.new_session()).session.id
        seen, _ = await Seen.of(remote, session_id)
        bare = await Bare.of(there)
        subscribe = json.dumps({"id": 1, "type": "subscribe", "sessionId": session_id})
        await bare.stream.send_all(bare.connection.send(TextMessage(subscribe)))
        for count in range(1, 40):
            await remote.runtime.prompt(session_id, "hello")
            await seen.event("agent_settled", count)
        assert there.server.clients == 2
        assert not there.told
        mock_clock.jump(2000.0)
        last = await bare.last()
        assert last == CloseConnection(connection.SLOW_CODE, "nothing was read for 1000 seconds")
        told = "the connection of a client ended: nothing was read for 1000 seconds"
        while told not in there.told:  # a client may go before it: the jump is long for the other too
            await trio.lowlevel.checkpoint()


async def test_responses_that_nobody_reads_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "WAITING_REPLIES", 10)
    async with served(tmp_path) as there, trio.open_nursery() as nursery:
        raw = await Raw.of(there, nursery)
        with suppress(ConnectionClosed):
            while True:
                await raw.send(type="sessions")
        while not there.told:
            await trio.lowlevel.checkpoint()
        assert there.told == ["the connection of a client ended: 10 responses were not read"]
        nursery.cancel_scope.cancel()


# ------------------------------------------------------------------ the protocol


@pytest.mark.parametrize(
    ("message", "error"),
    [
        ("nonsense", "The message is not JSON"),
        ("[]", "not a JSON object"),
        ('{"id":1}', "There is no command None."),
        ('{"id":1,"type":5}', "There is no command 5."),
        ('{"id":1,"type":"fly"}', "There is no command 'fly'."),
        ('{"id":1,"type":"__init__"}', "There is no command '__init__'."),
        ('{"id":[],"type":"models"}', "`id` must be"),
        ('{"id":1,"type":"prompt","sessionId":"SESSION"}', "`text` is missing."),
        ('{"id":1,"type":"prompt","sessionId":"SESSION","text":5}', "`text`: must be a text."),
        ('{"id":1,"type":"prompt","sessionId":"SESSION","text":"","images":[{}]}', "`images`: ImageContent"),
        ('{"id":1,"type":"set_mode","sessionId":"SESSION","mode":"yolo"}', "`mode`: must be one of"),
        ('{"id":1,"type":"move_queued","sessionId":"SESSION","itemId":"","place":true}', "`place`: must be"),
        ('{"id":1,"type":"subscribe"}', "`sessionId` is missing."),
        ('{"id":1,"type":"snapshot","sessionId":"../../x"}', "x"),
    ],
)
async def test_what_is_wrong_with_a_message_is_told_and_the_connection_stays(
    tmp_path: Path, message: str, error: str
) -> None:
    """HL-06 for the server."""
    async with served(tmp_path) as there, trio.open_nursery() as nursery:
        raw = await Raw.of(there, nursery)
        session_id = (await raw.ask(id=0, type="new_session"))["data"]["session"]["id"]
        await raw.socket.send_message(message.replace("SESSION", session_id))
        said = await raw.read()
        assert (said["type"], said["success"]) == ("response", False)
        assert error in said["error"]
        assert (await raw.ask(id=2, type="sessions"))["success"]
        nursery.cancel_scope.cancel()


async def test_a_command_that_comes_twice_is_done_once(tmp_path: Path) -> None:
    async with served(tmp_path) as there, trio.open_nursery() as nursery:
        raw = await Raw.of(there, nursery)
        first = await raw.ask(id="a", type="new_session")
        again = await Raw.of(there, nursery)  # the same client by another connection
        assert await again.ask(id="a", type="new_session") == first
        assert len(there.runtime.open_sessions) == 1
        assert (await raw.closed())[0] == 1000
        nursery.cancel_scope.cancel()


def test_no_field_has_a_name_that_means_something_else() -> None:
    assert all({"id", "type"}.isdisjoint(method.parameters) for method in METHODS.values())


# ------------------------------------------------------------------ the feed


class Deltas:
    def __init__(self) -> None:
        self._partial = PartialMessage(AssistantMessage(()))

    def text(self, delta: str) -> AgentEvent:
        self._partial.apply(event := TextDelta(0, delta))
        return MessageUpdate(event, self._partial.view())


async def _fed(hub: Hub, feed: Feed, *events: AgentEvent) -> None:
    await hub.emit(*events)
    feed.seal()


def _new_feed(**limits: int) -> tuple[Hub, Feed]:
    hub, feed = Hub(lambda event: None), Feed("s", **limits)
    hub.attach(feed.outbox)
    return hub, feed


def _items(feed: Feed, seq: int, until: int | None = None) -> list[tuple[int, int]]:
    data, last = feed.after(seq, feed.last if until is None else until)
    items = json.loads(data)["events"] if data else []
    assert last == (items[-1]["seq"] if items else seq)
    return [(item.get("first", item["seq"]), item["seq"]) for item in items]


async def test_an_item_never_changes_once_it_may_have_been_seen() -> None:
    hub, feed = _new_feed()
    deltas = Deltas()
    await _fed(hub, feed, AgentStart(), deltas.text("a"), deltas.text("b"))
    await _fed(hub, feed, deltas.text("c"), TurnStart(), deltas.text("d"))
    assert _items(feed, 0) == [(1, 1), (2, 3), (4, 4), (5, 5), (6, 6)]
    assert _items(feed, 3) == [(4, 4), (5, 5), (6, 6)]
    assert _items(feed, 1, until=4) == [(2, 3), (4, 4)]


async def test_a_feed_is_bounded_and_says_what_it_does_not_reach() -> None:
    hub, feed = _new_feed(items=3)
    for _ in range(5):
        await _fed(hub, feed, TurnStart())
    assert [feed.reaches(feed.epoch, seq) for seq in range(7)] == [False] * 2 + [True] * 4 + [False]
    assert not feed.reaches("another", 4)
    hub, feed = _new_feed(size=1000)
    deltas = Deltas()
    for _ in range(10):
        await _fed(hub, feed, deltas.text("x" * 300), TurnStart())
    assert 0 < len(_items(feed, 18)) < 10
    assert not feed.reaches(feed.epoch, 0)


async def test_who_is_left_behind_is_told_of_a_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with served(tmp_path) as there, there.client() as remote:
        session_id = (await remote.runtime.new_session()).session.id
        seen, _ = await Seen.of(remote, session_id)
        there.server.sessions.feeds[session_id]._most = 2
        await remote.runtime.prompt(session_id, "hello")
        await remote.runtime.wait_for_idle(session_id)
        assert seen.gaps
        now = await remote.snapshot(session_id)
        assert now == await there.runtime.snapshot(session_id)
        assert not now.running
