"""A runtime behind a server: what its clients see, also when connections break."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from served import Cut, Cutter, Seen, Served, served

from pi_trio.approval import Question
from pi_trio.errors import BusyError, ConfigError, InternalError, PiError, SessionError, UsageError
from pi_trio.events import ConnectionChanged, MessageUpdate
from pi_trio.llm import demo
from pi_trio.remote import client
from pi_trio.remote.access import made_token, token_path, web_token_path
from pi_trio.remote.client import RemoteRuntime, open_over
from pi_trio.remote.link import Link
from pi_trio.remote.offers import CompletesFiles, KeepsKeys, LooksAround, SessionShelf
from pi_trio.remote.server import peer, sessions

pytestmark = pytest.mark.usefixtures("demo_in_a_hurry")


@pytest.fixture
def comes_back_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "WAITS", ())
    monkeypatch.setattr(client, "LONGEST_WAIT", 0.0)


async def _said(remote: RemoteRuntime, session_id: str) -> list[str]:
    """The prompts of a session."""
    heads = (await remote.snapshot(session_id)).heads
    entries = await remote.runtime.entries(session_id, [each.id for each in heads if each.detail == "user"])
    return [entry["message"]["content"][0]["text"] for entry in entries]


# ------------------------------------------------------------------ what clients see


async def test_a_prompt_is_answered_as_by_a_runtime_of_ones_own(tmp_path: Path) -> None:
    async with served(tmp_path) as there, there.client() as remote:
        runtime = remote.runtime
        snapshot = await runtime.new_session()
        session_id = snapshot.session.id
        seen, begun = await Seen.of(remote, session_id)
        assert (begun, begun.seq) == (snapshot, 0)
        assert await runtime.prompt(session_id, "hello") == "started"
        await runtime.wait_for_idle(session_id)
        assert seen.types.index("agent_start") < seen.types.index("message_end")
        assert seen.types[-1] == "agent_settled"  # a response comes after what happened before it
        now = await remote.snapshot(session_id)
        assert now == await there.runtime.snapshot(session_id)
        ids = [head.id for head in now.heads]
        assert await runtime.entries(session_id, ids) == await there.runtime.entries(session_id, ids)


async def test_everything_that_a_client_asks_for_comes_back_as_what_it_is(tmp_path: Path) -> None:
    async with served(tmp_path) as there, there.client() as remote:
        runtime, local = remote.runtime, there.runtime
        session_id = (await runtime.new_session()).session.id
        assert await runtime.models() == list(await local.models())
        assert await runtime.trust(session_id) == await local.trust(session_id)
        assert await runtime.commands(session_id) == list(await local.commands(session_id))
        assert await runtime.set_model(session_id, "demo/demo") == local.harness(session_id).model
        await runtime.set_mode(session_id, "ask")
        await runtime.set_session_name(session_id, "a name")
        assert await runtime.set_thinking_level(session_id, "high") == "high"
        now = await remote.snapshot(session_id)
        assert (now.mode, now.thinking_level, now.session.name) == ("ask", "high", "a name")
        assert (await runtime.run_shell(session_id, "echo hello")).output == "hello\n"
        (listed,) = await remote.sessions()
        assert (listed.id, listed.name, listed.running, listed.clients) == (session_id, "a name", False, 0)


async def test_the_files_of_the_server_are_offered_and_its_keys_are_not(tmp_path: Path) -> None:
    async with served(tmp_path) as there, there.client() as remote:
        assert isinstance(remote, CompletesFiles)
        assert isinstance(remote, LooksAround)
        assert isinstance(remote, SessionShelf)
        assert not isinstance(remote, KeepsKeys)
        session = (await remote.runtime.new_session()).session
        assert await remote.surroundings(session.id) == await there.runtime.surroundings(session.id)
        (tmp_path / "project" / "notes.md").write_text("no session")
        assert await remote.complete_file(session.id, "note") == ["notes.md"]
        await remote.runtime.prompt(session.id, "hello")
        await remote.runtime.wait_for_idle(session.id)
        (kept,) = await remote.list_sessions("hello", everywhere=True)
        assert kept == (await there.runtime.list_sessions("hello", everywhere=True))[0]
        assert tuple(await remote.preview_session(kept.path)) == await there.runtime.preview_session(
            kept.path
        )
        copy = await remote.copy_session(kept.path, str(tmp_path))
        assert (copy.session.cwd, await _said(remote, copy.session.id)) == (str(tmp_path), ["hello"])
        with pytest.raises(UsageError, match="open"):
            await remote.delete_session(kept.path)
        with pytest.raises(PiError):
            await remote.delete_session(str(tmp_path / "project" / "notes.md"))
        await remote.runtime.close_session(session.id)
        await remote.rename_session(kept.path, "greeting")
        assert [each.name for each in await remote.list_sessions()] == ["greeting"]
        await remote.delete_session(kept.path)
        assert (await remote.list_sessions(), (tmp_path / "project" / "notes.md").exists()) == ([], True)


async def test_errors_are_of_the_class_that_they_were(tmp_path: Path) -> None:
    async with served(tmp_path) as there, there.client() as remote:
        runtime = remote.runtime
        session_id = (await runtime.new_session()).session.id
        await runtime.prompt(session_id, "run `sleep 1000`")
        with pytest.raises(BusyError):
            await runtime.prompt(session_id, "and more")
        with pytest.raises(UsageError, match="thinking level"):
            await runtime.set_thinking_level(session_id, "enormous")
        with pytest.raises(ConfigError):
            await runtime.set_model(session_id, "nobody/nothing")
        for reference in ("../../x", "..%2fx", "a/b", "no-such-id", "x" * 300):  # SE-05
            with pytest.raises(SessionError):
                await runtime.open_session(reference)
            with pytest.raises(PiError):
                await remote.snapshot(reference)
        await runtime.abort(session_id)


async def test_all_see_the_same_events_under_the_same_numbers(tmp_path: Path) -> None:
    """Two that watch and one that only sends; one of those that watch came late."""
    async with served(tmp_path, tcp=True) as there, there.client() as one, there.client() as other:
        session_id = (await one.runtime.new_session()).session.id
        first, _ = await Seen.of(one, session_id)
        async with there.client() as script:
            await script.runtime.prompt(session_id, "run `echo a` and run `echo b` and run `echo c`")
        await first.event("tool_execution_start")
        second, late = await Seen.of(other, session_id)
        await other.runtime.follow_up(session_id, "and hello")
        await first.event("agent_settled")
        await second.event("agent_settled")
        assert second.told == [each for each in first.told if each[0] > late.seq]
        numbers = [seq for seq, _ in first.told]
        assert numbers == sorted(set(numbers))
        assert await _said(one, session_id) == [
            "run `echo a` and run `echo b` and run `echo c`",
            "and hello",
        ]


async def test_two_subscribers_of_one_client_each_get_all_from_their_snapshot_on(tmp_path: Path) -> None:
    async with served(tmp_path) as there, there.client() as remote:
        session_id = (await remote.runtime.new_session()).session.id
        first, _ = await Seen.of(remote, session_id)
        await remote.runtime.prompt(session_id, "hello")
        second, late = await Seen.of(remote, session_id)
        await first.event("agent_settled")
        assert second.told == [each for each in first.told if each[0] > late.seq]
        await remote.unsubscribe(session_id, first)
        await remote.runtime.prompt(session_id, "hello")
        await second.event("agent_settled", 2)
        assert first.types.count("agent_settled") == 1


async def test_who_comes_in_the_middle_of_an_answer_has_all_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    monkeypatch.setattr(demo, "DELTA_INTERVAL", 1.0)
    async with served(tmp_path, no_session=True) as there, there.client() as one, there.client() as other:
        session_id = (await one.runtime.new_session()).session.id
        first, _ = await Seen.of(one, session_id)
        await one.runtime.prompt(session_id, "hello")
        await first.until(lambda: sum("text_delta" in str(told) for _, told in first.told) > 3)
        second, joined = await Seen.of(other, session_id)
        assert joined.streaming is not None
        assert joined.streaming.text
        await second.event("agent_settled")
        last = [event for _, event in second.events if isinstance(event, MessageUpdate)][-1]
        (answer,) = await there.runtime.entries(session_id, _answers(await one.snapshot(session_id)))
        assert last.message.text == answer["message"]["content"][-1]["text"]


def _answers(snapshot: Any) -> list[str]:
    return [head.id for head in snapshot.heads if head.detail == "assistant"]


async def test_the_first_answer_to_a_question_counts_and_all_are_told(tmp_path: Path) -> None:
    async with served(tmp_path, mode="ask") as there, there.client() as one, there.client() as other:
        session_id = (await one.runtime.new_session()).session.id
        first, _ = await Seen.of(one, session_id)
        second, _ = await Seen.of(other, session_id)
        await one.runtime.prompt(session_id, "run `echo asked`")
        await first.event("approval_requested")
        await second.event("approval_requested")
        (question,) = (await other.snapshot(session_id)).questions
        assert isinstance(question, Question)
        assert question.args == {"command": "echo asked"}
        await other.runtime.answer(session_id, question.id, "once")
        with pytest.raises(UsageError, match="already"):
            await one.runtime.answer(session_id, question.id, "no")
        await first.event("agent_settled")
        assert first.types.count("approval_resolved") == 1
        (ended,) = [event for _, event in first.events if event.type == "tool_execution_end"]
        assert not ended.is_error


@pytest.mark.parametrize("place", [token_path, web_token_path])
async def test_the_model_is_not_given_a_token_unasked(tmp_path: Path, place) -> None:
    """SE-07: with it a command could answer the gate's own questions."""
    async with served(tmp_path) as there, there.client() as remote:
        token = place(there.runtime.config.agent_dir)
        made_token(token)
        session_id = (await remote.runtime.new_session()).session.id
        seen, _ = await Seen.of(remote, session_id)
        await remote.runtime.prompt(session_id, f"run `cat {token}`")
        await seen.event("approval_requested")
        await remote.runtime.abort(session_id)


