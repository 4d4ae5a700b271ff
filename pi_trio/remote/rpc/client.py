"""The one client of a program in RPC mode, and the session that it is in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, assert_never

from pi_trio.codec import dumps
from pi_trio.events import (
    AgentEnd,
    AgentEvent,
    AgentSettled,
    AgentStart,
    ApprovalRequested,
    ApprovalResolved,
    AutoRetryEnd,
    AutoRetryStart,
    BashExecutionUpdate,
    CompactionEnd,
    CompactionStart,
    EntryAppended,
    ExtensionError,
    Gap,
    InboxClaimed,
    InboxDiscarded,
    InboxInserted,
    InputReturned,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    QueueUpdate,
    SessionInfoChanged,
    ThinkingLevelChanged,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
    TurnEnd,
    TurnStart,
)
from pi_trio.harness.harness import AgentHarness
from pi_trio.harness.points import PRE_STEP, PreStep
from pi_trio.harness.runtime import LocalRuntime
from pi_trio.loop.driver import EnterStep, RejectStep
from pi_trio.remote.rpc.outgoing import Outgoing, Write
from pi_trio.remote.rpc.questions import Dialogs
from pi_trio.wire import event_to_json

__all__ = ["Client"]


class Client:
    """`shell_id` is the id of the command whose shell command is running."""

    def __init__(self, runtime: LocalRuntime, write: Write) -> None:
        self.runtime = runtime
        self.session_id = ""
        self.shell_id: Any = None
        self.outgoing = Outgoing(write, self._translate)
        self.dialogs = Dialogs()

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
        if before:
            await self.runtime.close_session(before)
            await self.outgoing.send()
        self.session_id = session_id
        await self.runtime.subscribe(session_id, self.outgoing.new_outbox())
        self.harness.on(PRE_STEP, self._hold)

    async def tell(self, text: str) -> None:
        """Show a sentence to the person, if the client has one."""
        request = {"type": "extension_ui_request", "id": "", "method": "notify", "message": text}
        await self.outgoing.send(dumps(request))

    async def _hold(self, context: PreStep, following: Any) -> EnterStep | RejectStep:
        await self.outgoing.hold()
        decision: EnterStep | RejectStep = await following(context)
        return decision

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
            case InboxInserted() | InboxDiscarded() | InboxClaimed() | InputReturned() | Gap():
                return None
            case (
                AgentStart()
                | AgentEnd()
                | AgentSettled()
                | TurnStart()
                | TurnEnd()
                | MessageStart()
                | MessageUpdate()
                | MessageEnd()
                | ToolExecutionStart()
                | ToolExecutionUpdate()
                | ToolExecutionEnd()
                | QueueUpdate()
                | EntryAppended()
                | SessionInfoChanged()
                | ThinkingLevelChanged()
                | AutoRetryStart()
                | AutoRetryEnd()
                | CompactionStart()
                | CompactionEnd()
                | ExtensionError()
            ):
                return event_to_json(event)
        assert_never(event)
