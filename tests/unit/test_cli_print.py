"""Print mode over a small runtime: what is written, and with which status it ends."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from functools import partial
from typing import cast

import pytest
import trio
import trio.testing
from attrs import define, field

from pi_trio.cli.answer_schema import AnswerSchema
from pi_trio.cli.conversation import Conversation
from pi_trio.cli.print_mode import Printer
from pi_trio.cli.prompts import Prompt
from pi_trio.cli.stdio import Output
from pi_trio.errors import InternalError
from pi_trio.events import (
    AgentEnd,
    AgentEvent,
    AgentSettled,
    AgentStart,
    EntryAppended,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    QueueUpdate,
)
from pi_trio.hub import Hub, Outbox
from pi_trio.llm.partial import PartialMessage
from pi_trio.llm.protocol import Model, TextDelta
from pi_trio.messages import AssistantMessage, ImageContent, StopReason, TextContent, ThinkingContent
from pi_trio.remote.interface import Disposition, Runtime, SessionInfo, Snapshot

SESSION = SessionInfo(id="s1", path=None, cwd="/p", timestamp="2030-01-02T03:04:05.678Z")


def answer(*texts: str, stop_reason: StopReason = "stop", error: str | None = None) -> AssistantMessage:
    blocks = (ThinkingContent("hm"), *(TextContent(text) for text in texts))
    return AssistantMessage(blocks, stop_reason=stop_reason, error_message=error, timestamp=1)


def events_of(message: AssistantMessage) -> list[AgentEvent]:
    """A run that streams and ends with `message`."""
    partial = PartialMessage(message)
    piece = TextDelta(1, message.text)
    partial.apply(piece)
    return [
        AgentStart(),
        MessageStart(partial.message()),
        MessageUpdate(piece, partial.view()),
        MessageEnd(message),
        AgentEnd((message,)),
        AgentSettled(aborted=message.stop_reason == "aborted"),
    ]


@define
class ScriptedRuntime:
    """One session that answers each prompt with the next of `runs`, and None by running for ever."""

    runs: list[list[AgentEvent] | None]
    hub: Hub = field(factory=lambda: Hub(lambda event: None))
    prompts: list[tuple[str, Sequence[ImageContent]]] = field(factory=list)
    outboxes: list[Outbox] = field(factory=list)
    prompted: trio.Event = field(factory=trio.Event)
    running: bool = False

    async def subscribe(self, session_id: str, outbox: Outbox) -> Snapshot:
        self.outboxes.append(outbox)
        self.hub.attach(outbox)
        return Snapshot(
            session=SESSION,
            epoch="e",
            seq=0,
            heads=(),
            leaf_id=None,
            running=False,
            streaming=None,
            running_calls=(),
            queue=QueueUpdate((), ()),
            model=Model("m"),
            thinking_level="off",
        )

    async def prompt(self, session_id: str, text: str, images: Sequence[ImageContent] = ()) -> Disposition:
        self.prompts.append((text, images))
        events = self.runs.pop(0)
        self.running = events is None
        for event in events or [AgentStart()]:
            await self.hub.emit(event)
        self.prompted.set()
        return "started"

    async def abort(self, session_id: str) -> None:
        if self.running:
            self.running = False
            await self.hub.emit(AgentSettled(aborted=True))


class Pipe:
    """A pipe whose writing end is the program's output."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        self.output = Output(self._write)

    def close_reader(self) -> None:
        os.close(self._read)
        self._read = -1

    def text(self) -> str:
        """All that was written; closes the writing end."""
        os.close(self._write)
        self._write = -1
        with os.fdopen(os.dup(self._read), "rb") as file:
            return file.read().decode()

    def close(self) -> None:
        for end in (self._read, self._write):
            if end >= 0:
                os.close(end)


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    made.close()


async def hold(
    runtime: ScriptedRuntime,
    pipe: Pipe,
    *prompts: str,
    as_json: bool = False,
    schema: AnswerSchema | None = None,
    timeout: float | None = None,
) -> int:
    """Hold a conversation as print mode does."""
    printer = Printer(pipe.output, as_json=as_json)
    await printer.begin(SESSION)
    conversation = Conversation(cast("Runtime", runtime), "s1", printer.events)
    outcome = await conversation.hold([Prompt(text) for text in prompts], schema=schema, timeout=timeout)
    return await printer.end(outcome, as_value=schema is not None)


