"""Tools from typed functions: what models are told of them, what their bodies get, and how they end."""

from __future__ import annotations

import functools
import threading
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Literal

import attrs
import pytest
import trio

from pi_trio import (
    Tool,
    ToolContext,
    ToolExecutionUpdate,
    ToolResult,
    UsageError,
    abandoned,
    function_tool,
)
from pi_trio.messages import ImageContent, TextContent
from pi_trio.testing import Call
from pi_trio.typed_tool import ToolOptions


class Unit(Enum):
    CELSIUS = "C"
    KELVIN = "K"


@dataclass
class Spot:
    city: str
    country: str = "Norway"


@attrs.frozen
class Report:
    spot: Spot
    unit: Unit
    days: tuple[int, ...]


async def call(tool: Tool, /, **arguments) -> ToolResult:
    """Call a body alone."""

    async def nobody(partial: ToolResult) -> None:
        """Progress that nobody looks at."""

    return await tool.execute("1", arguments, nobody)


@function_tool
async def forecast(
    spot: Spot,
    days: Annotated[int, "How many"] = 3,
    unit: Unit = Unit.CELSIUS,
    *,
    detail: Literal["short", "long"] | None = None,
) -> Report:
    """The weather to come.

    Rain is likely.
    """
    return Report(spot, unit, tuple(range(days)))


def test_a_model_is_told_what_the_function_says() -> None:
    assert forecast.name == forecast.label == "forecast"
    assert forecast.description == "The weather to come.\n\nRain is likely."
    assert forecast.parameters == {
        "type": "object",
        "properties": {
            "spot": {
                "type": "object",
                "properties": {
                    "city": {"type": "string"},
                    "country": {"type": "string", "default": "Norway"},
                },
                "required": ["city"],
                "additionalProperties": False,
            },
            "days": {"type": "integer", "description": "How many", "default": 3},
            "unit": {"type": "string", "enum": ["C", "K"], "default": "C"},
            "detail": {"anyOf": [{"type": "string", "enum": ["short", "long"]}, {"type": "null"}]},
        },
        "required": ["spot"],
        "additionalProperties": False,
    }


async def test_the_body_gets_values_and_gives_one(stage) -> None:
    made = stage(
        Call("forecast", {"spot": {"city": "Bergen"}, "days": "2", "unit": "K"}), "So.", tools=[forecast]
    )
    await made.agent.prompt("Weather?")
    (result,) = made.results
    assert result.content == (
        TextContent('{"spot":{"city":"Bergen","country":"Norway"},"unit":"K","days":[0,1]}'),
    )


async def test_an_optional_list_is_read_as_models_send_it(stage) -> None:
    @function_tool
    async def total(numbers: list[int] | None = None) -> int:
        """Adds."""
        return sum(numbers or ())

    calls = [Call("total", {"numbers": sent}) for sent in ([1, 2], "[3, 4]", ["5"], None)]
    made = stage([*calls, Call("total")], "So.", tools=[total])
    await made.agent.prompt("Add.")
    assert made.said("toolResult") == ["3", "7", "5", "0", "0"]


async def test_arguments_that_do_not_fit_never_reach_the_function(stage) -> None:
    made = stage(Call("forecast", {"spot": {"town": "Bergen"}, "days": "two"}), "So.", tools=[forecast])
    await made.agent.prompt("Weather?")
    assert made.codes == ["invalid_arguments"]
    text = made.results[0].content[0].text
    assert "spot: 'city' is a required property" in text
    assert "days: 'two' is not of type 'integer'" in text


@pytest.mark.parametrize(
    ("value", "content", "structured"),
    [
        ("text", (TextContent("text"),), None),
        (None, (), None),
        (ImageContent("aGk=", "image/png"), (ImageContent("aGk=", "image/png"),), None),
        ([TextContent("a"), TextContent("b")], (TextContent("a"), TextContent("b")), None),
        ({"a": {1}, 2: Unit.KELVIN}, (TextContent('{"a":[1],"2":"K"}'),), {"a": [1], "2": "K"}),
        ([], (TextContent("[]"),), []),
        (False, (TextContent("false"),), False),
    ],
    ids=str,
)
async def test_what_is_returned_is_what_the_model_reads(value, content, structured) -> None:
    async def body() -> object:
        """Gives it."""
        return value

    result = await call(function_tool(body))
    assert (result.content, result.structured_content) == (content, structured)
    assert not result.is_error


async def test_a_result_passes_as_it_is() -> None:
    whole = ToolResult("x", details={"a": 1}, terminate=True)

    @function_tool
    def body() -> ToolResult:
        """Gives it."""
        return whole

    assert await call(body) is whole


async def test_what_json_cannot_say_is_an_error_result(stage) -> None:
    @function_tool
    async def opaque() -> object:
        """Gives something else."""
        return object()

    made = stage(Call("opaque"), "So.", tools=[opaque])
    await made.agent.prompt("Go.")
    assert made.results[0].is_error
    assert "JSON serializable" in made.results[0].content[0].text


async def test_what_the_function_raises_is_an_error_result(stage) -> None:
    @function_tool
    def divide(a: float, b: float) -> float:
        """Divides."""
        return a / b

    made = stage(Call("divide", {"a": 1, "b": 0}), "So.", tools=[divide])
    await made.agent.prompt("Divide.")
    assert made.results[0].is_error
    assert made.results[0].content[0].text == "float division by zero"