# ------------------------------------------------------------------ lost connections


@pytest.mark.usefixtures("comes_back_at_once")
async def test_a_connection_that_is_cut_a_hundred_times_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """HL-10: one of two clients is cut at random places, in what it sends and in what it gets."""
    async with served(tmp_path, tcp=True) as there, there.client() as steady:
        session_id = (await steady.runtime.new_session()).session.id
        whole, _ = await Seen.of(steady, session_id)
        async with there.client(cutter := Cutter(seed=7, times=100)) as shaky:
            cut, _ = await Seen.of(shaky, session_id)
            prompts: list[str] = []
            while cutter.left:
                prompts.append(f"prompt {len(prompts)}")
                await shaky.runtime.prompt(session_id, prompts[-1])
                await shaky.runtime.wait_for_idle(session_id)
            await cut.event("agent_settled", len(prompts))
            await whole.event("agent_settled", len(prompts))
            assert cut.gaps == 0
            assert cut.told == whole.told
            assert len(prompts) > 3
            assert await _said(shaky, session_id) == prompts


async def test_leaving_stops_nothing(tmp_path: Path) -> None:
    async with served(tmp_path) as there:
        async with there.client() as remote:
            session_id = (await remote.runtime.new_session()).session.id
            await remote.runtime.prompt(session_id, "run `sleep 1000`")
        assert there.runtime.harness(session_id).running
        async with there.client() as remote:
            seen, back = await Seen.of(remote, session_id)
            assert back.running
            await remote.runtime.abort(session_id)
            await seen.event("agent_settled")


