"""Commands of the user: real ones, beside runs and in them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from pi_trio.errors import BusyError
from pi_trio.events import AgentEvent, BashExecutionUpdate, ToolExecutionStart
from pi_trio.harness.runtime import LocalRuntime, open_runtime
from pi_trio.messages import BashExecutionMessage
from pi_trio.resources.config import RuntimeConfig
from pi_trio.text import without_controls
from pi_trio.tools import ToolError

pytestmark = pytest.mark.usefixtures("demo_in_a_hurry")


class Desk:
    """A runtime on the demo model, with one session and all that it told."""

    def __init__(self, runtime: LocalRuntime, session_id: str) -> None:
        self.runtime, self.id = runtime, session_id
        self.events: list[AgentEvent] = []
        self._told = trio.Event()
        self.harness = runtime._open(session_id).harness
        self.session = self.harness.session
        self.harness.hub.subscribe(self._listen)

    def _listen(self, event: AgentEvent) -> None:
        self.events.append(event)
        self._told.set()
        self._told = trio.Event()

    async def until(self, kind: type[Any]) -> None:
        """Wait for an event of this class."""
        with trio.fail_after(20):
            while not any(isinstance(event, kind) for event in self.events):
                await self._told.wait()

    async def until_printed(self, text: str) -> None:
        """Wait until this, and nothing else, was told to be printed."""
        with trio.fail_after(20):
            while self.printed() != text:
                await self._told.wait()

    async def run(self, command: str, **options: Any) -> BashExecutionMessage:
        with trio.fail_after(20):
            return await self.runtime.run_shell(self.id, command, **options)

    def printed(self) -> str:
        return "".join(event.delta for event in self.events if isinstance(event, BashExecutionUpdate))

    def kept(self) -> list[dict[str, Any]]:
        """The messages of the session, in the order of its file."""
        entries = [self.session.raw(head.id) for head in self.session.heads]
        return [dict(entry["message"]) for entry in entries if entry["type"] == "message"]

    def roles(self) -> list[str]:
        return [message["role"] for message in self.kept()]


@asynccontextmanager
async def open_desk(tmp_path: Path) -> AsyncIterator[Desk]:
    (tmp_path / "project").mkdir()
    config = RuntimeConfig(cwd=tmp_path / "project", agent_dir=tmp_path / "agent", demo=True)
    async with open_runtime(config) as runtime:
        yield Desk(runtime, (await runtime.new_session()).session.id)


async def test_a_command_is_streamed_and_kept_as_pi_keeps_it(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        message = await desk.run("echo one; exit 4")
        assert (message.output, message.exit_code, message.cancelled) == ("one\n", 4, False)
        await desk.run("echo secret", exclude_from_context=True)
        kept = [{key: value for key, value in each.items() if key != "timestamp"} for each in desk.kept()]
        common = {"role": "bashExecution", "cancelled": False, "truncated": False}
        assert kept == [
            {**common, "command": "echo one; exit 4", "output": "one\n", "exitCode": 4},
            {
                **common,
                "command": "echo secret",
                "output": "secret\n",
                "exitCode": 0,
                "excludeFromContext": True,
            },
        ]
        await desk.until_printed("one\nsecret\n")


async def test_the_next_request_sees_what_is_not_excluded(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        await desk.run("echo visible")
        await desk.run("echo hidden", exclude_from_context=True)
        await desk.runtime.prompt(desk.id, "hello")
        await desk.runtime.wait_for_idle(desk.id)
        sent = str(desk.harness.conversation.llm_messages())
        assert "Ran `echo visible`" in sent
        assert "hidden" not in sent
        again = str(desk.session.build_context().messages)
        assert again == str(tuple(desk.harness.conversation.transcript))


async def test_during_a_step_the_message_waits_for_its_end(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        await desk.runtime.prompt(desk.id, "run `until [ -e go ]; do sleep 0.02; done`")
        await desk.until(ToolExecutionStart)
        await desk.run("echo now; touch go")
        await desk.runtime.wait_for_idle(desk.id)
        assert desk.roles() == ["system", "user", "assistant", "toolResult", "bashExecution", "assistant"]


async def test_in_a_run_that_is_stopped_the_message_is_kept(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        await desk.runtime.prompt(desk.id, "run `sleep 60`")
        await desk.until(ToolExecutionStart)
        await desk.run("echo now")
        await desk.runtime.abort(desk.id)
        assert desk.roles() == ["system", "user", "assistant", "toolResult", "bashExecution"]


async def test_stopping_a_command(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk, trio.open_nursery() as nursery:
        nursery.start_soon(desk.run, "echo begun; sleep 60")
        await desk.until(BashExecutionUpdate)
        assert (await desk.runtime.snapshot(desk.id)).shell_running
        with pytest.raises(BusyError):
            await desk.run("echo another")
        await desk.runtime.abort_shell(desk.id)
        (message,) = desk.kept()
        assert message["output"] == "begun\n"
        assert message["cancelled"]
        assert "exitCode" not in message
        assert not (await desk.runtime.snapshot(desk.id)).shell_running
        await desk.runtime.abort_shell(desk.id)  # once more is the same


async def test_cancelling_the_call_stops_the_command(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(desk.run, "echo begun; sleep 60")
            await desk.until(BashExecutionUpdate)
            nursery.cancel_scope.cancel()
        assert [message["cancelled"] for message in desk.kept()] == [True]


async def test_closing_stops_the_command(tmp_path: Path) -> None:
    async with trio.open_nursery() as nursery, open_desk(tmp_path) as desk:
        nursery.start_soon(desk.run, "echo begun; sleep 60")
        await desk.until(BashExecutionUpdate)
        await desk.runtime.close_session(desk.id)
        assert [message["cancelled"] for message in desk.kept()] == [True]


async def test_much_output_is_cut_and_in_a_file(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        message = await desk.run("seq 1 2500")
        assert message.truncated
        assert message.output.startswith("501\n502\n")
        assert message.full_output_path is not None
        assert Path(message.full_output_path).read_text().startswith("1\n2\n")


async def test_a_command_that_cannot_be_started_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        with pytest.raises(ToolError):
            await desk.run("a\0b")
        assert not desk.kept()
        await desk.run("true")


@pytest.mark.parametrize(
    ("printed", "kept"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("\x1b[1mbold\x1b[0m \x1b]0;title\x07x", "bold x"),
        ("10%\r20%\r\n", "20%\n"),
        ("a\x00b\x07\x9bK\x7f\ud800", "ab"),
        ("\u202eodd\u200b", "\u202eodd\u200b"),  # only its display is dangerous
    ],
)
def test_what_is_kept_has_no_controls(printed: str, kept: str) -> None:
    assert without_controls(printed) == kept
