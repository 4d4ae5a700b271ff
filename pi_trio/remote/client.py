"""A runtime on a server, as screens and line chats see it: the same interface as one in this process.

The connection may be lost at any moment. What was asked for is then asked again, under the
same ids, and events go on behind the last one that came. Subscribers hear of it by
`connection_changed`, and by a `gap` where the server does not have all events any more.
"""

from __future__ import annotations

import functools
import itertools
import math
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, cast

import trio
from attrs import define, field, frozen

from pi_trio.codec import dumps, loads
from pi_trio.errors import ConfigError, ConnectionLostError
from pi_trio.events import AgentEvent, ConnectionChanged, Gap
from pi_trio.hub import Outbox
from pi_trio.nursery import plain_nursery
from pi_trio.remote.events import EventReader
from pi_trio.remote.interface import Snapshot
from pi_trio.remote.link import Dial, Link, LostError, RefusedError, dialler
from pi_trio.remote.methods import METHODS, Method, Served, decode_snapshot, error_from_json
from pi_trio.text import plural

__all__ = ["OpenSession", "RemoteRuntime", "open_over", "open_remote"]

WAITS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
LONGEST_WAIT = 15.0
"""Seconds between two attempts to come back; the first one is made at once."""


@frozen(kw_only=True)
class OpenSession:
    """A session that is open on the server, with the number of clients that look at it."""

    id: str
    name: str | None
    cwd: str
    running: bool
    clients: int


def open_remote(
    url: str, token: str, patience: float = math.inf
) -> AbstractAsyncContextManager[RemoteRuntime]:
    """The runtime of a server for a block. Leaving it leaves all sessions as they are, running or not.

    Raises `UsageError` if the address is none, `ConfigError` if nobody is there or the server
    refuses. A connection that is lost later is tried again for `patience` seconds; then the block
    is cancelled, and `ConnectionLostError` raised.
    """
    return open_over(dialler(url, token), patience)


@asynccontextmanager
async def open_over(dial: Dial, patience: float = math.inf) -> AsyncIterator[RemoteRuntime]:
    """The same over connections that `dial` makes."""
    async with plain_nursery() as nursery:
        runtime = RemoteRuntime(dial, patience)
        await nursery.start(runtime.keep)
        try:
            yield runtime
        finally:
            nursery.cancel_scope.cancel()


@define(eq=False)
class _Pending:
    """A command without a response. `took` is called with the data as soon as they come.

    One that is of `this_link` is not asked again by another connection.
    """

    request: bytes
    took: Callable[[Mapping[str, Any]], None]
    this_link: bool = False
    done: trio.Event = field(factory=trio.Event)
    response: Mapping[str, Any] = field(factory=dict)


class _Watched:
    """A session whose events come: who gets them, and where they go on after a lost connection."""

    def __init__(self) -> None:
        self.outboxes: list[tuple[Outbox, int]] = []
        self.epoch = ""
        self.seq = 0
        self._reader = EventReader()

    @property
    def place(self) -> dict[str, Any]:
        """The last event that came, as `subscribe` says it."""
        return {"epoch": self.epoch, "seq": self.seq} if self.epoch else {}

    def begin(self, data: Mapping[str, Any]) -> Snapshot | None:
        """The server has said where it goes on; the snapshot if that is not behind what came last."""
        self.epoch, self.seq = data["epoch"], data["seq"]
        if "snapshot" not in data:
            return None
        snapshot = decode_snapshot(data["snapshot"])
        self._reader = EventReader(snapshot.streaming)
        return snapshot

    def look(self, snapshot: Snapshot) -> None:
        """A snapshot came, and all events before it had come."""
        self._reader = EventReader(snapshot.streaming)

    def take(self, items: Sequence[Mapping[str, Any]]) -> None:
        """Give events to all subscribers."""
        for item in items:
            event = self._reader.read(item["event"])
            self.seq = item["seq"]
            if event is not None:
                self.put(event)

    def put(self, event: AgentEvent) -> None:
        """Give an event to all subscribers, under the number of the last that came."""
        for outbox, start in self.outboxes:
            if self.seq > start or isinstance(event, (Gap, ConnectionChanged)):
                outbox.put(self.seq, event)

    def skip(self, seq: int) -> None:
        """Events until this one will not come."""
        self.seq, self._reader = seq, EventReader()
        self.lose()

    def lose(self) -> None:
        """Events are missing: everybody takes a new snapshot."""
        self.outboxes = [(outbox, 0) for outbox, _ in self.outboxes]
        self.put(Gap())