@pytest.mark.usefixtures("comes_back_at_once")
async def test_behind_another_server_everything_is_looked_at_anew(tmp_path: Path) -> None:
    """HL-10: the server ended and was started again; its numbers begin anew."""
    running: list[Served] = []
    restarted = trio.Event()

    @asynccontextmanager
    async def dial(client_id: str) -> AsyncIterator[Link]:
        if not running:
            await restarted.wait()
        async with running[0].dial()(client_id) as link:
            yield link

    async with served(tmp_path) as first, served(tmp_path) as second:
        running.append(first)
        async with open_over(dial) as remote:
            session_id = (await remote.runtime.new_session()).session.id
            seen, _ = await Seen.of(remote, session_id)
            await remote.runtime.prompt(session_id, "one")
            await remote.runtime.wait_for_idle(session_id)
            running.clear()
            await first.server.close()
            await first.runtime.aclose()
            running.append(second)
            restarted.set()
            await seen.until(lambda: seen.gaps)
            await remote.runtime.prompt(session_id, "two")
            await seen.event("agent_settled", 2)
            assert await _said(remote, session_id) == ["one", "two"]
            changes = [event for _, event in seen.events if isinstance(event, ConnectionChanged)]
            assert [each.connected for each in changes] == [False, True]
            assert "the server ends" in changes[0].reason


