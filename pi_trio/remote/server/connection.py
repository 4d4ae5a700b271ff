"""One connection of a client: commands come in, events and responses go out.

From time to time a ping goes out behind the rest, and nothing more until it is answered:
then the client has taken all before it. So what is under way has a bound, and a client that
takes nothing for a while is told so and let go.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import trio
from attrs import define, frozen
from trio_websocket import ConnectionClosed, WebSocketConnection

from pi_trio.codec import dumps, loads
from pi_trio.errors import PiError, UsageError
from pi_trio.nursery import plain_nursery
from pi_trio.remote.methods import METHODS, encode_snapshot
from pi_trio.remote.server.feed import FRAME_BYTES, Feed
from pi_trio.remote.server.peer import Peer, failure, success
from pi_trio.remote.server.sessions import Sessions
from pi_trio.remote.websocket import GOODBYE_SECONDS

__all__ = ["SLOW_CODE", "Connection"]

PATIENCE_SECONDS = 20.0
"""How long a client may take nothing, before it is let go."""
SLOWEST = 16 * 1024
"""Bytes a second that a connection must carry: a large message may take longer."""
WAITING_REPLIES = 1024
"""How many responses may wait to be sent; a client that asks for more without reading is let go."""
PING_SECONDS = 15.0
"""How often it is looked whether a silent client is still there."""
SLOW_CODE = 4008
"""What a connection is closed with whose client was too slow; the others are those of the protocol."""


@define
class _Watched:
    """A place in a feed: the client has all items up to `seq`. Further ones come when it was `told`."""

    feed: Feed
    seq: int
    told: bool = False


@frozen
class _Reply:
    """`marks` are the items that come before it; `then` is called when it was sent."""

    data: bytes
    marks: Mapping[str, int]
    then: Callable[[], None]


class Connection:
    """`reason` says why it ended, for the person who looks after the server."""

    def __init__(self, socket: WebSocketConnection, peer: Peer, sessions: Sessions) -> None:
        self.reason: str = ""
        self._socket = socket
        self._peer = peer
        self._sessions = sessions
        self._watched: dict[str, _Watched] = {}
        self._replies: deque[_Reply] = deque()
        self._news = trio.Event()
        self._scope = trio.CancelScope()

    async def serve(self, greeting: Mapping[str, Any]) -> None:
        """Do what the client says, until it leaves or is let go."""
        self.reply(dumps(greeting))
        try:
            with self._scope:
                async with plain_nursery() as nursery:
                    nursery.start_soon(self._write)
                    await self._read()
        except ConnectionClosed as closed:
            self.reason = self.reason or _told(closed)
        finally:
            for watched in self._watched.values():
                watched.feed.watchers.discard(self._wake)

    def reply(self, data: bytes, then: Callable[[], None] = lambda: None) -> None:
        """Send a response, after the events that came before it."""
        for watched in self._watched.values():
            watched.feed.seal()
        marks = {session_id: watched.feed.last for session_id, watched in self._watched.items()}
        self._replies.append(_Reply(data, marks, then))
        self._wake()

    async def close(self, code: int, reason: str) -> None:
        """Tell the client why, if it still listens, and end."""
        self.reason = self.reason or reason
        with trio.move_on_after(GOODBYE_SECONDS, shield=True):
            await self._socket.aclose(code, reason)
        self._scope.cancel()

    # ------------------------------------------------------------------ what comes in

    async def _read(self) -> None:
        while len(self._replies) < WAITING_REPLIES:
            await self._take(await self._socket.get_message())
        await self.close(SLOW_CODE, f"{WAITING_REPLIES} responses were not read")

    async def _take(self, text: str | bytes) -> None:
        command_id: Any = None
        try:
            message = _parse(text)
            command_id, name = message.get("id"), message.get("type")
            if command_id is not None and not isinstance(command_id, (str, int)):
                command_id = None
                raise UsageError("`id` must be a text or a number.")
            if name in _OWN:
                await _OWN[name](self, command_id, message)
            elif isinstance(name, str) and name in METHODS:
                await self._peer.command(name, command_id, message)
            else:
                raise UsageError(f"There is no command {name!r}.")
        except PiError as error:
            self.reply(failure(command_id, error))

    async def _subscribe(self, command_id: Any, message: Mapping[str, Any]) -> None:
        """Send the events of a session: from a place that the client knows, or from now on."""
        session_id = _session_of(message)
        feed, snapshot = await self._sessions.watch(session_id)
        epoch, seq = message.get("epoch"), message.get("seq")
        resumes = isinstance(epoch, str) and isinstance(seq, int) and feed.reaches(epoch, seq)
        watched = _Watched(feed, seq if resumes and isinstance(seq, int) else feed.last)
        data = {"epoch": feed.epoch, "seq": watched.seq}
        if not resumes:
            data["snapshot"] = encode_snapshot(snapshot)
        feed.watchers.add(self._wake)
        self._watched[session_id] = watched

        def begin() -> None:
            watched.told = True

        self.reply(success(command_id, data), begin)

    async def _unsubscribe(self, command_id: Any, message: Mapping[str, Any]) -> None:
        watched = self._watched.pop(_session_of(message), None)
        if watched is not None:
            watched.feed.watchers.discard(self._wake)
        self.reply(success(command_id, None))

    async def _list(self, command_id: Any, _message: Mapping[str, Any]) -> None:
        self.reply(success(command_id, self._sessions.listing()))

    # ------------------------------------------------------------------ what goes out

    def _wake(self) -> None:
        self._news.set()

    async def _write(self) -> None:
        untold = 0  # bytes of which it is not known whether the client has them
        while True:
            with trio.move_on_after(PING_SECONDS) as silence:
                await self._news.wait()
            self._news = trio.Event()
            while (message := self._next()) is not None:
                await self._wait_for(self._socket.send_message(message.decode()), len(message))
                untold += len(message)
                if untold >= FRAME_BYTES:
                    await self._wait_for(self._socket.ping(), untold)
                    untold = 0
            if silence.cancelled_caught:
                await self._wait_for(self._socket.ping(), untold)
                untold = 0

    async def _wait_for(self, taken: Awaitable[None], size: int) -> None:
        """Wait until the client has taken what was sent; one that takes nothing is let go."""
        with trio.move_on_after(PATIENCE_SECONDS + size / SLOWEST) as waiting:
            await taken
        if waiting.cancelled_caught:
            await self.close(SLOW_CODE, f"nothing was read for {PATIENCE_SECONDS:g} seconds")

    def _next(self) -> bytes | None:
        """The next message. A response comes when all items before it are sent, and then at once."""
        reply = self._replies[0] if self._replies else None
        for session_id, watched in self._watched.items():
            until = math.inf if reply is None else reply.marks.get(session_id, -1)
            if watched.told and watched.seq < min(until, watched.feed.last):
                return self._items(watched, min(until, watched.feed.last))
        if reply is None:
            return None
        self._replies.popleft()
        reply.then()
        return reply.data

    def _items(self, watched: _Watched, until: float) -> bytes:
        feed = watched.feed
        if not feed.reaches(feed.epoch, watched.seq):
            watched.seq = feed.last
            return dumps({"type": "gap", "sessionId": feed.session_id, "seq": feed.last})
        data, watched.seq = feed.after(watched.seq, int(until))
        return data


_OWN = {
    "subscribe": Connection._subscribe,
    "unsubscribe": Connection._unsubscribe,
    "sessions": Connection._list,
}
"""What concerns the connection itself, or the server."""


def _parse(text: str | bytes) -> Mapping[str, Any]:
    try:
        message = loads(text)
    except ValueError as error:
        raise UsageError(f"The message is not JSON: {error}") from error
    if not isinstance(message, dict):
        raise UsageError("The message is not a JSON object.")
    return message


def _session_of(message: Mapping[str, Any]) -> str:
    session_id = message.get("sessionId")
    if not isinstance(session_id, str):
        raise UsageError("`sessionId` is missing.")
    return session_id


def _told(closed: ConnectionClosed) -> str:
    """Why a connection was closed, as far as it was said."""
    if closed.reason is None:
        return "closed"
    return closed.reason.reason or f"closed ({closed.reason.code} {closed.reason.name.lower()})"
