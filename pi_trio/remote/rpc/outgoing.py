"""What goes to the client: one line after the other, from one place.

Events wait in an outbox in which the pieces of an answer merge while the client is slow. The
agent is held up at its next step when a client has not read for many of them; so what waits
has a bound, and no event that is more than a piece is ever lost.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

import trio

from pi_trio.codec import dumps
from pi_trio.events import AgentEvent
from pi_trio.hub import Outbox

__all__ = ["Outgoing", "Write"]

Write: TypeAlias = Callable[[bytes], Awaitable[None]]
"""Writes all of it. Raises `BrokenPipeError` if nobody reads any more."""

STEPS_BEHIND = 32
"""How many steps the agent goes on while a client does not read."""


class Outgoing:
    """Events in their order, and in between what is sent with `send`.

    `translate` makes an event what the client sees of it, or None.
    """

    def __init__(self, write: Write, translate: Callable[[AgentEvent], Mapping[str, Any] | None]) -> None:
        self._write = write
        self._translate = translate
        self._writing = trio.Lock()
        self._filled = trio.Event()
        self._steps = 0
        self._caught_up = trio.Event()
        self.outbox: Outbox = self.new_outbox()

    def new_outbox(self) -> Outbox:
        """Take events from another outbox from now on: this one."""
        # Without limits of its own, since it may lose nothing: `hold` is what bounds it.
        self.outbox = Outbox(lambda: self._filled.set(), limit=sys.maxsize, limit_characters=sys.maxsize)
        return self.outbox

    async def send(self, *messages: bytes) -> None:
        """Write what happened until now, then these lines. Waits until the client takes it.

        Cancelled, no event is lost: those that were not written yet come with the next call.
        """
        async with self._writing:
            await trio.lowlevel.checkpoint_if_cancelled()  # not once they are taken
            lines = [*self._events(), *messages]
            if lines:
                await self._write(b"\n".join([*lines, b""]))
        self._steps = 0
        self._caught_up.set()

    async def pass_on(self) -> None:
        """Write what happens, as it happens. Runs until it is cancelled."""
        while True:
            await self._filled.wait()
            self._filled = trio.Event()
            await self.send()

    async def hold(self) -> None:
        """Wait, at the beginning of a step, while the client is too far behind."""
        self._steps += 1
        while self._steps > STEPS_BEHIND:
            self._caught_up = trio.Event()
            await self._caught_up.wait()

    def _events(self) -> list[bytes]:
        told = (self._translate(envelope.event) for envelope in self.outbox.take())
        return [dumps(message) for message in told if message is not None]
