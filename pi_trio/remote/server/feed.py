"""The events of one session for all its clients: numbered, merged and encoded once.

Pieces that come within one frame merge, and what came of it is an item of the feed: from
then on it never changes. A client is a place in the feed, no more; it is given the items
after it, when it has taken those before. So all clients see the same items in the same
order, one that comes back goes on where it was, and none of them can hold up another.

The feed keeps the latest items. A client that was left behind further than that gets no
events in between, but takes a new snapshot.
"""

from __future__ import annotations

import uuid
from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from itertools import islice

import trio
from attrs import frozen

from pi_trio.codec import dumps
from pi_trio.events import Gap
from pi_trio.hub import Envelope, Outbox
from pi_trio.remote.events import encode_event

__all__ = ["FRAME_BYTES", "Feed", "Item"]

FRAME_SECONDS = 1 / 60
"""Time in which pieces of an answer merge."""
RING_ITEMS = 4096
RING_BYTES = 8_000_000
"""How much a feed keeps for clients that come back."""
FRAME_BYTES = 64 * 1024
"""A client is sent about so much at a time; one event may be larger."""


@frozen
class Item:
    """An event as clients see it, which stands for the numbers `first` to `last`."""

    first: int
    last: int
    data: bytes


class Feed:
    """`watchers` are called when there are new items. `epoch` names it: another feed counts anew.

    `last` is the number of the newest item. Until `outbox` is attached to a hub nothing comes;
    then `last` must be set to the hub's number.
    """

    def __init__(self, session_id: str, *, items: int = RING_ITEMS, size: int = RING_BYTES) -> None:
        self.session_id = session_id
        self.epoch: str = uuid.uuid4().hex
        self.watchers: set[Callable[[], None]] = set()
        self.outbox: Outbox = Outbox(lambda: self._filled.set())
        self._filled = trio.Event()
        self._ring: deque[Item] = deque()
        self._most, self._most_bytes, self._bytes = items, size, 0
        self._floor = 0
        self.last: int = 0

    def begin(self, seq: int) -> None:
        """Events after this number are what comes."""
        self._floor = self.last = seq

    async def run(self) -> None:
        """Turn events into items, a frame at a time, until the session is closed."""
        while not self.outbox.closed:
            await self._filled.wait()
            self._filled = trio.Event()
            self.seal()
            await trio.sleep(FRAME_SECONDS)

    def seal(self) -> None:
        """Make items of all that has happened until now."""
        envelopes = self.outbox.take()
        for envelope in envelopes:
            if isinstance(envelope.event, Gap):
                self._forget(envelope.seq)
            else:
                self._keep(Item(self.last + 1, envelope.seq, _encoded(self.last + 1, envelope)))
            self.last = envelope.seq
        if envelopes:
            for watcher in tuple(self.watchers):
                watcher()

    def reaches(self, epoch: str, seq: int) -> bool:
        """Whether a client that has seen `seq` can be given all that followed."""
        return epoch == self.epoch and self._floor <= seq <= self.last

    def after(self, seq: int, until: int) -> tuple[bytes, int]:
        """The items after a number, as many as make a message, and the last number of them.

        Nothing later than the item that `until` is in. Only for numbers that it `reaches`.
        """
        at = bisect_right(self._ring, seq, key=lambda item: item.last)
        taken: list[Item] = []
        size = 0
        for item in islice(self._ring, at, None):
            if item.first > until or (taken and size + len(item.data) > FRAME_BYTES):
                break
            taken.append(item)
            size += len(item.data)
        if not taken:
            return b"", seq
        head = dumps({"type": "events", "sessionId": self.session_id})[:-1]
        return b'%b,"events":[%b]}' % (head, b",".join(item.data for item in taken)), taken[-1].last

    def _keep(self, item: Item) -> None:
        self._ring.append(item)
        self._bytes += len(item.data)
        while len(self._ring) > self._most or (self._bytes > self._most_bytes and len(self._ring) > 1):
            gone = self._ring.popleft()
            self._bytes -= len(gone.data)
            self._floor = gone.last

    def _forget(self, seq: int) -> None:
        self._ring.clear()
        self._bytes, self._floor = 0, seq


def _encoded(first: int, envelope: Envelope) -> bytes:
    several = {"first": first} if first < envelope.seq else {}
    return dumps({"seq": envelope.seq, **several, "event": encode_event(envelope.event)})
