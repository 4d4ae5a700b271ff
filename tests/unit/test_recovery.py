"""A session file cut off anywhere: it opens balanced, goes on, and is repaired once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import trio.testing
from harness_bench import open_bench
from session_file import check_balance, entries_of, facts_of

from pi_trio.codec import dumps, loads
from pi_trio.harness.harness import AgentHarness
from pi_trio.harness.recovery import read_remains
from pi_trio.llm.protocol import Failure
from pi_trio.messages import text_of
from pi_trio.session import facts
from pi_trio.session.session import Session
from pi_trio.testing import Call, Hang, ScriptedModel


@asynccontextmanager
async def harness_of(path: Path, *answers: Any) -> AsyncIterator[tuple[AgentHarness, ScriptedModel]]:
    session = Session.open(path) if path.exists() else Session.new("/", path)
    async with open_bench(session, *answers) as bench:
        yield bench.harness, bench.model


async def _conversation(path: Path) -> None:
    """Parallel tools, steering, a retry, queued prompts and a move in the tree."""
    answers = [[Call("echo"), Call("echo")], Failure("busy", "overloaded"), "one", "two", "three"]
    async with harness_of(path, *answers) as (harness, _):
        harness.prompt("first")
        harness.steer("and quickly")
        harness.follow_up("second")
        harness.next_turn("by the way")
        await harness.wait_for_idle()
        answer = next(head.id for head in harness.session.heads if head.detail == "assistant")
        harness.navigate(answer)
        harness.prompt("third")
        await harness.wait_for_idle()


def _user_texts(path: Path) -> list[str]:
    messages = [entry["message"] for entry in entries_of(path) if entry["type"] == "message"]
    return [each["content"][0]["text"] for each in messages if each["role"] == "user"]


async def test_a_file_cut_anywhere_reopens_whole_and_is_repaired_once(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """L80: cut after every entry, and in the middle of every last line."""
    whole = tmp_path / "whole.jsonl"
    await _conversation(whole)
    check_balance(whole)
    lines = whole.read_bytes().splitlines(keepends=True)
    accepted = ["first", "and quickly", "second", "by the way", "third"]
    for count in range(2, len(lines) + 1):
        for half in (b"", lines[count][: len(lines[count]) // 2] if count < len(lines) else b""):
            path = tmp_path / "cut.jsonl"
            path.write_bytes(b"".join(lines[:count]) + half)
            waiting, returned = await _go_on(path)
            check_balance(path)
            seen = [*_user_texts(path), *waiting, *returned]
            inserted = [text for text in accepted if f'"{text}"'.encode() in b"".join(lines[:count])]
            for text in inserted:
                assert seen.count(text) == 1, (count, text, seen)
            size = path.stat().st_size
            async with harness_of(path) as (harness, _):
                assert harness.interruption is None
                assert harness.returned == []
            assert path.stat().st_size == size
            path.unlink()


async def _go_on(path: Path) -> tuple[list[str], list[str]]:
    """Reopen, say one more thing, and tell what still waits and what was handed back."""
    async with harness_of(path, *["fine"] * 6) as (harness, _):
        returned = [text_of(message.content) for message in harness.returned]  # type: ignore[union-attr]
        harness.prompt("go on")
        await harness.wait_for_idle()
        waiting = harness.inbox.summary()
        return [*waiting.steering, *waiting.follow_up], returned


async def test_calls_are_told_apart_by_whether_they_had_started(tmp_path: Path) -> None:
    """L80: `outcome_unknown` for what had started, `not_started` for what had not."""
    path = tmp_path / "s.jsonl"
    async with harness_of(path, [Call("stuck"), Call("stuck"), Call("stuck")]) as (harness, _):
        harness.options = attrs.evolve(harness.options, max_parallel_tool_calls=2)
        harness.prompt("go")
        await trio.testing.wait_all_tasks_blocked()
        cut = path.read_bytes()
    path.write_bytes(cut)
    async with harness_of(path, "fine") as (harness, model):
        assert harness.interruption is not None
        harness.prompt("what happened?")
        await harness.wait_for_idle()
        results = [m for m in model.requests[0].context.messages if m.role == "toolResult"]
        codes = [result.details["code"] for result in results]
        assert codes == ["outcome_unknown", "outcome_unknown", "not_started"]
    assert facts_of(path).count("turn/end") == facts_of(path).count("turn/start")


async def test_only_looking_changes_nothing(tmp_path: Path) -> None:
    """RS-04"""
    path = tmp_path / "s.jsonl"
    async with harness_of(path, Hang()) as (harness, _):
        harness.prompt("go")
        await trio.testing.wait_all_tasks_blocked()
        cut = path.read_bytes()
    path.write_bytes(cut)
    async with harness_of(path) as (harness, _):
        assert harness.interruption is not None
        assert harness.conversation.transcript
    assert path.read_bytes() == cut


async def test_an_inject_waits_for_the_next_prompt_over_a_restart(tmp_path: Path) -> None:
    """L10"""
    path = tmp_path / "s.jsonl"
    async with harness_of(path, "one") as (harness, _):
        harness.prompt("a")
        await harness.wait_for_idle()
        harness.inject(harness.conversation.transcript[0])
        assert not harness.running
    async with harness_of(path, "two") as (harness, model):
        harness.prompt("b")
        await harness.wait_for_idle()
        assert [text_of(m.content) for m in model.requests[0].context.messages] == ["a", "one", "a", "b"]


async def test_a_fork_inherits_neither_queue_nor_open_brackets(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    async with harness_of(path, Hang()) as (harness, _):
        harness.prompt("go")
        harness.follow_up("queued")
        await trio.testing.wait_all_tasks_blocked()
        lines = path.read_bytes().splitlines(keepends=True)
    header = {**loads(lines[0]), "id": "another", "parentSession": str(path)}
    fork = tmp_path / "fork.jsonl"
    fork.write_bytes(dumps(header) + b"\n" + b"".join(lines[1:]))
    remains = read_remains(Session.open(fork, writable=False))
    assert (remains.waiting, remains.lost, remains.interruption) == ([], [], None)
    assert remains.turns == 1


@pytest.mark.parametrize(
    "data", [{}, {"target": "next-turn"}, {"target": "next-turn", "start": 0, "inserted": [3]}]
)
async def test_a_damaged_fact_is_a_finding(tmp_path: Path, data: dict[str, Any]) -> None:
    path = tmp_path / "s.jsonl"
    async with harness_of(path, "one") as (harness, _):
        harness.prompt("a")
        await harness.wait_for_idle()
        harness.session.append(facts.fact(facts.INBOX_SPLICED, harness.session.id, **data))
    async with harness_of(path, "two") as (harness, _):
        assert len(harness.findings) == 1
        harness.prompt("b")
        await harness.wait_for_idle()


async def test_pi_may_have_gone_on_with_a_turn_that_was_open(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """pi knows no facts: it answers at the leaf, and leaves the brackets before it as they are."""
    whole, path = tmp_path / "whole.jsonl", tmp_path / "cut.jsonl"
    await _conversation(whole)
    lines = whole.read_bytes().splitlines(keepends=True)
    for count in range(2, len(lines) + 1):
        path.write_bytes(b"".join([*lines[:count], *_by_pi(loads(lines[count - 1])["id"])]))
        async with harness_of(path, *["fine"] * 6) as (harness, model):
            harness.prompt("and now?")
            await harness.wait_for_idle()
            asked = [text_of(each.content) for each in model.requests[-1].context.messages]
        check_balance(path)
        assert asked.index("said in pi") + 1 == asked.index("answered in pi"), count
        assert asked.count("and now?") == 1
        size = path.stat().st_size
        async with harness_of(path) as (harness, _):
            assert harness.interruption is None
        assert path.stat().st_size == size


def _by_pi(parent: str) -> list[bytes]:
    """A prompt and its answer, as pi 1.6 appends them."""
    user = {"role": "user", "content": [{"type": "text", "text": "said in pi"}], "timestamp": 1}
    answer = {
        "role": "assistant", "content": [{"type": "text", "text": "answered in pi"}], "api": "x",
        "provider": "x", "model": "x", "stopReason": "stop", "timestamp": 2,
        "usage": {"input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 2,
                  "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}},
    }  # fmt: skip
    entries = []
    for number, message in enumerate((user, answer)):
        entry = {"type": "message", "id": f"0000000{number}", "parentId": parent}
        entries.append({**entry, "timestamp": "2030-01-01T00:00:00.000Z", "message": message})
        parent = f"0000000{number}"
    return [dumps(entry) + b"\n" for entry in entries]