async def test_text_mode_prints_the_text_blocks_of_the_last_answer(pipe: Pipe) -> None:
    runtime = ScriptedRuntime([events_of(answer("first")), events_of(answer("second", "third"))])
    assert await hold(runtime, pipe, "a", "b") == 0
    assert [text for text, _ in runtime.prompts] == ["a", "b"]
    assert pipe.text() == "second\nthird\n"


@pytest.mark.parametrize(
    ("message", "printed", "told"),
    [
        (answer("half", stop_reason="length"), "half\n", "cut off"),
        (answer("half", stop_reason="aborted"), "", "aborted"),
        (answer(stop_reason="error", error="the key is wrong"), "", "the key is wrong"),
        (answer(stop_reason="error"), "", "the request failed"),
    ],
)
async def test_an_answer_that_is_not_whole_is_a_failure(
    message: AssistantMessage, printed: str, told: str, pipe: Pipe, capsys: pytest.CaptureFixture[str]
) -> None:
    """HL-02, and nothing more is sent."""
    runtime = ScriptedRuntime([events_of(message)])
    assert await hold(runtime, pipe, "a", "b") == 1
    assert pipe.text() == printed
    assert told in capsys.readouterr().err
    assert len(runtime.prompts) == 1


async def test_a_run_without_an_answer_is_a_failure(pipe: Pipe, capsys: pytest.CaptureFixture[str]) -> None:
    """HL-02"""
    runtime = ScriptedRuntime([[AgentStart(), AgentEnd(()), AgentSettled(aborted=False)]])
    assert await hold(runtime, pipe, "a") == 1
    assert capsys.readouterr().err == "pi-trio: the model gave no answer\n"


async def test_json_mode_writes_the_header_and_every_event(pipe: Pipe) -> None:
    """HL-05, HL-09: one value a line, the session's id in the first."""
    text = "one\u2028two\u0085three\nfour"
    runtime = ScriptedRuntime([events_of(answer(text))])
    assert await hold(runtime, pipe, "a", as_json=True) == 0
    header, *events = [json.loads(line) for line in pipe.text().split("\n")[:-1]]
    assert header == {
        "type": "session",
        "version": 3,
        "id": "s1",
        "timestamp": SESSION.timestamp,
        "cwd": "/p",
    }
    assert [event["type"] for event in events] == [
        "agent_start",
        "message_start",
        "message_update",
        "message_end",
        "agent_end",
        "agent_settled",
    ]
    assert events[2]["assistantMessageEvent"] == {"type": "text_delta", "contentIndex": 1, "delta": text}
    assert events[4]["messages"][0]["content"][1]["text"] == text


async def test_json_mode_ends_with_a_failure_too(pipe: Pipe) -> None:
    """HL-02: the last events hold the reason."""
    runtime = ScriptedRuntime([events_of(answer(stop_reason="error", error="quota"))])
    assert await hold(runtime, pipe, "a", as_json=True) == 1
    *_, end, settled, error = [json.loads(line) for line in pipe.text().splitlines()]
    assert end["messages"][0]["errorMessage"] == "quota"
    assert settled == {"type": "agent_settled", "aborted": False}
    assert error == {"type": "error", "message": "quota"}


async def test_cancelling_aborts_the_run_and_writes_its_last_events(pipe: Pipe) -> None:
    """HL-08"""
    runtime = ScriptedRuntime([None])
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(hold, runtime, pipe, "a", as_json=True))
            await runtime.prompted.wait()
            scope.cancel()
    assert scope.cancelled_caught
    assert not runtime.running
    assert json.loads(pipe.text().splitlines()[-1]) == {"type": "agent_settled", "aborted": True}


async def test_a_reader_that_has_enough_ends_the_run(pipe: Pipe) -> None:
    """HL-04"""

    class Leaving(ScriptedRuntime):
        async def prompt(
            self, session_id: str, text: str, images: Sequence[ImageContent] = ()
        ) -> Disposition:
            pipe.close_reader()
            return await super().prompt(session_id, text, images)

    runtime = Leaving([None])
    with pytest.raises(BrokenPipeError):
        await hold(runtime, pipe, "a", as_json=True)
    assert runtime.prompts
    assert not runtime.running


