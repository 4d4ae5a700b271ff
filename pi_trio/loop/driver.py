"""The seam between the loop and what it runs for: memory or a session.

The loop is the only place where a step is run; a `Driver` decides everything that differs
between an agent in memory and one over a session file. `commit` and `admit` are
synchronous: no other task and no cancellation comes between the first committed message
and the frozen request, and what is committed is written before anything follows from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

from attrs import define, frozen

from pi_trio.events import AgentEvent
from pi_trio.hub import Hub
from pi_trio.llm.protocol import Failure, Model, StreamFunction, StreamOptions, ThinkingLevel
from pi_trio.loop.hooks import AgentContext, Hooks, TurnUpdate
from pi_trio.loop.lifetime import Lifetime
from pi_trio.messages import AgentMessage, LlmMessage
from pi_trio.tool import ExecutionMode, Tool

__all__ = [
    "Admission",
    "Driver",
    "EnterStep",
    "Fact",
    "QueueMode",
    "RejectStep",
    "Request",
    "Retry",
    "Step",
    "Turn",
    "tell",
]

QueueMode: TypeAlias = Literal["all", "one-at-a-time"]
"""How much of a queue one claim takes."""

TurnEndReason: TypeAlias = Literal[
    "completed", "blocked", "stopped", "max_tokens", "limit", "error", "aborted"
]


@frozen
class Fact:
    """Something durable that is not a message: a bracket, an attempt, the start of a call."""

    name: str
    data: Mapping[str, Any]


@define
class Turn:
    """What one claimed prompt causes. `batch` is the input of its first step.

    `owed` says that a request is due even if the batch is empty, as after an interruption.
    """

    number: int
    batch: Sequence[AgentMessage]
    owed: bool = False


@frozen
class Step:
    """One model request and the tool calls of its answer. Both numbers count from 1."""

    turn: int
    number: int

    def fact(self, name: str, /, **data: Any) -> Fact:
        """A fact of this step."""
        return Fact(name, {"turn": self.turn, "step": self.number, **data})


@frozen
class EnterStep:
    """The pre-step decision to go on, with exactly these messages.

    `starts_request_series` says that the next request need not extend the one before.
    """

    messages: Sequence[AgentMessage]
    starts_request_series: bool = False


@frozen
class RejectStep:
    """The pre-step decision that this input must not reach the model."""

    reason: str = ""


@frozen(kw_only=True)
class Request:
    """Everything about one attempt except the conversation."""

    model: Model
    thinking_level: ThinkingLevel
    stream: StreamFunction
    options: StreamOptions


@frozen
class Admission:
    """What was committed for a step, and the frozen conversation of its request.

    `messages` have the form that models know; the hooks `transform_context` and
    `convert_to_llm` make them anew from the transcript.
    """

    committed: Sequence[AgentMessage]
    system_prompt: str
    messages: Sequence[LlmMessage]
    tools: tuple[Tool, ...]


@frozen(kw_only=True)
class Retry:
    """Send a failed request again, after `delay` seconds. `announce` tells of it in events and facts."""

    delay: float
    attempt: int
    max_attempts: int
    announce: bool = True


class Driver(Protocol):
    """What a run is for. One driver serves one run at a time."""

    @property
    def hooks(self) -> Hooks:
        """The application's hooks."""

    @property
    def lifetime(self) -> Lifetime:
        """The cancel scopes of the run and its calls."""

    @property
    def records_stream(self) -> bool:
        """Whether answers are to keep when their pieces came."""

    @property
    def hub(self) -> Hub:
        """Who is told of everything."""

    @property
    def new_messages(self) -> list[AgentMessage]:
        """The messages that this run has committed, in order."""

    @property
    def tool_execution(self) -> ExecutionMode:
        """`sequential` makes every call a barrier."""

    @property
    def max_parallel_tool_calls(self) -> int:
        """The bound of the pool, read at each group of calls."""

    async def open_turn(self) -> Turn | None:
        """Claim the input of the next turn; None when nothing waits, or nothing may run now.

        It knows from `close_turn` how the last turn ended. Every turn it returns is closed.
        """

    def close_turn(self, turn: Turn, reason: TurnEndReason) -> None:
        """Record the end of a turn."""

    async def claim_steering(self) -> Sequence[AgentMessage]:
        """Claim the input of the open turn's next step."""

    def hand_back(self, messages: Sequence[AgentMessage]) -> None:
        """Take back what was claimed and not admitted, so that it is not lost."""

    def park(self, messages: Sequence[AgentMessage]) -> None:
        """Keep messages for the next step, before anything else that waits."""

    async def pre_step(self, step: Step, messages: Sequence[AgentMessage]) -> EnterStep | RejectStep:
        """Decide what enters the step. The decision is authoritative."""

    async def turn_stopping(self, turn: Turn) -> None:
        """The turn would stop here; who objects steers."""

    async def prepare_request(self, step: Step) -> Request:
        """Choose model, options and key. Nothing is committed yet."""

    def admit(self, step: Step, request: Request, messages: Sequence[AgentMessage]) -> Admission:
        """Commit what enters the step and freeze its context. No checkpoint."""

    def snapshot(self) -> AgentContext:
        """The conversation now, as hooks see it."""

    def commit(self, *records: AgentMessage | Fact) -> None:
        """Write, then take into the state. Raises `StorageError`; then nothing was taken."""

    async def retry(self, step: Step, failure: Failure, attempt: int) -> Retry | Failure:
        """What to do about failed attempt number `attempt` of a step: try again, or give up.

        A failure that is given up may say more than the one that came.
        """

    def update(self, update: TurnUpdate) -> None:
        """Take over what a hook changed for the following requests."""

    def add_tools(self, names: Sequence[str]) -> None:
        """Make registered tools available from the next request on."""


async def tell(driver: Driver, *events: AgentEvent) -> None:
    """Emit what must be told even if the run is cancelled meanwhile."""
    if driver.hub.listening:
        with driver.lifetime.shelter():
            await driver.hub.emit(*events)
    else:
        await driver.hub.emit(*events)
