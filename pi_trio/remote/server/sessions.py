"""The sessions of a server: opened when somebody names them, and closed when nobody needs them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import trio

from pi_trio.errors import UsageError
from pi_trio.harness.runtime import LocalRuntime
from pi_trio.remote.interface import Snapshot
from pi_trio.remote.methods import Method
from pi_trio.remote.server.feed import Feed

__all__ = ["IDLE_SECONDS", "Sessions"]

IDLE_SECONDS = 15 * 60.0
"""How long a session stays open that nobody looks at and in which nothing goes on."""
ROUND_SECONDS = 30.0


class Sessions:
    """What commands work on. `feeds` are those of sessions that a client has looked at."""

    def __init__(self, runtime: LocalRuntime, nursery: trio.Nursery) -> None:
        self.runtime = runtime
        self.feeds: dict[str, Feed] = {}
        self._nursery = nursery
        self._used: dict[str, float] = {}
        self._changing = trio.Lock()

    async def run(self, method: Method, fields: Mapping[str, Any]) -> Any:
        """Do what a command says; a session that was closed meanwhile is opened again."""
        session_id = fields.get("sessionId")
        if isinstance(session_id, str) and "sessionId" in method.parameters:
            if method.name == "close_session":
                return await self._close(session_id)
            await self._open(session_id)
        return await method.run(self.runtime, fields)

    async def watch(self, session_id: str) -> tuple[Feed, Snapshot]:
        """The feed of a session, and the session as it is at the feed's last item."""
        async with self._changing:
            await self._open_now(session_id)
            feed = self.feeds.get(session_id)
            if feed is None or feed.outbox.closed:
                feed = self.feeds[session_id] = Feed(session_id)
                snapshot = await self.runtime.subscribe(session_id, feed.outbox)
                feed.begin(snapshot.seq)
                self._nursery.start_soon(feed.run)
            else:
                snapshot = await self.runtime.snapshot(session_id)
                feed.seal()
        return feed, snapshot

    def listing(self) -> list[dict[str, Any]]:
        """The open sessions, the one that was used last first."""
        found = sorted(self.runtime.open_sessions, key=lambda each: self._used.get(each, 0.0), reverse=True)
        return [self._listed(each) for each in found]

    async def close_idle(self) -> None:
        """Close what is not needed any more. Runs until it is cancelled."""
        while True:
            await trio.sleep(ROUND_SECONDS)
            for session_id in self.runtime.open_sessions:
                if self._is_needed(session_id):
                    self._used[session_id] = trio.current_time()
                elif (
                    trio.current_time() - self._used.setdefault(session_id, trio.current_time())
                    > IDLE_SECONDS
                ):
                    async with self._changing:
                        if not self._is_needed(session_id):
                            await self._forget(session_id)

    def _is_needed(self, session_id: str) -> bool:
        feed = self.feeds.get(session_id)
        return bool(feed is not None and feed.watchers) or self.runtime.is_needed(session_id)

    async def _open(self, session_id: str) -> None:
        if session_id in self.runtime.open_sessions:
            self._used[session_id] = trio.current_time()
            return
        async with self._changing:
            await self._open_now(session_id)

    async def _open_now(self, session_id: str) -> None:
        self._used[session_id] = trio.current_time()
        if session_id not in self.runtime.open_sessions:
            snapshot = await self.runtime.open_session(session_id)
            if snapshot.session.id != session_id:  # it was not the whole id
                self._used.pop(session_id)
                raise UsageError(f"There is no session {session_id}.")

    async def _close(self, session_id: str) -> None:
        feed = self.feeds.get(session_id)
        if feed is not None and feed.watchers:
            raise UsageError("Somebody is attached to this session: it stays open.")
        async with self._changing:
            await self._forget(session_id)

    async def _forget(self, session_id: str) -> None:
        self.feeds.pop(session_id, None)
        self._used.pop(session_id, None)
        await self.runtime.close_session(session_id)

    def _listed(self, session_id: str) -> dict[str, Any]:
        harness, feed = self.runtime.harness(session_id), self.feeds.get(session_id)
        session = harness.session
        return {
            "id": session_id,
            "name": session.name,
            "cwd": session.cwd,
            "running": harness.running,
            "clients": len(feed.watchers) if feed is not None else 0,
        }
