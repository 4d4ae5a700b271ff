"""A disk that fills up at any byte of a turn: told at once, nothing half written, nothing sent after it."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness_bench import Bench, open_bench

from pi_trio.errors import StorageError
from pi_trio.events import MessageUpdate
from pi_trio.harness.runtime import open_runtime
from pi_trio.hub import Outbox
from pi_trio.messages import AgentMessage, AssistantMessage, ToolResultMessage
from pi_trio.resources.config import RuntimeConfig
from pi_trio.session.check import check_file
from pi_trio.session.repository import SessionRepository
from pi_trio.testing import Call
from pi_trio.testing.storage import LimitedDisk


class WatchedDisk(LimitedDisk):
    """Notes how many requests had been sent when a write failed."""

    bench: Bench
    sent_at_failures: list[int]

    def __call__(self, descriptor: int, data: bytes) -> int:
        written = 0
        try:
            written = super().__call__(descriptor, data)
        finally:
            if written < len(data):
                self.sent_at_failures.append(len(self.bench.model.requests))
        return written


async def turn_on_a_disk_of(folder: Path, space: int | None) -> int:
    """A turn with a tool on a disk with so much room, then one with more. Gives the bytes of the first."""
    disk = WatchedDisk()
    disk.sent_at_failures = []
    repository = SessionRepository(folder / "agent", folder, write=disk)
    session = repository.create()
    async with open_bench(session, "one", *[Call("echo", {"n": 1}), "done"] * 3) as bench:
        disk.bench = bench
        await bench.say("a")
        path = session.path
        assert path is not None
        before = path.stat().st_size
        disk.space = space
        if space is None:
            await bench.say("b")
        else:
            with pytest.raises(StorageError):
                await bench.say("b")
            assert set(disk.sent_at_failures) == {len(bench.model.requests)}
            assert path.read_bytes().endswith(b"\n")
        told = [message for message in bench.said() if _was_said(message)]
        needed = path.stat().st_size - before
        disk.space = None
        await bench.say("c")
        assert bench.texts()[-1] == "done"
        context = bench.session.build_context()
        assert tuple(bench.harness.conversation.transcript) == context.messages
        assert [message for message in context.messages if message in told] == told
    session.close()
    assert not check_file(path)
    again = repository.open(str(path))
    assert again.build_context() == context
    again.close()
    return needed


def _was_said(message: AgentMessage) -> bool:
    match message:
        case AssistantMessage():
            return message.stop_reason != "error"
        case ToolResultMessage():
            return not message.is_error
        case _:
            return False


async def test_a_disk_that_is_full_at_any_place_of_a_turn(tmp_path: Path) -> None:
    """SF-08: what the model and the tools had said is in the file as soon as there is room."""
    needed = await turn_on_a_disk_of(tmp_path / "whole", None)
    for space in range(0, needed - 300, needed // 40):  # times differ in their digits from turn to turn
        await turn_on_a_disk_of(tmp_path / str(space), space)


async def test_without_room_until_the_end_what_was_lost_is_told(tmp_path: Path) -> None:
    """SF-08"""
    config = RuntimeConfig(cwd=tmp_path, agent_dir=tmp_path / "agent", demo=True)
    disk = LimitedDisk()

    def fill_up() -> None:
        if any(isinstance(each.event, MessageUpdate) for each in outbox.take()):
            disk.space = 0

    outbox = Outbox(fill_up)

    async def use() -> None:
        async with open_runtime(config) as runtime:
            runtime.repository = SessionRepository(config.agent_dir, config.cwd, write=disk)
            session_id = (await runtime.new_session()).session.id
            await runtime.prompt(session_id, "hello")
            await runtime.wait_for_idle(session_id)
            await runtime.subscribe(session_id, outbox)
            await runtime.prompt(session_id, "hello again")
            with pytest.raises(StorageError, match="No space left"):
                await runtime.wait_for_idle(session_id)
            snapshot = await runtime.snapshot(session_id)
            assert (snapshot.unsaved, snapshot.interrupted) == (1, True)
            for command in (runtime.prompt(session_id, "and again"), runtime.compact(session_id)):
                with pytest.raises(StorageError):
                    await command

    with pytest.raises(StorageError, match="No space left"):
        await use()