async def test_a_silent_server_is_noticed_within_half_a_minute(tmp_path: Path, autojump_clock: Any) -> None:
    """HL-10: half open, nothing says that it is lost."""
    async with served(tmp_path, no_session=True) as there:
        streams: list[Silent] = []

        def wrap(stream: trio.abc.Stream) -> trio.abc.Stream:
            streams.append(Silent(stream))
            return streams[-1]

        async with there.client(wrap) as remote:
            session_id = (await remote.runtime.new_session()).session.id
            seen, _ = await Seen.of(remote, session_id)
            began = trio.current_time()
            streams[0].silent = True
            await seen.event("connection_changed", 2)
            assert trio.current_time() - began <= 30
            lost, back = [event for _, event in seen.events]
            assert "did not answer" in lost.reason
            assert back.connected


class Silent(Cut):
    """A stream that at some time takes everything and gives nothing."""

    silent = False

    def __init__(self, stream: trio.abc.Stream) -> None:
        super().__init__(stream, None)

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        data = await super().receive_some(max_bytes)
        if self.silent:
            await trio.sleep_forever()
        return data


async def test_waits_between_attempts_grow(tmp_path: Path, autojump_clock: Any) -> None:
    async with served(tmp_path, no_session=True) as there:
        lost = False

        def wrap(stream: trio.abc.Stream) -> trio.abc.Stream:
            return Cut(stream, 0) if lost else stream

        streams: list[Cut] = []

        def first(stream: trio.abc.Stream) -> trio.abc.Stream:
            streams.append(Cut(wrap(stream), None))
            return streams[-1]

        async with there.client(first) as remote:
            session_id = (await remote.runtime.new_session()).session.id
            seen, _ = await Seen.of(remote, session_id)
            lost = True
            await streams[0].aclose()
            await seen.event("connection_changed", 9)
            waits = [event.retry_ms for _, event in seen.events if isinstance(event, ConnectionChanged)]
            assert waits == [0, 500, 1000, 2000, 4000, 8000, 15000, 15000, 15000]


# ------------------------------------------------------------------ what the server keeps


async def test_an_idle_session_is_closed_and_opened_again_when_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "IDLE_SECONDS", -1.0)
    monkeypatch.setattr(sessions, "ROUND_SECONDS", 0.0)
    async with served(tmp_path) as there, there.client() as remote:
        session_id = (await remote.runtime.new_session()).session.id
        seen, _ = await Seen.of(remote, session_id)
        await remote.runtime.prompt(session_id, "hello")
        await remote.runtime.wait_for_idle(session_id)
        there.nursery.start_soon(there.server.sessions.close_idle)
        for _ in range(10):
            await trio.lowlevel.checkpoint()
        assert there.runtime.open_sessions == [session_id]  # somebody looks at it
        await remote.unsubscribe(session_id, seen)
        while there.runtime.open_sessions:
            await trio.lowlevel.checkpoint()
        assert await _said(remote, session_id) == ["hello"]


async def test_a_session_stays_open_while_somebody_is_attached(tmp_path: Path) -> None:
    async with served(tmp_path) as there, there.client() as one, there.client() as other:
        session_id = (await one.runtime.new_session()).session.id
        seen, _ = await Seen.of(one, session_id)
        with pytest.raises(UsageError, match="attached"):
            await other.runtime.close_session(session_id)
        await one.unsubscribe(session_id, seen)
        await other.runtime.close_session(session_id)
        assert there.runtime.open_sessions == []


async def test_a_fault_of_ours_ends_one_command_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with served(tmp_path) as there, there.client() as remote:
        session_id = (await remote.runtime.new_session()).session.id

        async def fail(session_id: str) -> None:
            raise ZeroDivisionError("a bug")

        monkeypatch.setattr(there.runtime, "abort", fail)
        with pytest.raises(InternalError, match="a bug"):
            await remote.runtime.abort(session_id)
        assert "Traceback" in capsys.readouterr().err
        assert (await remote.snapshot(session_id)).session.id == session_id


async def test_commands_that_are_not_done_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peer, "COMMANDS_AT_A_TIME", 2)
    async with served(tmp_path) as there, there.client() as remote:
        session_id = (await remote.runtime.new_session()).session.id
        await remote.runtime.prompt(session_id, "run `sleep 1000`")
        async with trio.open_nursery() as nursery:
            for _ in range(2):
                nursery.start_soon(remote.runtime.wait_for_idle, session_id)
            await trio.testing.wait_all_tasks_blocked()
            with pytest.raises(UsageError, match="not done yet"):
                await remote.runtime.abort(session_id)
            await there.runtime.abort(session_id)
