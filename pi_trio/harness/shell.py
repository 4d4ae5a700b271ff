"""Commands that the user runs (`!` and `!!`): streamed, and kept as messages of the branch."""

from __future__ import annotations

import codecs
from collections.abc import Callable

import trio

from pi_trio.errors import BusyError
from pi_trio.events import BashExecutionUpdate
from pi_trio.hub import Hub
from pi_trio.messages import BashExecutionMessage
from pi_trio.nursery import plain_nursery
from pi_trio.text import without_controls
from pi_trio.tools.environment import ToolEnvironment
from pi_trio.tools.output import Output
from pi_trio.tools.processes import Outcome
from pi_trio.tools.truncate import MAX_BYTES

__all__ = ["UserShell"]

UPDATE_INTERVAL = 0.1


class UserShell:
    """Runs one command at a time. Nobody is asked about it: the user typed it.

    `record` takes the message of a command that is over.
    """

    def __init__(
        self, environment: ToolEnvironment, hub: Hub, record: Callable[[BashExecutionMessage], None]
    ) -> None:
        self._environment = environment
        self._hub = hub
        self._record = record
        self._scope: trio.CancelScope | None = None
        self._idle = trio.Event()

    @property
    def running(self) -> bool:
        """Whether a command is running."""
        return self._scope is not None

    async def run(self, command: str, *, exclude_from_context: bool = False) -> BashExecutionMessage:
        """Run a command to its end, or to `abort`; the message says which.

        Raises `BusyError` if one is running, and `ToolError` if it cannot be started. Cancelled,
        the command is stopped, and recorded as that.
        """
        if self._scope is not None:
            raise BusyError("A command is running already: stop it first, or wait for it.")
        output = self._environment.new_output()
        outcome: Outcome | None = None
        self._idle = trio.Event()
        try:
            with trio.CancelScope() as self._scope:
                outcome = await self._follow(command, output)
        except trio.Cancelled:
            self._record(_message(command, output, None, exclude_from_context))
            raise
        finally:
            self._scope = None
            self._idle.set()
        message = _message(command, output, outcome, exclude_from_context)
        self._record(message)
        return message

    async def abort(self) -> None:
        """Stop the command that is running, and wait until nothing of it is left."""
        if self._scope is not None:
            self._scope.cancel()
            await self._idle.wait()

    async def _follow(self, command: str, output: Output) -> Outcome:
        updates = _Updates(self._hub)
        output.on_chunk = updates.add
        try:
            async with plain_nursery() as nursery:
                nursery.start_soon(updates.send_on)
                outcome = await self._environment.run(command, output)
                nursery.cancel_scope.cancel()
        finally:
            updates.send(final=True)
        return outcome


class _Updates:
    """What was printed, on its way to the listeners: not all of a flood, but its end."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._waiting = bytearray()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def add(self, chunk: bytes) -> None:
        """Take in what was printed."""
        self._waiting += chunk
        del self._waiting[:-MAX_BYTES]

    async def send_on(self) -> None:
        """Send what has come, now and then."""
        while True:
            await trio.sleep(UPDATE_INTERVAL)
            self.send()

    def send(self, *, final: bool = False) -> None:
        """Send what has come. Before the end, half a letter waits for its other half."""
        delta = self._decoder.decode(bytes(self._waiting), final)
        self._waiting.clear()
        if delta:
            self._hub.post(BashExecutionUpdate(delta))


def _message(command: str, output: Output, outcome: Outcome | None, exclude: bool) -> BashExecutionMessage:
    part = output.tail()
    return BashExecutionMessage(
        command,
        without_controls(part.content),
        exit_code=None if outcome is None else outcome.status,
        cancelled=outcome is None,
        truncated=part.truncated,
        full_output_path=None if output.log_path is None else str(output.log_path),
        exclude_from_context=True if exclude else None,
    )
