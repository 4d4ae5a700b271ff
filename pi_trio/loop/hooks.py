"""The hook points of a run: what each is given, what it may decide, and its contract.

All hooks are optional coroutine functions. They run inside the run's cancel scope: an abort
arrives as `trio.Cancelled`. A hook that raises ends the run with an error, except that
`before_tool_call` and `after_tool_call` only fail their call. Nothing is lost either way:
brackets are closed, every call has a result, and the exception reaches the caller.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from attrs import field, frozen

from pi_trio.llm.protocol import Model, ThinkingLevel
from pi_trio.messages import (
    AgentMessage,
    AssistantMessage,
    LlmMessage,
    ToolCall,
    ToolResultMessage,
    Usage,
    as_tuple,
)
from pi_trio.tool import Tool, ToolResult

__all__ = [
    "AfterToolCallContext",
    "AfterToolCallResult",
    "AgentContext",
    "BeforeToolCallContext",
    "BeforeToolCallResult",
    "FinishTurnResult",
    "GetMessages",
    "Hooks",
    "RequestContext",
    "TurnContext",
    "TurnUpdate",
]


@frozen
class AgentContext:
    """What a request is made from: the prompt, the transcript and the tools that can run."""

    system_prompt: str = ""
    messages: tuple[AgentMessage, ...] = field(default=(), converter=as_tuple)
    tools: tuple[Tool, ...] = field(default=(), converter=as_tuple)


# ------------------------------------------------------------------ tool calls


@frozen
class BeforeToolCallContext:
    """A call that is about to run. `args` have been validated."""

    assistant_message: AssistantMessage
    tool_call: ToolCall
    args: Mapping[str, Any]
    context: AgentContext


@frozen
class BeforeToolCallResult:
    """`block` keeps the body from running; `reason` is then the text of the error result."""

    block: bool = False
    reason: str | None = None
    terminate: bool = False


@frozen
class AfterToolCallContext:
    """A call that has run."""

    assistant_message: AssistantMessage
    tool_call: ToolCall
    args: Mapping[str, Any]
    result: ToolResult
    is_error: bool
    context: AgentContext


@frozen(kw_only=True)
class AfterToolCallResult:
    """Replaces fields of the result, one by one; None leaves a field as it is."""

    content: Sequence[Any] | str | None = None
    details: Any = None
    is_error: bool | None = None
    usage: Usage | None = None
    terminate: bool | None = None


# ------------------------------------------------------------------ steps and requests


@frozen
class TurnContext:
    """A step that is over. `new_messages` are those of the run so far."""

    message: AssistantMessage
    tool_results: tuple[ToolResultMessage, ...]
    context: AgentContext
    new_messages: tuple[AgentMessage, ...]


@frozen(kw_only=True)
class TurnUpdate:
    """Changes for the following requests of this run; None changes nothing."""

    context: AgentContext | None = None
    model: Model | None = None
    thinking_level: ThinkingLevel | None = None


@frozen
class FinishTurnResult:
    """`end` ends the run without polling a queue; `continue` owes one further request."""

    action: Literal["end", "continue"]


@frozen
class RequestContext:
    """A request that is about to be made."""

    context: AgentContext
    model: Model
    thinking_level: ThinkingLevel


ConvertToLlm: TypeAlias = Callable[[Sequence[AgentMessage]], Awaitable[Sequence[LlmMessage]]]
TransformContext: TypeAlias = Callable[[Sequence[AgentMessage]], Awaitable[Sequence[AgentMessage]]]
GetMessages: TypeAlias = Callable[[], Awaitable[Sequence[AgentMessage]]]


@frozen(kw_only=True)
class Hooks:
    """The hooks of a run.

    - `transform_context`: the messages of one request, before conversion; the transcript
      itself is not changed.
    - `convert_to_llm`: the application's messages to the four roles that models know;
      without it, `pi_trio.loop.convert` does it.
    - `before_tool_call`: may block a call. `after_tool_call`: may replace parts of a result.
    - `prepare_request`: before every request, the first too; may change model and level.
    - `finish_turn`: before `turn_end`; may end the run or owe a further request.
    - `prepare_next_turn`: after `turn_end`; may change the following requests.
      `prepare_next_turn_with_context` wins over it.
    - `should_stop_after_turn`: true ends the run at once and leaves the queues alone.
    - `get_steering_messages`, `get_follow_up_messages`: input besides the queues, polled
      after each step, and when the agent would stop.
    """

    transform_context: TransformContext | None = None
    convert_to_llm: ConvertToLlm | None = None
    before_tool_call: Callable[[BeforeToolCallContext], Awaitable[BeforeToolCallResult | None]] | None = None
    after_tool_call: Callable[[AfterToolCallContext], Awaitable[AfterToolCallResult | None]] | None = None
    prepare_request: Callable[[RequestContext], Awaitable[TurnUpdate | None]] | None = None
    finish_turn: Callable[[TurnContext], Awaitable[FinishTurnResult | None]] | None = None
    prepare_next_turn: Callable[[], Awaitable[TurnUpdate | None]] | None = None
    prepare_next_turn_with_context: Callable[[TurnContext], Awaitable[TurnUpdate | None]] | None = None
    should_stop_after_turn: Callable[[TurnContext], Awaitable[bool]] | None = None
    get_steering_messages: GetMessages | None = None
    get_follow_up_messages: GetMessages | None = None