@pytest.mark.parametrize("where", ["trio", "thread"])
async def test_the_context_shows_progress(stage, where) -> None:
    @function_tool(name="work_on")
    async def on_trio(times: int, context: ToolContext) -> str:
        """Works."""
        for number in range(times):
            await context.update(f"{number} of {context.call_id}")
        return "done"

    @function_tool(name="work_on")
    def in_thread(context: ToolContext, times: int) -> str:
        """Works."""
        for number in range(times):
            trio.from_thread.run(context.update, ToolResult(f"{number} of {context.call_id}"))
        return "done"

    tool = on_trio if where == "trio" else in_thread
    assert list(tool.parameters["properties"]) == ["times"]
    made = stage(Call("work_on", {"times": 2}, id="c"), "So.", tools=[tool])
    await made.agent.prompt("Work.")
    shown = [event.partial_result.content for event in made.heard.of(ToolExecutionUpdate)]
    assert shown[:2] == [(TextContent("0 of c"),), (TextContent("1 of c"),)]


async def test_plain_functions_run_in_threads_side_by_side(stage) -> None:
    both = threading.Barrier(2, timeout=30)

    @function_tool
    def meet(name: str) -> str:
        """Waits for the other."""
        assert threading.current_thread() is not threading.main_thread()
        both.wait()
        return f"{name} is here"

    made = stage([Call("meet", {"name": "A"}), Call("meet", {"name": "B"})], "So.", tools=[meet])
    await made.agent.prompt("Meet.")
    assert made.said("toolResult") == ["A is here", "B is here"]


async def test_a_thread_that_asks_ends_with_the_call(stage) -> None:
    started, seen = trio.Event(), []

    @function_tool
    def count() -> None:
        """Counts for ever."""
        trio.from_thread.run_sync(started.set)
        try:
            while True:
                trio.from_thread.check_cancelled()
        except trio.Cancelled:
            seen.append("cancelled")
            raise

    made = stage(Call("count"), tools=[count])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(made.agent.prompt, "Count.")
        await started.wait()
        made.agent.abort()
    assert (seen, made.codes) == (["cancelled"], ["aborted"])


async def test_a_thread_that_does_not_ask_is_left_behind(stage, autojump_clock) -> None:
    started, release = trio.Event(), threading.Event()

    @function_tool
    def deaf() -> None:
        """Does not listen."""
        trio.from_thread.run_sync(started.set)
        release.wait()

    made = stage(Call("deaf"), tools=[deaf])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(made.agent.prompt, "Go.")
        await started.wait()
        made.agent.abort()
    assert made.codes == ["aborted"]
    assert "left behind" in made.results[0].content[0].text
    assert abandoned() == ("deaf",)
    release.set()  # or this test's own `trio.run` would wait for it


async def test_a_decorated_coroutine_function_runs_on_trio() -> None:
    def decorated(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            return function(*args, **kwargs)

        return wrapper

    @function_tool
    @decorated
    async def where(name: str) -> str:
        """Says where."""
        await trio.lowlevel.checkpoint()
        return f"{name} is on {threading.current_thread().name}"

    assert (await call(where, name="A")).content == (TextContent("A is on MainThread"),)


async def test_a_bound_method_is_a_tool() -> None:
    class Shop:
        stock = 3

        async def order(self, count: int = 1) -> str:
            """Orders."""
            self.stock -= count
            return f"{self.stock} left"

    shop = Shop()
    tool = function_tool(shop.order)
    assert (tool.name, tool.parameters["required"]) == ("order", [])
    assert (await call(tool, count=2)).content == (TextContent("1 left"),)
    assert shop.stock == 1


def test_options_are_those_of_a_tool() -> None:
    def body() -> None:
        """Its own."""

    tool = function_tool(name="n", description="d", timeout=5, execution_mode="sequential", label="L")(body)
    assert (tool.name, tool.description, tool.label) == ("n", "d", "L")
    assert (tool.timeout, tool.execution_mode) == (5, "sequential")
    fields = {field.name for field in attrs.fields(Tool)}
    assert fields - ToolOptions.__annotations__.keys() == {"parameters", "execute"}


def no_annotation(x, y: int = 1) -> None:
    """Bad."""


def star(*names: str) -> None:
    """Bad."""


def named(**names: str) -> None:
    """Bad."""


def by_position(x: int, /) -> None:
    """Bad."""


def unknown(x: int, y: list[Nowhere]) -> None:  # noqa: F821 - that is what is tested
    """Bad."""


def odd(x: int, y: complex = 1j) -> None:
    """Bad."""


def no_docstring(x: int) -> None:
    x += 1


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (no_annotation, "no_annotation.x: it has no annotation"),
        (star, "star.names: arguments have names"),
        (named, "named.names: arguments have names"),
        (by_position, "by_position.x: arguments have names"),
        (unknown, "unknown.y: 'Nowhere' is not known in its module"),
        (odd, "odd.y: complex cannot be said in JSON"),
        (no_docstring, "no_docstring: a model needs a description"),
        (functools.partial(odd), "functools.partial(<function odd"),
    ],
)
def test_what_cannot_be_a_tool_is_refused_by_name(function, message) -> None:
    with pytest.raises(UsageError) as refused:
        function_tool(function)
    assert str(refused.value).startswith(message)
