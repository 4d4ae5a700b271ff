"""How a session is worked on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from attrs import field, frozen

from pi_trio.compaction.plan import CompactionSettings
from pi_trio.errors import UsageError
from pi_trio.harness.limits import Limits
from pi_trio.harness.retry import RetryPolicy
from pi_trio.llm.auth import Credential
from pi_trio.llm.protocol import Model, StreamFunction, StreamOptions
from pi_trio.loop.driver import QueueMode
from pi_trio.loop.hooks import Hooks
from pi_trio.loop.lifetime import ABORT_GRACE
from pi_trio.tool import ExecutionMode, Tool, named_apart

__all__ = ["HarnessOptions"]


def _no_sections(_tools: Sequence[Tool]) -> dict[str, str]:
    return {}


async def _no_key(_model: Model) -> Credential:
    return Credential("", "no key needed")


def _anything(_model: Model) -> None:
    return None


def _without_input(_options: HarnessOptions, _field: object, hooks: Hooks) -> None:
    """A session's input is in its file before it is used, so no hook can bring some."""
    for name in ("get_steering_messages", "get_follow_up_messages"):
        if getattr(hooks, name) is not None:
            raise UsageError(f"a session does not ask the hook {name}: steer and follow_up bring its input")


@frozen(kw_only=True)
class HarnessOptions:
    """How a session is worked on.

    Of the registered `tools`, those in `active_tool_names` are offered to models (None: all)
    while the branch says nothing else.
    `sections` makes the system prompt's sections for the active tools. `credential` is asked
    before each request. `preflight` raises a `PiError` if a model cannot be asked at all: it is called
    before input is taken that would start a run, and must not wait. `limits` end what goes too far.
    `record_stream` keeps in each answer when its pieces came. `findings`
    are for a person to know. `abort_grace` is how long, in seconds, hooks and listeners may
    still take after an abort.
    """

    stream_function: Callable[[Model], StreamFunction]
    credential: Callable[[Model], Awaitable[Credential]] = _no_key
    preflight: Callable[[Model], None] = _anything
    limits: Limits = field(factory=Limits)
    tools: tuple[Tool, ...] = field(default=(), converter=named_apart)
    active_tool_names: tuple[str, ...] | None = None
    sections: Callable[[Sequence[Tool]], dict[str, str]] = _no_sections
    hooks: Hooks = field(factory=Hooks, validator=_without_input)
    request: StreamOptions = field(factory=StreamOptions)
    steering_mode: QueueMode = "all"
    follow_up_mode: QueueMode = "one-at-a-time"
    tool_execution: ExecutionMode = "parallel"
    max_parallel_tool_calls: int = 10
    retry: RetryPolicy = field(factory=RetryPolicy)
    compaction: CompactionSettings = field(factory=CompactionSettings)
    branch_reserve: int = 16_384
    record_stream: bool = True
    findings: tuple[str, ...] = ()
    abort_grace: float = ABORT_GRACE
