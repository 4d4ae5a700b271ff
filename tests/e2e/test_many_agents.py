"""Eight agents with eight sessions in one program: one that crashes leaves the other seven untouched."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from pi_trio import (
    Agent,
    AgentHarness,
    HarnessOptions,
    Hooks,
    PiError,
    RuntimeConfig,
    Session,
    StorageError,
    function_tool,
    open_harness,
    open_runtime,
)
from pi_trio.harness.points import TURN_STOPPING
from pi_trio.loop.grammar import State, check_events
from pi_trio.messages import text_of
from pi_trio.testing import Call, Hang, Recorder, ScriptedModel
from pi_trio.testing.storage import LimitedDisk

COUNT = 8
CRASHED = 3
SAID = ["One.", "", "Met.", "So.", "Two.", "Done."]
"""What a session that nothing happened to has in the end: two turns, one with a call."""


class CrashError(Exception):
    """What the test lets go wrong."""


class Meeting:
    """Everybody waits until all are there, so all runs are in the middle when one of them crashes."""

    def __init__(self) -> None:
        self.expected = COUNT
        self._all_here = trio.Event()
        self.tool = function_tool(self.meet)

    async def meet(self) -> str:
        """Waits for the others."""
        self.expected -= 1
        if not self.expected:
            self._all_here.set()
        await self._all_here.wait()
        return "Met."


async def crash(*_: object) -> None:
    raise CrashError


def crash_at(kind: str) -> Callable[[Any], None]:
    def listener(event: Any) -> None:
        if event.type == kind:
            raise CrashError

    return listener


def answers(number: int, how: str) -> ScriptedModel:
    second: Any = "So."
    if number == CRASHED and how == "the model's code":
        second = CrashError()
    return ScriptedModel([Call("meet"), second, "Done."])


def sabotage(harness: AgentHarness, disk: LimitedDisk, how: str) -> None:
    match how:
        case "a handler":
            harness.on(TURN_STOPPING, crash)
        case "a listener":
            harness.hub.subscribe(crash_at("tool_execution_end"))
        case "a listener of an idle session":
            harness.hub.subscribe(crash_at("session_info_changed"))
        case "the disk":
            harness.hub.subscribe(lambda event: _fill(disk) if event.type == "tool_execution_end" else None)


def _fill(disk: LimitedDisk) -> None:
    disk.space = 10


HOW = ["a handler", "a hook", "a listener", "a listener of an idle session", "the model's code", "the disk"]


@pytest.mark.parametrize("how", HOW)
async def test_one_of_eight_harnesses_crashes(tmp_path: Path, how: str) -> None:
    meeting = Meeting()
    failures: dict[int, Exception] = {}
    heard = [Recorder() for _ in range(COUNT)]

    async def live(number: int) -> None:
        disk = LimitedDisk()
        session = Session.new(str(tmp_path), tmp_path / f"{number}.jsonl", write=disk)
        model = answers(number, how)
        hooks = Hooks(finish_turn=crash) if (number, how) == (CRASHED, "a hook") else Hooks()
        options = HarnessOptions(stream_function=lambda _: model, tools=(meeting.tool,), hooks=hooks)
        try:
            async with open_harness(session, options, model=model.model) as harness:
                harness.hub.subscribe(heard[number])
                if number == CRASHED:
                    sabotage(harness, disk, how)
                for text in ("One.", "Two."):
                    harness.prompt(text)
                    await harness.wait_for_idle()
                    harness.set_session_name(f"number {number}")
                    await trio.testing.wait_all_tasks_blocked()  # it is told while nothing runs
        except (CrashError, PiError) as error:
            failures[number] = error

    async with trio.open_nursery() as nursery:
        for number in range(COUNT):
            nursery.start_soon(live, number)

    assert list(failures) == [CRASHED]
    assert isinstance(failures[CRASHED], StorageError if how == "the disk" else CrashError)
    for number in range(COUNT):
        heard[number].check()
        again = Session.open(tmp_path / f"{number}.jsonl")
        if number != CRASHED:
            messages = again.build_context().messages
            assert [text_of(message.content) for message in messages if message.role != "system"] == SAID
            assert again.name == f"number {number}"
            assert not again.findings
        again.close()


@pytest.mark.parametrize("how", ["a handler", "a listener of an idle session"])
@pytest.mark.usefixtures("demo_in_a_hurry")
async def test_one_of_eight_sessions_of_a_runtime_crashes(tmp_path: Path, how: str) -> None:
    config = RuntimeConfig(cwd=tmp_path, agent_dir=tmp_path / "agent", demo=True)
    failures: dict[int, Exception] = {}
    async with open_runtime(config) as runtime:
        ids = [(await runtime.new_session()).session.id for _ in range(COUNT)]
        logs = [Recorder() for _ in ids]

        async def live(number: int, session_id: str) -> None:
            harness = runtime.harness(session_id)
            harness.hub.subscribe(logs[number])
            if number == CRASHED:
                sabotage(harness, LimitedDisk(), how)
            try:
                for text in ("One.", "Two."):
                    await runtime.prompt(session_id, text)
                    await runtime.wait_for_idle(session_id)
                    await runtime.set_session_name(session_id, f"number {number}")
                    await trio.testing.wait_all_tasks_blocked()
            except CrashError as error:
                failures[number] = error

        async with trio.open_nursery() as nursery:
            for number, session_id in enumerate(ids):
                nursery.start_soon(live, number, session_id)
        assert list(failures) == [CRASHED]
        for number, session_id in enumerate(ids):
            logs[number].check()
            said = runtime.harness(session_id).conversation.transcript
            if number != CRASHED:
                assert [message.role for message in said] == ["user", "assistant"] * 2
    assert len(list((tmp_path / "agent").rglob("*.jsonl"))) == COUNT


@pytest.mark.parametrize("how", ["a hook", "a listener", "the model's code"])
async def test_one_of_eight_agents_crashes(how: str) -> None:
    meeting = Meeting()
    failures: dict[int, Exception] = {}
    agents: list[Agent] = []
    for number in range(COUNT):
        model = answers(number, how)
        hooks = Hooks(finish_turn=crash) if (number, how) == (CRASHED, "a hook") else None
        agents.append(Agent(model=model.model, stream_fn=model, tools=[meeting.tool], hooks=hooks))
        if (number, how) == (CRASHED, "a listener"):
            agents[-1].subscribe(crash_at("tool_execution_end"))

    async def live(number: int) -> None:
        try:
            for text in ("One.", "Two."):
                await agents[number].prompt(text)
        except CrashError as error:
            failures[number] = error

    async with trio.open_nursery() as nursery:
        for number in range(COUNT):
            nursery.start_soon(live, number)

    assert list(failures) == [CRASHED]
    said = [[text_of(message.content) for message in agent.messages] for agent in agents]
    assert all(each == SAID for number, each in enumerate(said) if number != CRASHED)


async def test_a_harness_that_is_left_in_the_middle_has_saved_and_let_go(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    model = ScriptedModel([[Call("meet"), Call("meet")], Hang()])
    meeting = Meeting()
    options = HarnessOptions(stream_function=lambda _: model, tools=(meeting.tool,))
    log = Recorder()
    with trio.CancelScope() as scope:
        async with open_harness(Session.new(str(tmp_path), path), options, model=model.model) as harness:
            harness.hub.subscribe(log)
            harness.prompt("Go.")
            while meeting.expected > COUNT - 2:
                await trio.testing.wait_all_tasks_blocked()
            scope.cancel()
            await trio.sleep_forever()
    assert check_events(log.events) is State.IDLE
    again = Session.open(path)  # nobody holds its lock
    roles = [message.role for message in again.build_context().messages]
    again.close()
    assert roles == ["user", "assistant", "toolResult", "toolResult"]
