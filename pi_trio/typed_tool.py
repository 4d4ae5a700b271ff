"""Tools from typed functions: the annotations are the schema, the docstring is the description."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from functools import partial
from typing import Any, TypedDict, Unpack, overload

import attrs
import trio
from attrs import frozen

from pi_trio import codec
from pi_trio.annotations import Form, Member, Place, hints_of, object_form
from pi_trio.errors import UsageError
from pi_trio.messages import ImageContent, TextContent
from pi_trio.tool import Execute, ExecutionMode, OnUpdate, Tool, ToolResult

__all__ = ["ToolContext", "ToolOptions", "function_tool"]


@frozen
class ToolContext:
    """The call that a typed tool works for. A parameter with this annotation is given it, by any name."""

    call_id: str
    on_update: OnUpdate

    async def update(self, partial_result: ToolResult | str) -> None:
        """Show progress. In a thread: `trio.from_thread.run(context.update, …)`."""
        await self.on_update(
            partial_result if isinstance(partial_result, ToolResult) else ToolResult(partial_result)
        )


class ToolOptions(TypedDict, total=False):
    """What of a `Tool` is not the function's to say, or is to be another than it says."""

    name: str
    description: str
    label: str
    prepare_arguments: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None
    execution_mode: ExecutionMode | Callable[[Mapping[str, Any]], ExecutionMode]
    timeout: float | None
    prompt_snippet: str | None
    prompt_guidelines: Iterable[str]


@overload
def function_tool(function: Callable[..., object], /, **options: Unpack[ToolOptions]) -> Tool: ...
@overload
def function_tool(**options: Unpack[ToolOptions]) -> Callable[[Callable[..., object]], Tool]: ...
def function_tool(
    function: Callable[..., object] | None = None, /, **options: Unpack[ToolOptions]
) -> Tool | Callable[[Callable[..., object]], Tool]:
    """A tool that calls `function`; also a decorator, with or without options.

    Each parameter is an argument of the tool and needs an annotation; `Annotated[int, "How many"]`
    describes it. What the function returns is what the model reads: text, content blocks, nothing,
    a `ToolResult`, or any other value as JSON. What it raises is an error result.

    A function that is not a coroutine function runs in a thread. An abort cannot stop a thread: one
    that works on is left behind when the grace of the run is over, and the result says so. It may ask
    with `trio.from_thread.check_cancelled()`, which raises once the call is to stop.

    Raises `UsageError`, naming the parameter, for what cannot be said in JSON Schema.
    """
    if function is None:
        return partial(function_tool, **options)
    if not inspect.isroutine(function):
        raise UsageError(f"{function!r} is not a function")
    name = options.get("name") or function.__name__
    place = Place(name)
    description = options.get("description") or inspect.getdoc(function)
    if not description:
        raise place.refusal("a model needs a description: write a docstring, or give `description`")
    form, context_name = _form_of_call(function, place)
    given: dict[str, Any] = {**options, "name": name, "description": description}
    return Tool(parameters=form.schema, execute=_body(function, form, context_name), **given)


def _form_of_call(function: Callable[..., object], place: Place) -> tuple[Form, str | None]:
    """The form of a function's arguments, and which parameter takes the context."""
    hints = hints_of(function, place)
    members, context_name = [], None
    for parameter in inspect.signature(function).parameters.values():
        if hints.get(parameter.name) is ToolContext:
            context_name = parameter.name
            continue
        here = place.member(parameter.name)
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise here.refusal("arguments have names: no *args, **kwargs, or positional-only parameters")
        if parameter.name not in hints:
            raise here.refusal("it has no annotation")
        required = parameter.default is parameter.empty
        members.append(Member(parameter.name, hints[parameter.name], parameter.default, required))
    return object_form(members, place, dict), context_name


def _body(function: Callable[..., Any], form: Form, context_name: str | None) -> Execute:
    on_trio = inspect.iscoroutinefunction(inspect.unwrap(function))

    async def execute(call_id: str, args: Mapping[str, Any], on_update: OnUpdate) -> ToolResult:
        arguments = form.read(args)
        if context_name is not None:
            arguments[context_name] = ToolContext(call_id, on_update)
        if on_trio:
            return _result(await function(**arguments))
        return _result(await trio.to_thread.run_sync(partial(function, **arguments)))

    return execute


def _result(value: object) -> ToolResult:
    """What the model reads of a returned value."""
    if isinstance(value, ToolResult):
        return value
    if value is None:
        return ToolResult()
    if isinstance(value, str):
        return ToolResult(value)
    blocks = value if isinstance(value, (list, tuple)) else [value]
    if blocks and all(isinstance(block, (TextContent, ImageContent)) for block in blocks):
        return ToolResult(tuple(blocks))
    data = _plain(value)
    return ToolResult(codec.dumps(data).decode(), structured_content=data)


def _plain(value: Any) -> Any:
    """Plain data of what a function returned, under the names that it has in Python."""
    if isinstance(value, Enum):
        return _plain(value.value)
    if dataclasses.is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if attrs.has(type(value)):
        return {field.name: _plain(getattr(value, field.name)) for field in attrs.fields(type(value))}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in value]
    return value