class RemoteRuntime:
    """See `pi_trio.remote.interface.Runtime`; its other methods are made from the interface, below."""

    def __init__(self, dial: Dial, patience: float = math.inf) -> None:
        self._dial = dial
        self._patience = patience
        self._client_id = uuid.uuid4().hex
        self._ids = itertools.count(1)
        self._pending: dict[int, _Pending] = {}
        self._watched: dict[str, _Watched] = {}
        self._link: Link | None = None
        self._subscribing = trio.Lock()

    async def keep(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Be connected, and when the connection is lost connect again. Runs until it is cancelled.

        Raises `ConfigError` if the first attempt fails, or the server refuses, and
        `ConnectionLostError` when there was none for longer than the patience lasts.
        """
        waits, first, lost = iter(WAITS), True, math.inf
        while True:
            began = math.inf
            try:
                async with self._dial(self._client_id) as link:
                    began, lost = trio.current_time(), math.inf
                    if first:
                        task_status.started()
                    else:
                        self._tell(ConnectionChanged(connected=True))
                    first = False
                    await self._converse(link)
            except RefusedError as error:
                raise ConfigError(str(error)) from error
            except LostError as error:
                if first:
                    raise ConfigError(str(error)) from error
                if trio.current_time() - began > LONGEST_WAIT:  # it had held
                    waits = iter(WAITS)
                wait, lost = next(waits, LONGEST_WAIT), min(lost, trio.current_time())
                if trio.current_time() + wait > lost + self._patience:
                    raise ConnectionLostError(
                        f"{error}; given up after {plural(self._patience, 'second')}"
                    ) from error
                self._tell(ConnectionChanged(False, str(error), round(wait * 1000)))
                await trio.sleep(wait)

    # ------------------------------------------------------------------ what is not in METHODS

    async def subscribe(self, session_id: str, outbox: Outbox) -> Snapshot:
        """See `Runtime`."""
        found: list[Snapshot] = []

        def began(data: Mapping[str, Any]) -> None:
            watched = self._watched[session_id] = _Watched()
            snapshot = watched.begin(data)
            assert snapshot is not None  # noqa: S101  # without a place there is always one
            joined(watched, snapshot)

        def came(data: Mapping[str, Any]) -> None:
            snapshot = decode_snapshot(data)
            joined(self._watched[session_id], snapshot)

        def joined(watched: _Watched, snapshot: Snapshot) -> None:
            watched.outboxes.append((outbox, snapshot.seq))
            found.append(snapshot)

        async with self._subscribing:
            if session_id in self._watched:
                await self._ask("snapshot", {"sessionId": session_id}, came)
            else:
                await self._ask("subscribe", {"sessionId": session_id}, began)
        return found[0]

    async def unsubscribe(self, session_id: str, outbox: Outbox) -> None:
        """See `Runtime`."""
        outbox.close()
        async with self._subscribing:
            watched = self._watched.get(session_id)
            if watched is None:
                return
            watched.outboxes = [each for each in watched.outboxes if each[0] is not outbox]
            if not watched.outboxes:
                del self._watched[session_id]
                await self._ask("unsubscribe", {"sessionId": session_id})

    async def snapshot(self, session_id: str) -> Snapshot:
        """See `Runtime`. It is taken when all events before it have come."""

        def came(data: Mapping[str, Any]) -> None:
            if (watched := self._watched.get(session_id)) is not None:
                watched.look(decode_snapshot(data))

        return decode_snapshot(await self._ask("snapshot", {"sessionId": session_id}, came))

    @property
    def runtime(self) -> Served:
        """The same, typed as what it is: its methods come from the interface."""
        return cast("Served", self)

    async def sessions(self) -> Sequence[OpenSession]:
        """The sessions that are open on the server, the one that was used last first."""
        return [OpenSession(**each) for each in await self._ask("sessions", {})]

    async def call(self, method: Method, fields: Mapping[str, Any]) -> Any:
        """Have the server do it, and give what comes of it. Raises `PiError`s.

        Cancelled, it is done all the same, perhaps.
        """
        return method.result(await self._ask(method.name, fields))

    # ------------------------------------------------------------------ inside

    async def _ask(
        self,
        name: str,
        fields: Mapping[str, Any],
        took: Callable[[Mapping[str, Any]], None] = lambda _: None,
    ) -> Any:
        command_id = next(self._ids)
        pending = _Pending(dumps({"type": name, "id": command_id, **fields}), took)
        self._pending[command_id] = pending
        if self._link is not None:
            self._link.send(pending.request)
        try:
            await pending.done.wait()
        finally:
            self._pending.pop(command_id, None)
        if not pending.response.get("success"):
            raise error_from_json(pending.response)
        return pending.response.get("data")

    async def _converse(self, link: Link) -> None:
        """Go on where the last connection ended, and read what comes until this one is lost."""
        asked = {key: each for key, each in self._pending.items() if not each.this_link}
        self._pending = dict(asked)
        for session_id in self._watched:
            self._resume(link, session_id)
        for pending in asked.values():
            link.send(pending.request)
        self._link = link
        try:
            while True:
                self._take(loads(await link.receive()))
        finally:
            self._link = None

    def _resume(self, link: Link, session_id: str) -> None:
        """Ask for the events behind the last one that came. Nobody waits for the response."""
        watched = self._watched[session_id]

        def began(data: Mapping[str, Any]) -> None:
            if watched.begin(data) is not None:
                watched.lose()

        command_id = next(self._ids)
        request = dumps({"type": "subscribe", "id": command_id, "sessionId": session_id, **watched.place})
        self._pending[command_id] = _Pending(request, began, this_link=True)
        link.send(request)

    def _take(self, message: Mapping[str, Any]) -> None:
        watched = self._watched.get(message.get("sessionId", ""))
        match message.get("type"):
            case "response":
                self._answer(message)
            case "events" if watched is not None:
                watched.take(message["events"])
            case "gap" if watched is not None:
                watched.skip(message["seq"])
            case _:
                pass  # the greeting, events of what nobody looks at any more, or what is newer than this

    def _answer(self, response: Mapping[str, Any]) -> None:
        pending = self._pending.pop(response.get("id", 0), None)
        if pending is None:
            return  # nobody waits for it any more
        pending.response = response
        if response.get("success"):
            pending.took(response.get("data") or {})
        pending.done.set()

    def _tell(self, event: AgentEvent) -> None:
        for watched in self._watched.values():
            watched.put(event)


def _remote(method: Method) -> Callable[..., Any]:
    """A method of the interface, done by the server."""

    async def remote(self: RemoteRuntime, *arguments: Any, **keywords: Any) -> Any:
        return await self.call(method, method.fields(arguments, keywords))

    return functools.update_wrapper(remote, getattr(Served, method.name))


for _method in METHODS.values():
    if not hasattr(RemoteRuntime, _method.name):
        setattr(RemoteRuntime, _method.name, _remote(_method))