async def test_a_session_that_is_closed_during_a_run_is_no_hang(pipe: Pipe) -> None:
    class Closing(ScriptedRuntime):
        async def prompt(
            self, session_id: str, text: str, images: Sequence[ImageContent] = ()
        ) -> Disposition:
            disposition = await super().prompt(session_id, text, images)
            self.outboxes[0].close()
            return disposition

    with pytest.raises(InternalError):
        await hold(Closing([None]), pipe, "a")


# ------------------------------------------------------------------ limits and schemas


def limited(message: AssistantMessage) -> list[AgentEvent]:
    """A run that a limit ended."""
    end = {"type": "custom", "customType": "turn/end", "data": {"turn": 1, "reason": "limit"}}
    *before, settled = events_of(message)
    return [*before, EntryAppended(end), settled]


async def test_a_limit_has_a_status_of_its_own(pipe: Pipe, capsys: pytest.CaptureFixture[str]) -> None:
    """HL-02"""
    runtime = ScriptedRuntime([limited(answer(stop_reason="error", error="Stopped: 3 steps"))])
    assert await hold(runtime, pipe, "a", "b") == 3
    assert (pipe.text(), capsys.readouterr().err) == ("", "pi-trio: Stopped: 3 steps\n")


@pytest.mark.parametrize("as_json", [False, True])
async def test_time_is_a_limit(
    as_json: bool, pipe: Pipe, capsys: pytest.CaptureFixture[str], autojump_clock: trio.testing.MockClock
) -> None:
    """HL-02, and the run is stopped before the program ends."""
    runtime = ScriptedRuntime([None])
    assert await hold(runtime, pipe, "a", as_json=as_json, timeout=90) == 3
    assert not runtime.running
    told = "stopped after 90 seconds, which is the limit"
    assert capsys.readouterr().err == f"pi-trio: {told}\n"
    lines = pipe.text().splitlines()
    assert not as_json or json.loads(lines[-1]) == {"type": "error", "message": told}
    assert as_json or not lines


NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@pytest.mark.parametrize(
    ("answers", "corrections", "printed", "status"),
    [
        (['{"n": 1}'], [], '{"n":1}\n', 0),
        (['Sure!\n```json\n{ "n": 2 }\n```'], [], '{"n":2}\n', 0),
        (
            ["one", '{"n": "1"}', '{"n": 1}'],
            ["it is not JSON", "$.n: '1' is not of type 'integer'"],
            '{"n":1}\n',
            0,
        ),
        (["1", "2", "3", "4"], ["$: 1 is not", "$: 2 is not", "$: 3 is not"], "", 4),
    ],
)
async def test_only_what_matches_the_schema_is_printed(
    answers: list[str],
    corrections: list[str],
    printed: str,
    status: int,
    pipe: Pipe,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """HL-02, HL-03: the model is told the path of each fault, three times at most."""
    runtime = ScriptedRuntime([events_of(answer(text)) for text in answers])
    assert await hold(runtime, pipe, "a", schema=AnswerSchema(NUMBER)) == status
    assert pipe.text() == printed
    first, *others = [text for text, _ in runtime.prompts]
    assert first.startswith("a\n\n")
    assert json.loads(first.splitlines()[-1]) == NUMBER
    for told, fault in zip(others, corrections, strict=True):
        assert f"does not match the JSON Schema: {fault}" in told
    gave_up = "pi-trio: no answer matched the schema: $: 4 is not of type 'object'\n"
    assert capsys.readouterr().err == (gave_up if status else "")


async def test_a_correction_that_fails_is_that_failure(
    pipe: Pipe, capsys: pytest.CaptureFixture[str]
) -> None:
    failed = limited(answer(stop_reason="error", error="Stopped: the limit"))
    runtime = ScriptedRuntime([events_of(answer("no")), failed])
    assert await hold(runtime, pipe, "a", schema=AnswerSchema(NUMBER)) == 3
    assert (pipe.text(), capsys.readouterr().err) == ("", "pi-trio: Stopped: the limit\n")
