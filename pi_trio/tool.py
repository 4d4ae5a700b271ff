"""Tools: what the model can call, what a call gives back, and how arguments are checked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, Literal, Protocol, TypeAlias

from attrs import field, frozen

from pi_trio.errors import UsageError
from pi_trio.messages import (
    AgentMessage,
    ImageContent,
    OpaqueContent,
    TextContent,
    ToolSchema,
    Usage,
    as_tuple,
)

__all__ = ["Execute", "ExecutionMode", "OnUpdate", "Tool", "ToolResult", "named_apart", "names_of"]

ExecutionMode: TypeAlias = Literal["parallel", "sequential"]


def _blocks(content: Any) -> tuple[TextContent | ImageContent | OpaqueContent, ...]:
    return (TextContent(content),) if isinstance(content, str) else tuple(content)


@frozen
class ToolResult:
    """What a tool gives back.

    `content` goes to the model (a plain string becomes one text block); `details` are for
    screens and logs. `terminate` asks that no further request follow, which holds only if
    every result of the batch asks it. `added_tool_names` makes registered tools available
    from the next request on. `context` are messages for the next step, after all results.
    """

    content: tuple[TextContent | ImageContent | OpaqueContent, ...] = field(default=(), converter=_blocks)
    details: Any = None
    usage: Usage | None = None
    is_error: bool = False
    terminate: bool = False
    added_tool_names: tuple[str, ...] = field(default=(), converter=as_tuple)
    structured_content: Any = None
    context: tuple[AgentMessage, ...] = field(default=(), converter=as_tuple)


OnUpdate: TypeAlias = Callable[[ToolResult], Awaitable[None]]
"""Reports progress. Calls after the body has returned are ignored."""


class Execute(Protocol):
    """The body of a tool.

    `args` have been validated. Raising makes an error result of the exception's text. An
    abort arrives as `trio.Cancelled` at the next checkpoint: clean up and let it pass.
    """

    async def __call__(self, call_id: str, args: Mapping[str, Any], on_update: OnUpdate) -> ToolResult: ...


@frozen(kw_only=True, eq=False)
class Tool:
    """A tool. `parameters` is the JSON Schema of its arguments.

    `prepare_arguments` may repair what models commonly get wrong, before validation.
    `execution_mode` may be a function of the arguments; `sequential` calls run alone.
    `timeout` is in seconds; None means no limit. `prompt_snippet` is the line about the
    tool in the system prompt, `prompt_guidelines` are rules for using it.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    execute: Execute
    label: str = field()
    prepare_arguments: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None
    execution_mode: ExecutionMode | Callable[[Mapping[str, Any]], ExecutionMode] = "parallel"
    timeout: float | None = None
    prompt_snippet: str | None = None
    prompt_guidelines: tuple[str, ...] = field(default=(), converter=as_tuple)

    @label.default
    def _label_from_name(self) -> str:
        return self.name

    @cached_property
    def schema(self) -> ToolSchema:
        """What the model is told."""
        return ToolSchema(self.name, self.description, self.parameters)


def named_apart(tools: Iterable[Tool]) -> tuple[Tool, ...]:
    """These tools. Raises `UsageError` for what is none, and for a name that two of them have."""
    found: dict[str, Tool] = {}
    for tool in tools:
        if not isinstance(tool, Tool):
            raise UsageError(f"{tool!r} is no Tool: function_tool makes one of a function")
        if tool.name in found:
            raise UsageError(f"two tools have the name {tool.name!r}: a model could not tell them apart")
        found[tool.name] = tool
    return tuple(found.values())


def names_of(tools: Iterable[Tool], names: Iterable[str]) -> tuple[str, ...]:
    """These names, each once. Raises `UsageError` for one that none of the tools has."""
    chosen, there_are = tuple(dict.fromkeys(names)), [tool.name for tool in tools]
    for name in chosen:
        if name not in there_are:
            raise UsageError(f"there is no tool {name!r}; there are: {', '.join(there_are) or 'none'}")
    return chosen
