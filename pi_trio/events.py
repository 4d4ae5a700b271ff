"""The live events of a run: one flat union, with pi's names and fields.

Here pi's `turn_start` and `turn_end` bracket one *step* (one request and its tool calls);
see docs/events.md for the order. Events are live and are gone when they were delivered;
what must survive is an entry of the session. Match on the union and end with
`typing.assert_never`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, TypeAlias

from attrs import define, field, frozen

from pi_trio.approval import Question
from pi_trio.llm.partial import PartialView
from pi_trio.llm.protocol import StreamEvent
from pi_trio.messages import AgentMessage, AssistantMessage, ToolResultMessage, Usage
from pi_trio.tool import ToolResult

__all__ = [
    "AgentEnd",
    "AgentEvent",
    "AgentSettled",
    "AgentStart",
    "ApprovalRequested",
    "ApprovalResolved",
    "AutoRetryEnd",
    "AutoRetryStart",
    "BashExecutionUpdate",
    "CompactionEnd",
    "CompactionReason",
    "CompactionResult",
    "CompactionStart",
    "ConnectionChanged",
    "CoreEvent",
    "EntryAppended",
    "ExtensionError",
    "Gap",
    "InboxClaimed",
    "InboxDiscarded",
    "InboxInserted",
    "InputReturned",
    "MessageEnd",
    "MessageStart",
    "MessageUpdate",
    "QueueUpdate",
    "SessionInfoChanged",
    "ThinkingLevelChanged",
    "ToolExecutionEnd",
    "ToolExecutionStart",
    "ToolExecutionUpdate",
    "TurnEnd",
    "TurnStart",
]


# ------------------------------------------------------------------ the run


@define
class AgentStart:
    """A run begins: the agent is busy until `agent_settled`."""

    type: ClassVar[str] = "agent_start"


@define
class AgentEnd:
    """The run is over. `messages` are those that it added, prompts included, in order."""

    type: ClassVar[str] = "agent_end"
    messages: tuple[AgentMessage, ...]
    will_retry: bool = False


@define
class AgentSettled:
    """Every listener of `agent_end` is done: ready for input."""

    type: ClassVar[str] = "agent_settled"
    aborted: bool


@define
class TurnStart:
    """A step begins."""

    type: ClassVar[str] = "turn_start"


@define
class TurnEnd:
    """A step is over: its answer and the results of its calls."""

    type: ClassVar[str] = "turn_end"
    message: AssistantMessage
    tool_results: tuple[ToolResultMessage, ...] = ()


# ------------------------------------------------------------------ messages


@define
class MessageStart:
    """A message begins; for an answer, `message` is what is known before the first piece."""

    type: ClassVar[str] = "message_start"
    message: AgentMessage


@define
class MessageUpdate:
    """A piece of the streaming answer. `message` is the answer with all pieces so far."""

    type: ClassVar[str] = "message_update"
    assistant_message_event: StreamEvent
    view: PartialView = field(repr=False)

    @property
    def message(self) -> AssistantMessage:
        """The answer so far. Later pieces do not change it."""
        return self.view.message


@define
class MessageEnd:
    """A message is complete and committed; this is the authoritative value."""

    type: ClassVar[str] = "message_end"
    message: AgentMessage


# ------------------------------------------------------------------ tools


@define
class ToolExecutionStart:
    """A call begins. `args` are the model's, before validation."""

    type: ClassVar[str] = "tool_execution_start"
    tool_call_id: str
    tool_name: str
    args: Mapping[str, Any]
    parent_tool_call_id: str | None = None


@define
class ToolExecutionUpdate:
    """Progress of a running call; each replaces the one before.

    `is_error` is there, and `duration_ms` beside it, when the body is over and the end is only
    told after those of the calls in front of it.
    """

    type: ClassVar[str] = "tool_execution_update"
    tool_call_id: str
    tool_name: str
    args: Mapping[str, Any]
    partial_result: ToolResult
    parent_tool_call_id: str | None = None
    is_error: bool | None = None
    duration_ms: int | None = None


@define
class ToolExecutionEnd:
    """A call is over. `duration_ms` is absent if the tool did not run."""

    type: ClassVar[str] = "tool_execution_end"
    tool_call_id: str
    tool_name: str
    result: ToolResult
    is_error: bool
    duration_ms: int | None = None
    parent_tool_call_id: str | None = None


# ------------------------------------------------------------------ the session


@define
class QueueUpdate:
    """What waits in the inbox, as texts; the ids name them to whoever edits the queue."""

    type: ClassVar[str] = "queue_update"
    steering: tuple[str, ...]
    follow_up: tuple[str, ...]
    steering_ids: tuple[str, ...] = ()
    follow_up_ids: tuple[str, ...] = ()


