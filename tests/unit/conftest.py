"""The stage of the agent's tests: a scripted model, a tool that takes its time, and all that was heard."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pytest
import trio

from pi_trio.agent import Agent
from pi_trio.agent_driver import AgentDriver
from pi_trio.events import AgentEnd, AgentEvent, MessageEnd
from pi_trio.hub import Outbox
from pi_trio.loop.driver import Fact
from pi_trio.messages import AssistantMessage, ToolResultMessage, text_of
from pi_trio.testing import Recorder, ScriptedModel
from pi_trio.tool import Tool, ToolResult


def new_tool(name, execute, **options) -> Tool:
    return Tool(
        **{"name": name, "description": name, "parameters": {"type": "object"}, "execute": execute} | options
    )


class Stage:
    """An agent whose every event is kept twice: by a listener, and from an outbox.

    Its tool `work` takes `seconds`, says `text`, and leaves its steps in `trace`. A `listener`
    is subscribed before the recorder.
    """

    def __init__(self, *answers, tools=(), listener=None, work=None, **options) -> None:
        self.trace: list[str] = []
        self.running: set[str] = set()
        self.most = 0
        self.model = ScriptedModel(answers)
        self.work = new_tool("work", self._work, **(work or {}))
        self.agent = Agent(model=self.model.model, stream_fn=self.model, tools=[self.work, *tools], **options)
        if listener is not None:
            self.agent.subscribe(listener)
        self.heard = Recorder()
        self.agent.subscribe(self.heard)
        self.boxed = Recorder()
        outbox = Outbox(lambda: [self.boxed(each.event) for each in outbox.take()])
        self.agent._hub.attach(outbox)  # `open_events` would need a task of its own

    async def _work(self, call_id, args, on_update) -> ToolResult:
        self.trace.append(f"begin {call_id}")
        self.running.add(call_id)
        self.most = max(self.most, len(self.running))
        try:
            await trio.sleep(args.get("seconds", 0))
        except trio.Cancelled:
            self.trace.append(f"cancelled {call_id}")
            raise
        finally:
            self.running.discard(call_id)
        self.trace.append(f"end {call_id}")
        return ToolResult(args.get("text", call_id))

    def on(self, kind: str, action: Callable[[], object], *, often: bool = False) -> None:
        """Do `action` at the first event of a type, or at each of them."""

        def listener(event: AgentEvent) -> None:
            if event.type == kind:
                if not often:
                    unsubscribe()
                action()

        unsubscribe = self.agent.subscribe(listener)

    @property
    def results(self) -> list[ToolResultMessage]:
        return [each for each in self.agent.messages if isinstance(each, ToolResultMessage)]

    @property
    def codes(self) -> list[str | None]:
        return [(each.details or {}).get("code") for each in self.results]

    def request(self, number: int) -> list[str]:
        """The texts of a request; requests count from 0."""
        return [text_of(each.content) for each in self.model.requests[number].context.messages]

    def said(self, role: str = "user") -> list[str]:
        return [text_of(each.content) for each in self.agent.messages if each.role == role]

    def check(self) -> None:
        """What holds after every run, however it ended."""
        self.heard.check()
        assert [each.type for each in self.boxed.events] == [each.type for each in self.heard.events]
        check_results(self.agent.messages)
        told = {id(event.message) for event in self.heard.of(MessageEnd)}
        assert all(id(each) in told for end in self.heard.of(AgentEnd) for each in end.messages)
        assert not self.agent.is_streaming
        assert self.agent.streaming_message is None
        assert self.agent.pending_tool_calls == frozenset()


def check_results(messages: Iterable) -> None:
    """Every call of a complete answer has one result, in order, before anything else follows."""
    owed: list[str] = []
    for message in messages:
        if isinstance(message, ToolResultMessage):
            assert owed, f"a result without a call: {message.tool_call_id}"
            assert message.tool_call_id == owed.pop(0)
            continue
        assert not owed, f"no result for {owed}"
        if isinstance(message, AssistantMessage) and message.stop_reason not in ("error", "aborted"):
            owed = [call.id for call in message.tool_calls]
    assert not owed, f"no result for {owed}"


@pytest.fixture
def stage() -> Iterator[type[Stage]]:
    """Makes stages, and checks each of them when the test is over."""
    made: list[Stage] = []

    def make(*answers, **options) -> Stage:
        made.append(Stage(*answers, **options))
        return made[-1]

    yield make
    for each in made:
        each.check()


@pytest.fixture
def facts(monkeypatch) -> list[Fact]:
    """The facts of all runs, which an agent in memory does not keep."""
    kept: list[Fact] = []
    commit = AgentDriver.commit

    def keep(driver, *records) -> None:
        kept.extend(each for each in records if isinstance(each, Fact))
        commit(driver, *records)

    monkeypatch.setattr(AgentDriver, "commit", keep)
    return kept


@pytest.fixture
def tool():
    """Makes a tool of a name and a body."""
    return new_tool
