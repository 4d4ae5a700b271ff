"""The grammar of a run's events, and the page that explains it."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
import typing
from pathlib import Path

import pytest

from pi_trio.events import (
    AgentEnd,
    AgentEvent,
    AgentSettled,
    AgentStart,
    CoreEvent,
    Gap,
    InputReturned,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
    TurnEnd,
    TurnStart,
)
from pi_trio.llm.partial import PartialMessage
from pi_trio.llm.protocol import TextDelta
from pi_trio.loop.grammar import TRANSITIONS, EventMachine, IllegalEventError, State, check_events, guarded
from pi_trio.messages import AssistantMessage, TextContent, ToolCall, ToolResultMessage, UserMessage
from pi_trio.testing import Recorder
from pi_trio.tool import ToolResult

PAGE = Path(__file__).parents[2] / "docs" / "events.md"

HELLO = UserMessage.of("Hello")
HI = AssistantMessage((TextContent("Hi"),))
ASKS = AssistantMessage((ToolCall("a", "work"), ToolCall("b", "work")), stop_reason="toolUse")


def both(message) -> list[AgentEvent]:
    return [MessageStart(message), MessageEnd(message)]


def started(call_id: str) -> ToolExecutionStart:
    return ToolExecutionStart(call_id, "work", {})


def progress(call_id: str) -> ToolExecutionUpdate:
    return ToolExecutionUpdate(call_id, "work", {}, ToolResult("half"))


def ended(call_id: str) -> list[AgentEvent]:
    result = ToolResultMessage(call_id, "work", "done")
    return [ToolExecutionEnd(call_id, "work", ToolResult("done"), False), *both(result)]


def turn_end(message: AssistantMessage, *call_ids: str) -> TurnEnd:
    return TurnEnd(message, tuple(ToolResultMessage(each, "work", "done") for each in call_ids))


def update() -> MessageUpdate:
    partial = PartialMessage(HI)
    return MessageUpdate(TextDelta(0, "Hi"), partial.view())


def run(*steps: AgentEvent) -> list[AgentEvent]:
    return [AgentStart(), *steps, AgentEnd(()), AgentSettled(False)]


LEGAL = {
    "nothing": [],
    "an empty run": run(),
    "one answer": run(TurnStart(), *both(HELLO), MessageStart(HI), update(), MessageEnd(HI), turn_end(HI)),
    "two attempts": run(TurnStart(), *both(HI), *both(HI), turn_end(HI)),
    "two runs": [*run(), *run()],
    "calls that overlap": run(
        TurnStart(), *both(ASKS), started("a"), started("b"), progress("b"),
        *ended("a"), *ended("b"), turn_end(ASKS, "a", "b"),
    ),
    "other events anywhere": [Gap(), *run(InputReturned(()), TurnStart(), Gap(), *both(HI), turn_end(HI))],
    "an aborted answer owes nothing": run(
        TurnStart(), *both(HI), turn_end(AssistantMessage(ASKS.content, stop_reason="aborted"))
    ),
}  # fmt: skip

ILLEGAL = {
    "a step outside of a run": [TurnStart()],
    "a run in a run": [AgentStart(), AgentStart()],
    "an end without a start": [AgentEnd(())],
    "input between steps": [AgentStart(), MessageStart(HELLO)],
    "a step without an answer": [AgentStart(), TurnStart(), turn_end(HI)],
    "input after the answer": [AgentStart(), TurnStart(), *both(HI), MessageStart(HELLO)],
    "an update of nothing": [AgentStart(), TurnStart(), update()],
    "an answer that is not ended": [AgentStart(), TurnStart(), MessageStart(HI), turn_end(HI)],
    "a run that ends in a step": [AgentStart(), TurnStart(), *both(HI), AgentEnd(())],
    "a call before the answer": [AgentStart(), TurnStart(), started("a")],
    "progress of no call": [AgentStart(), TurnStart(), *both(ASKS), progress("a")],
    "an end of no call": [AgentStart(), TurnStart(), *both(ASKS), ended("a")[0]],
    "a call that starts twice": [AgentStart(), TurnStart(), *both(ASKS), started("a"), started("a")],
    "a call that ends twice": [
        AgentStart(), TurnStart(), *both(ASKS), started("a"), *ended("a"), ended("a")[0],
    ],
    "a step that ends while a call runs": [
        AgentStart(), TurnStart(), *both(ASKS), started("a"), turn_end(ASKS, "a", "b"),
    ],
    "a call without a result": [
        AgentStart(), TurnStart(), *both(ASKS), started("a"), *ended("a"), turn_end(ASKS, "a"),
    ],
    "results in another order": [
        AgentStart(), TurnStart(), *both(ASKS), started("a"), started("b"), *ended("b"), *ended("a"),
        turn_end(ASKS, "b", "a"),
    ],
    "results that were not told": [
        AgentStart(), TurnStart(), *both(ASKS), started("a"), *ended("a"), started("b"), *ended("b"),
        turn_end(ASKS),
    ],
    "a start after the end": [AgentStart(), AgentEnd(()), AgentStart()],
}  # fmt: skip


@pytest.mark.parametrize("events", LEGAL.values(), ids=LEGAL.keys())
def test_legal(events) -> None:
    assert check_events(events) is State.IDLE


@pytest.mark.parametrize("events", ILLEGAL.values(), ids=ILLEGAL.keys())
def test_illegal(events) -> None:
    """The last event is refused, and none before it."""
    check_events(events[:-1])
    with pytest.raises(IllegalEventError):
        check_events(events)


def test_an_illegal_event_changes_nothing() -> None:
    machine = EventMachine()
    machine.feed(AgentStart())
    with pytest.raises(IllegalEventError, match="message_update is not allowed in state 'between steps'"):
        machine.feed(update())
    machine.feed(TurnStart())
    assert machine.state is State.STEP


def test_a_guarded_reducer_takes_in_legal_events_only() -> None:
    taken: list[AgentEvent] = []
    reduce = guarded(taken.append, active=True)
    events = run(TurnStart(), *both(HI), turn_end(HI))
    for event in events[:-1]:
        reduce(event)
    with pytest.raises(IllegalEventError):
        reduce(AgentStart())
    reduce(events[-1])
    assert taken == events


GUARDED = """
import trio
from pi_trio import Agent, Tool, ToolResult, TurnStart
from pi_trio.loop.grammar import IllegalEventError
from pi_trio.testing import Call, Recorder, ScriptedModel