@define
class InboxInserted:
    """Input waits in the inbox under this id."""

    type: ClassVar[str] = "inbox_inserted"
    id: str
    message: AgentMessage


@define
class InboxDiscarded:
    """Waiting input was taken out for good, or replaced."""

    type: ClassVar[str] = "inbox_discarded"
    id: str
    message: AgentMessage


@define
class InboxClaimed:
    """Waiting input was taken out for use in this turn."""

    type: ClassVar[str] = "inbox_claimed"
    id: str
    message: AgentMessage
    turn: int


@define
class InputReturned:
    """Input that was claimed and not used, handed back: a screen puts it in the prompt."""

    type: ClassVar[str] = "input_returned"
    messages: tuple[AgentMessage, ...]


@define
class EntryAppended:
    """A line was added to the session file. `entry` is its JSON object."""

    type: ClassVar[str] = "entry_appended"
    entry: Mapping[str, Any]


@define
class SessionInfoChanged:
    """The session was named, or its name removed."""

    type: ClassVar[str] = "session_info_changed"
    name: str | None


@define
class ThinkingLevelChanged:
    """The thinking level of the next request."""

    type: ClassVar[str] = "thinking_level_changed"
    level: str


@define
class AutoRetryStart:
    """A failed request will be sent again after `delay_ms`."""

    type: ClassVar[str] = "auto_retry_start"
    attempt: int
    max_attempts: int
    delay_ms: int
    error_message: str


@define
class AutoRetryEnd:
    """The retries of a step are over."""

    type: ClassVar[str] = "auto_retry_end"
    success: bool
    attempt: int
    final_error: str | None = None


CompactionReason: TypeAlias = Literal["manual", "threshold", "overflow"]


@frozen
class CompactionResult:
    """What a compaction did. Sizes are tokens. Without a summary, shortening results was enough."""

    summary: str
    first_kept_entry_id: str
    tokens_before: int
    estimated_tokens_after: int | None = None
    usage: Usage | None = None
    details: Any = None


@define
class CompactionStart:
    """Room is being made in the context."""

    type: ClassVar[str] = "compaction_start"
    reason: CompactionReason


@define
class CompactionEnd:
    """It is over: with a result, with an error that changed nothing, or aborted."""

    type: ClassVar[str] = "compaction_end"
    reason: CompactionReason
    result: CompactionResult | None = None
    aborted: bool = False
    will_retry: bool = False
    error_message: str | None = None


@define
class ExtensionError:
    """An extension failed, and what it was asked for went on without it.

    `event` is what it was called for; `error` names the line in its file.
    """

    type: ClassVar[str] = "extension_error"
    extension_path: str
    event: str
    error: str


@define
class ApprovalRequested:
    """A tool call waits for a person's answer."""

    type: ClassVar[str] = "approval_requested"
    question: Question


@define
class ApprovalResolved:
    """A question was answered, or withdrawn because its run was stopped. `id` is that of the call."""

    type: ClassVar[str] = "approval_resolved"
    id: str


@define
class BashExecutionUpdate:
    """What a command of the user has printed since the last update; of a flood, the end."""

    type: ClassVar[str] = "bash_execution_update"
    delta: str


@define
class Gap:
    """The subscriber was too slow and events were dropped: take a new snapshot."""

    type: ClassVar[str] = "gap"


@define
class ConnectionChanged:
    """The connection to the server of an attached session was lost, or is there again.

    `reason` is a sentence, `retry_ms` the time until it is tried again.
    """

    type: ClassVar[str] = "connection_changed"
    connected: bool
    reason: str = ""
    retry_ms: int = 0


CoreEvent: TypeAlias = (
    AgentStart
    | AgentEnd
    | TurnStart
    | TurnEnd
    | MessageStart
    | MessageUpdate
    | MessageEnd
    | ToolExecutionStart
    | ToolExecutionUpdate
    | ToolExecutionEnd
)

AgentEvent: TypeAlias = (
    CoreEvent
    | AgentSettled
    | QueueUpdate
    | InboxInserted
    | InboxDiscarded
    | InboxClaimed
    | InputReturned
    | EntryAppended
    | SessionInfoChanged
    | ThinkingLevelChanged
    | AutoRetryStart
    | AutoRetryEnd
    | CompactionStart
    | CompactionEnd
    | ExtensionError
    | ApprovalRequested
    | ApprovalResolved
    | BashExecutionUpdate
    | ConnectionChanged
    | Gap
)
