"""RPC mode: commands in, responses and events out, each a line of JSON.

Commands are done one after the other in the order in which they came, and answered in that
order; only those that take long run beside the others, so that they can be stopped.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

import trio

from pi_trio.codec import dumps, loads
from pi_trio.errors import PiError, UsageError
from pi_trio.harness.runtime import LocalRuntime
from pi_trio.loop.lifetime import GOODBYE_SECONDS
from pi_trio.nursery import plain_nursery
from pi_trio.remote.rpc.client import Client
from pi_trio.remote.rpc.commands import COMMANDS, Command
from pi_trio.remote.rpc.outgoing import Write
from pi_trio.remote.rpc.parameters import check
from pi_trio.remote.rpc.shapes import Encoded

__all__ = ["Read", "serve"]

Read: TypeAlias = Callable[[], Awaitable[bytes | None]]
"""Gives the next line without its end, None after the last."""

_MANY = 8
"""How many long commands run at a time; further ones wait, and what comes after them."""

_LAST_SECONDS = 2.0
"""What a long command still has when the input has ended; then it is stopped, and answered so."""


async def serve(runtime: LocalRuntime, session_id: str, read: Read, write: Write) -> None:
    """Do what the lines say, in this session first, until there are no more and all are answered.

    Then, or cancelled, the run is stopped and its last events are written. Raises
    `BrokenPipeError` if nobody reads any more.
    """
    client = Client(runtime, write)
    await client.show(session_id)
    try:
        async with plain_nursery() as nursery:
            nursery.start_soon(client.outgoing.pass_on)
            async with plain_nursery() as long:
                await _Dispatcher(client, long).follow(read)
                long.cancel_scope.deadline = trio.current_time() + _LAST_SECONDS + GOODBYE_SECONDS
                nursery.start_soon(_stop_later, client)
            nursery.cancel_scope.cancel()
    finally:
        with trio.move_on_after(GOODBYE_SECONDS, shield=True):
            await _stop(client)
            await client.outgoing.send()


async def _stop(client: Client) -> None:
    await client.runtime.abort_shell(client.session_id)
    await client.runtime.abort(client.session_id)


async def _stop_later(client: Client) -> None:
    await trio.sleep(_LAST_SECONDS)
    await _stop(client)


class _Dispatcher:
    def __init__(self, client: Client, nursery: trio.Nursery) -> None:
        self._client = client
        self._nursery = nursery
        self._long = trio.Semaphore(_MANY)

    async def follow(self, read: Read) -> None:
        """Take line after line. Blank ones mean nothing."""
        while (line := await read()) is not None:
            if line.strip():
                await self._take(line)

    async def _take(self, line: bytes) -> None:
        try:
            message = _parse(line)
        except UsageError as error:
            await self._client.outgoing.send(_failure("parse", None, error))
            return
        name, request_id = message.get("type"), message.get("id")
        if name == "extension_ui_response":
            await self._answer(message)
        elif isinstance(name, str) and (command := COMMANDS.get(name)) is not None:
            await self._start(command, name, message)
        else:
            unknown = UsageError(f"There is no command {name!r}.")
            told = name if isinstance(name, str) else "unknown"
            await self._client.outgoing.send(_failure(told, request_id, unknown))

    async def _start(self, command: Command, name: str, message: Mapping[str, Any]) -> None:
        if command.long:
            await self._long.acquire()
            await self._nursery.start(self._beside, command, name, message)
        else:
            await self._run(command, name, message)

    async def _beside(
        self,
        command: Command,
        name: str,
        message: Mapping[str, Any],
        task_status: trio.TaskStatus[None],
    ) -> None:
        """A long command. It has begun when the next line is read, so that this can stop it."""
        task_status.started()
        try:
            await self._run(command, name, message)
        finally:
            self._long.release()

    async def _run(self, command: Command, name: str, message: Mapping[str, Any]) -> None:
        request_id = message.get("id")
        try:
            data = await command.run(self._client, check(command.parameters, message))
        except PiError as error:
            await self._client.outgoing.send(_failure(name, request_id, error))
        else:
            await self._client.outgoing.send(_success(name, request_id, data))

    async def _answer(self, response: Mapping[str, Any]) -> None:
        """An answer to a question; one that comes too late means nothing."""
        answered = self._client.dialogs.answer(response)
        if answered is not None:
            question_id, answer = answered
            await self._client.runtime.answer(self._client.session_id, question_id, answer)


def _parse(line: bytes) -> Mapping[str, Any]:
    try:
        message = loads(line)
    except ValueError as error:
        raise UsageError(f"The line is not JSON: {error}") from error
    if not isinstance(message, dict):
        raise UsageError("The line is not a JSON object.")
    return message


def _success(command: str, request_id: Any, data: Any) -> bytes:
    envelope = dumps(_envelope(command, request_id, True))
    if data is None:
        return envelope
    return envelope[:-1] + b',"data":' + (data.json if isinstance(data, Encoded) else dumps(data)) + b"}"


def _failure(command: str, request_id: Any, error: PiError) -> bytes:
    return dumps({**_envelope(command, request_id, False), "error": str(error)})


def _envelope(command: str, request_id: Any, success: bool) -> dict[str, Any]:
    named = {} if request_id is None else {"id": request_id}
    return {**named, "type": "response", "command": command, "success": success}