async def work(call_id, args, on_update):
    if disturbed:
        agent._hub.post(TurnStart())
    return ToolResult("done")

async def main():
    await agent.prompt("Go")
    assert agent.messages[-1].text == "Done"
    disturbed.append(True)
    try:
        await agent.prompt("Again")
    except IllegalEventError as error:
        print(error)

disturbed = []
tool = Tool(name="work", description="", parameters={"type": "object"}, execute=work)
model = ScriptedModel([Call("work"), "Done", Call("work"), "Done"])
agent = Agent(model=model.model, stream_fn=model, tools=[tool])
agent.subscribe(Recorder())
trio.run(main)
"""


@pytest.mark.parametrize("options", [[], ["-X", "dev"]])
def test_development_mode_holds_every_run_against_the_grammar(options) -> None:
    """An event out of place ends the run that told it; without the mode nobody looks."""
    done = subprocess.run(
        [sys.executable, *options, "-c", GUARDED], capture_output=True, text=True, timeout=50
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == ("turn_start is not allowed in state 'answered'\n" if options else "")


def test_every_state_can_be_reached_and_left() -> None:
    targets = {state for following in TRANSITIONS.values() for state in following.values()}
    assert targets == set(TRANSITIONS) == set(State)


def test_every_event_of_the_core_has_its_place() -> None:
    symbols = {symbol.split()[0] for following in TRANSITIONS.values() for symbol in following}
    assert symbols == {cls.type for cls in (*typing.get_args(CoreEvent), AgentSettled)}


def test_a_recorder_wants_whole_runs() -> None:
    recorder = Recorder()
    for event in run(TurnStart(), *both(HI), turn_end(HI))[:-1]:
        recorder(event)
    with pytest.raises(IllegalEventError, match="the run is not over"):
        recorder.check()
    recorder(AgentSettled(False))
    recorder.check()
    assert recorder.of(TurnStart) == [TurnStart()]
    assert recorder.word[:2] == ["agent_start", "turn_start"]


# ------------------------------------------------------------------ the page


def diagram() -> str:
    """The states as a Mermaid diagram; this is what the page shows."""
    edges: dict[tuple[State, State], list[str]] = {}
    for state, following in TRANSITIONS.items():
        for symbol, target in following.items():
            edges.setdefault((state, target), []).append(symbol)
    lines = [f'    {state.name.lower()}: "{state.value}"' for state in State]
    lines.append(f"    [*] --> {State.IDLE.name.lower()}")
    lines += [
        f"    {state.name.lower()} --> {target.name.lower()}: {', '.join(symbols)}"
        for (state, target), symbols in edges.items()
    ]
    return "\n".join(["stateDiagram-v2", *lines]) + "\n"


def test_the_page_shows_the_grammar() -> None:
    """If this fails, put what `diagram()` gives into the page."""
    (shown,) = re.findall(r"```mermaid\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert shown == diagram()


async def test_the_sample_of_the_page_runs() -> None:
    (sample,) = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    names: dict[str, typing.Any] = {}
    exec(f"async def main():\n{textwrap.indent(sample, '    ')}", names)
    await names["main"]()


def test_the_page_names_every_event() -> None:
    named = set(re.findall(r"^\| `(\w+)` \|", PAGE.read_text("utf-8"), re.MULTILINE))
    assert named == {cls.type for cls in typing.get_args(AgentEvent)}
