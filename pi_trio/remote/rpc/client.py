"""The one client of a program in RPC mode, and the session that it is in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pi_trio.codec import dumps
from pi_trio.events import (
    AgentEvent,
    ApprovalRequested,
    ApprovalResolved,
    BashExecutionUpdate,
    ConnectionChanged,
    Gap,
    InboxClaimed,
    InboxDiscarded,
    InboxInserted,
    InputReturned,
)
from pi_trio.harness.harness import AgentHarness
from pi_trio.harness.points import PRE_STEP, Next, PreStep
from pi_trio.harness.runtime import LocalRuntime
from pi_trio.loop.driver import EnterStep, RejectStep
from pi_trio.remote.rpc.outgoing import Outgoing, Write
from pi_trio.remote.rpc.questions import Dialogs
from pi_trio.wire import event_to_json

__all__ = ["Client"]


class Client:
    """What commands work on. `shell_id` is the id of the `bash` command that is running."""

    def __init__(self, runtime: LocalRuntime, write: Write) -> None:
        self.runtime = runtime
        self.session_id: str = ""
        self.shell_id: Any = None
        self.outgoing: Outgoing = Outgoing(write, self._translate)
        self.dialogs: Dialogs = Dialogs()

    @property
    def harness(self) -> AgentHarness:
        """What drives the session."""
        return self.runtime.harness(self.session_id)

    @property
    def cwd(self) -> Path:
        """Where the client's relative paths begin."""
        return self.runtime.config.cwd

    async def show(self, session_id: str) -> None:
        """Go over to a session that is open. The one before is closed, which stops its run."""
        before = self.session_id
        if before == session_id:
            return
        try:
            if before:
                await self.runtime.close_session(before)
        finally:  # what could not be saved is told, but it is too late to stay
            await self.outgoing.send()
            self.session_id = session_id
            await self.runtime.subscribe(session_id, self.outgoing.new_outbox())
            self.harness.on(PRE_STEP, self._hold)

    async def tell(self, text: str) -> None:
        """Show a sentence to the person, if the client has one."""
        await self.outgoing.send(dumps(self.dialogs.notice(text)))

    async def _hold(
        self, context: PreStep, following: Next[PreStep, EnterStep | RejectStep]
    ) -> EnterStep | RejectStep:
        await self.outgoing.hold()
        return await following(context)

    def _translate(self, event: AgentEvent) -> Mapping[str, Any] | None:
        """What the client sees of an event. Those that pi does not have stay here."""
        match event:
            case ApprovalRequested(question):
                return self.dialogs.request(question)
            case ApprovalResolved(question_id):
                self.dialogs.withdraw(question_id)
                return None
            case BashExecutionUpdate():
                named = {} if self.shell_id is None else {"id": self.shell_id}
                return {**event_to_json(event), **named}
            case (
                InboxInserted()
                | InboxDiscarded()
                | InboxClaimed()
                | InputReturned()
                | ConnectionChanged()
                | Gap()
            ):
                return None
            case _:
                return event_to_json(event)
