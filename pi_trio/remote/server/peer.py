"""A client, from its first connection to its last: what it asked for, and what was answered.

What was begun goes on when the connection is lost. A client that comes back asks again for
all that was not answered, under the same ids: what is done is answered from here, what goes
on is left alone. So nothing is done twice.
"""

from __future__ import annotations

import traceback
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import trio

from pi_trio.codec import dumps
from pi_trio.errors import InternalError, PiError, UsageError
from pi_trio.remote.methods import METHODS, error_to_json

if TYPE_CHECKING:
    from pi_trio.remote.server.connection import Connection
    from pi_trio.remote.server.sessions import Sessions

__all__ = ["COMMANDS_AT_A_TIME", "Peer", "failure", "success"]

COMMANDS_AT_A_TIME = 64
"""How many commands of a client may go on; more are refused."""
ANSWERS_KEPT = 128
"""How many answers are kept for a client that lost its connection before they came."""

_BESIDE = frozenset(
    {
        "abort",
        "abort_call",
        "abort_shell",
        "answer",
        "compact",
        "complete_file",
        "import_pi",
        "list_sessions",
        "models",
        "navigate",
        "preview_session",
        "run_command",
        "run_shell",
        "surroundings",
        "wait_for_idle",
    }
)
"""What takes long or stops such a thing, and so is done beside the rest, which is done in order."""
_READING = frozenset(
    {
        "commands",
        "complete_file",
        "entries",
        "list_sessions",
        "models",
        "preview_session",
        "renderers",
        "snapshot",
        "surroundings",
        "trust",
        "wait_for_idle",
    }
)
"""What changes nothing, and can as well be done again."""


class Peer:
    """`connection` is the one that it has now, if any; `left` is when it lost the last one."""

    def __init__(self, client_id: str, sessions: Sessions, nursery: trio.Nursery) -> None:
        self.id = client_id
        self.connection: Connection | None = None
        self.left: float = trio.current_time()
        self._sessions = sessions
        self._nursery = nursery
        self._in_order = trio.StrictFIFOLock()
        self._running: set[Any] = set()
        self._answers: OrderedDict[Any, bytes] = OrderedDict()

    @property
    def busy(self) -> bool:
        """Whether something that it asked for goes on."""
        return bool(self._running)

    async def command(self, name: str, command_id: Any, fields: Mapping[str, Any]) -> None:
        """Begin what a command asks for, or answer it again."""
        if command_id in self._answers:
            self._tell(self._answers[command_id])
        elif command_id in self._running:
            pass  # its answer is on the way
        elif len(self._running) >= COMMANDS_AT_A_TIME:
            self._tell(failure(command_id, UsageError(f"{COMMANDS_AT_A_TIME} commands are not done yet.")))
        else:
            self._running.add(command_id)
            await self._nursery.start(self._run, name, command_id, fields)

    async def _run(
        self, name: str, command_id: Any, fields: Mapping[str, Any], task_status: trio.TaskStatus[None]
    ) -> None:
        task_status.started()
        try:
            if name in _BESIDE:
                answer = await self._answer(name, command_id, fields)
            else:
                async with self._in_order:
                    answer = await self._answer(name, command_id, fields)
        finally:
            self._running.discard(command_id)
        if name not in _READING:
            self._answers[command_id] = answer
            if len(self._answers) > ANSWERS_KEPT:
                self._answers.popitem(last=False)
        self._tell(answer)

    async def _answer(self, name: str, command_id: Any, fields: Mapping[str, Any]) -> bytes:
        try:
            return success(command_id, await self._sessions.run(METHODS[name], fields))
        except PiError as error:
            return failure(command_id, error)
        except Exception as error:  # one client's command must not end the work of all others
            traceback.print_exc()
            return failure(command_id, InternalError(f"{name} failed: {type(error).__name__}: {error}"))

    def _tell(self, answer: bytes) -> None:
        if self.connection is not None:
            self.connection.reply(answer)


def success(command_id: Any, data: Any) -> bytes:
    """The response to a command that was done."""
    return dumps({"type": "response", "id": command_id, "success": True, "data": data})


def failure(command_id: Any, error: PiError) -> bytes:
    """The response to a command that was not done."""
    return dumps({"type": "response", "id": command_id, "success": False, **error_to_json(error)})
