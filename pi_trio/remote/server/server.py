"""The server: lets clients in, and gives each its connection. See docs/server.md.

What it is asked for is bounded: how many clients there are, how many connections have not
said yet who they are, and how long they may take for that.
"""

from __future__ import annotations

import traceback
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version

import h11
import trio
from trio_websocket import WebSocketConnection, wrap_server_stream

from pi_trio.harness.runtime import LocalRuntime
from pi_trio.nursery import plain_nursery
from pi_trio.remote.access import PROTOCOL
from pi_trio.remote.server.connection import Connection
from pi_trio.remote.server.door import Door, Refused, read_head, refuse
from pi_trio.remote.server.peer import Peer
from pi_trio.remote.server.sessions import Sessions
from pi_trio.remote.websocket import Wire, open_websocket

__all__ = ["HANDSHAKE_SECONDS", "MAX_CLIENTS", "MAX_MESSAGE", "MAX_PENDING", "Server", "serve"]

MAX_CLIENTS = 32
"""How many clients may be attached."""
MAX_PENDING = 64
"""How many connections may not have said yet who they are. With one more the oldest has to go."""
HANDSHAKE_SECONDS = 5.0
"""How long a connection may take to say who it is."""
MAX_MESSAGE = 16 * 1024 * 1024
"""Characters that a message of a client may have: a prompt with images is one."""
PEERS_KEPT = 256
RESUME_SECONDS = 15 * 60.0
"""How long the answers for a client that left are kept."""
_BUFFER = 64 * 1024
_QUEUE = 16
"""Messages that are read while one is looked at, so that the answers to pings behind them are seen."""


class Server:
    """`tell` is called with sentences for the person who looks after it, never with the token.

    `clients` is how many connections were let in.
    """

    def __init__(
        self, runtime: LocalRuntime, door: Door, nursery: trio.Nursery, tell: Callable[[str], None]
    ) -> None:
        self.sessions: Sessions = Sessions(runtime, nursery)
        self._door = door
        self._nursery = nursery
        self._tell = tell
        self._pending: OrderedDict[trio.CancelScope, None] = OrderedDict()
        self._peers: OrderedDict[str, Peer] = OrderedDict()
        self.clients: int = 0

    @property
    def pending(self) -> int:
        """How many connections have not said yet who they are."""
        return len(self._pending)

    async def handle(self, stream: trio.abc.Stream) -> None:
        """Serve a connection to its end. Whatever goes wrong on it ends nothing else."""
        try:
            async with stream:
                admitted = await self._let_in(stream)
                if admitted is not None:
                    await self._attach(*admitted)
        except (trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError):
            return  # it went away in the middle of something
        except Exception:
            traceback.print_exc()

    async def close(self) -> None:
        """Tell all clients that this is the end."""
        async with plain_nursery() as closing:
            for peer in self._peers.values():
                if peer.connection is not None:
                    closing.start_soon(peer.connection.close, 1001, "the server ends")

    # ------------------------------------------------------------------ letting in

    async def _let_in(self, stream: trio.abc.Stream) -> tuple[Peer, trio.abc.Stream] | None:
        """The client of a connection, and its stream from the beginning; None for one that is turned away."""
        if len(self._pending) >= MAX_PENDING:
            oldest, _ = self._pending.popitem(last=False)
            oldest.cancel()
        with trio.move_on_after(HANDSHAKE_SECONDS) as scope:
            self._pending[scope] = None
            try:
                head, data = await read_head(stream)
                return self._peer(head), Wire(stream, data)
            except Refused as refused:
                self._tell(f"refused: {refused.status}, {refused.reason}")
                await refuse(stream, refused)
            finally:
                self._pending.pop(scope, None)
        return None

    def _peer(self, head: h11.Request) -> Peer:
        client_id = self._door.judge(head).client_id
        self._forget_peers()
        peer = self._peers.get(client_id)
        returns = peer is not None and peer.connection is not None
        if self.clients >= MAX_CLIENTS and not returns:
            raise Refused(503, f"{MAX_CLIENTS} clients are attached already")
        if peer is None:
            peer = self._peers[client_id] = Peer(client_id, self.sessions, self._nursery)
        return peer

    def _forget_peers(self) -> None:
        """Forget those that left long ago, or longest ago where there are too many."""
        gone = [peer for peer in self._peers.values() if peer.connection is None and not peer.busy]
        gone.sort(key=lambda peer: peer.left)
        too_many = max(len(self._peers) - PEERS_KEPT, 0)
        for at, peer in enumerate(gone):
            if at < too_many or trio.current_time() - peer.left > RESUME_SECONDS:
                del self._peers[peer.id]

    async def _attach(self, peer: Peer, stream: trio.abc.Stream) -> None:
        self.clients += 1
        connection: Connection | None = None
        try:
            async with open_websocket(partial(_accepted, stream)) as socket:
                connection = Connection(socket, peer, self.sessions)
                await self._converse(connection, peer)
        finally:
            self.clients -= 1
            if connection is not None:
                self._tell(f"the connection of a client ended: {connection.reason}")
                if peer.connection is connection:
                    peer.connection, peer.left = None, trio.current_time()

    async def _converse(self, connection: Connection, peer: Peer) -> None:
        before, peer.connection = peer.connection, connection
        if before is not None:  # it was lost, and that is only seen now
            self._nursery.start_soon(before.close, 1000, "the client came back by another connection")
        await connection.serve({"type": "welcome", "protocol": PROTOCOL, "version": version("pi-trio")})


async def _accepted(stream: trio.abc.Stream, nursery: trio.Nursery) -> WebSocketConnection:
    """The websocket that a client asks for. Raises `trio.TooSlowError` if it asks for something else."""
    with trio.fail_after(HANDSHAKE_SECONDS):
        request = await wrap_server_stream(
            nursery,
            stream,
            message_queue_size=_QUEUE,
            max_message_size=MAX_MESSAGE,
            receive_buffer_size=_BUFFER,
        )
        return await request.accept()


async def serve(
    runtime: LocalRuntime,
    door: Door,
    listeners: Sequence[trio.abc.Listener[trio.abc.Stream]],
    tell: Callable[[str], None],
    *,
    task_status: trio.TaskStatus[Server] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve clients until it is cancelled; they are told. Runs that are under way are not stopped by it."""
    listening = trio.CancelScope()

    async def accept(task_status: trio.TaskStatus[Server]) -> None:
        with trio.CancelScope(shield=True):  # so that there is time for a last word
            async with plain_nursery() as nursery:
                server = Server(runtime, door, nursery, tell)
                nursery.start_soon(server.sessions.close_idle)
                with listening:
                    task_status.started(server)
                    await trio.serve_listeners(server.handle, list(listeners), handler_nursery=nursery)
                await server.close()
                nursery.cancel_scope.cancel()

    async with plain_nursery() as nursery:
        try:
            task_status.started(await nursery.start(accept))
            await trio.sleep_forever()
        finally:
            listening.cancel()
