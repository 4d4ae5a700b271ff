"""The points of the lifecycle where an application can take part, and how handlers are kept.

A *waterfall* is a decision: handlers wrap each other, the first registered outermost; each
is given a context and `next`, and what it returns is the decision. Calling `next` asks the
handlers below, and at last the runtime itself. A *checkpoint* is a moment: its handlers run
one after the other. Handlers run inside the run's cancel scope; what they raise ends the
turn with an error, and nothing is lost.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Generic, TypeAlias, TypeVar

from attrs import field, frozen

from pi_trio.llm.protocol import Context, Failure, Model, StreamEvents, StreamOptions, ThinkingLevel
from pi_trio.loop.driver import EnterStep, RejectStep, Retry, Step
from pi_trio.messages import AgentMessage
from pi_trio.tool import Tool

__all__ = [
    "ASSEMBLE",
    "POINTS",
    "PRE_STEP",
    "REQUEST",
    "REQUEST_ERROR",
    "STREAM",
    "TURN_STOPPING",
    "Assemble",
    "Checkpoint",
    "CheckpointHandler",
    "Handlers",
    "Next",
    "PreStep",
    "RequestConfig",
    "RequestError",
    "StreamCall",
    "TurnStopping",
    "Waterfall",
    "WaterfallHandler",
]

C = TypeVar("C")
R = TypeVar("R")

Next: TypeAlias = Callable[[C], Awaitable[R]]
WaterfallHandler: TypeAlias = Callable[[C, Next[C, R]], Awaitable[R]]
CheckpointHandler: TypeAlias = Callable[[C], Awaitable[None]]


@frozen
class Waterfall(Generic[C, R]):
    """A decision of type R about a context of type C."""

    name: str


@frozen
class Checkpoint(Generic[C]):
    """A moment, with a context of type C."""

    name: str


# ------------------------------------------------------------------ the contexts


@frozen
class Assemble:
    """The system prompt of a step is put together: the decision is its sections, in order."""

    step: Step
    tools: Sequence[Tool]


@frozen
class PreStep:
    """Input was claimed and is about to enter a step."""

    step: Step
    messages: tuple[AgentMessage, ...]


@frozen(kw_only=True)
class RequestConfig:
    """Where and how an attempt is sent. It can change routing and sampling, never messages."""

    step: Step
    model: Model
    thinking_level: ThinkingLevel
    options: StreamOptions


@frozen
class StreamCall:
    """One stream about to be opened, over a request that is frozen."""

    step: Step
    model: Model
    context: Context
    options: StreamOptions


@frozen
class RequestError:
    """An attempt failed. None leaves the failure as it is."""

    step: Step
    failure: Failure
    attempt: int


@frozen
class TurnStopping:
    """The turn would stop naturally here. Who objects steers."""

    turn: int


ASSEMBLE: Waterfall[Assemble, Mapping[str, str]] = Waterfall("system-prompt/assemble")
PRE_STEP: Waterfall[PreStep, EnterStep | RejectStep] = Waterfall("agent/pre-step")
REQUEST: Waterfall[RequestConfig, RequestConfig] = Waterfall("agent/request")
STREAM: Waterfall[StreamCall, AbstractAsyncContextManager[StreamEvents]] = Waterfall("llm/stream")
REQUEST_ERROR: Waterfall[RequestError, Retry | None] = Waterfall("agent/request-error")
TURN_STOPPING: Checkpoint[TurnStopping] = Checkpoint("agent/turn-stopping")

POINTS: Mapping[str, Waterfall[Any, Any] | Checkpoint[Any]] = {
    point.name: point for point in (ASSEMBLE, PRE_STEP, REQUEST, STREAM, REQUEST_ERROR, TURN_STOPPING)
}
"""All points by name, for extensions."""


# ------------------------------------------------------------------ the handlers


@frozen
class Handlers:
    """Who takes part where. Registering gives the function that unregisters."""

    _by_point: dict[str, list[Callable[..., Awaitable[Any]]]] = field(factory=dict)

    def add(self, name: str, handler: Callable[..., Awaitable[Any]]) -> Callable[[], None]:
        """Put `handler` at a point, inside those that are there. More than one may be the same."""
        handlers = self._by_point.setdefault(name, [])
        handlers.append(handler)

        def remove() -> None:
            if handler in handlers:
                handlers.remove(handler)

        return remove

    def at(self, point: Waterfall[Any, Any] | Checkpoint[Any]) -> bool:
        """Whether anybody takes part at this point."""
        return bool(self._by_point.get(point.name))

    async def decide(self, point: Waterfall[C, R], context: C, default: Next[C, R]) -> R:
        """Run a waterfall down to `default`."""
        following = default
        for handler in reversed(self._by_point.get(point.name, ())):
            following = _wrap(handler, following)
        return await following(context)

    async def pass_by(self, point: Checkpoint[C], context: C) -> None:
        """Run a checkpoint."""
        for handler in tuple(self._by_point.get(point.name, ())):
            await handler(context)


def _wrap(handler: WaterfallHandler[C, R], following: Next[C, R]) -> Next[C, R]:
    async def ask(context: C) -> R:
        return await handler(context, following)

    return ask
