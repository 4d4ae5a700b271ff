"""Moving in the tree while something is going on, and what moving leaves alone."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from harness_bench import open_bench

from pi_trio.errors import BusyError
from pi_trio.harness.runtime import open_runtime
from pi_trio.resources.config import RuntimeConfig
from pi_trio.session.repository import SessionRepository
from pi_trio.session.session import Session
from pi_trio.testing import Pause


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return SessionRepository(tmp_path / "agent", tmp_path).create()


def first_answer(session: Session) -> str:
    return next(head.id for head in session.heads if head.detail == "assistant")


async def test_nothing_moves_while_a_summary_is_made(session: Session, autojump_clock: Any) -> None:
    """TR-02: the summary lands where it was asked for, and says which branch it is of."""
    script = ["one", "two", "three", "four", [Pause(5), "What was tried."], "five"]
    async with open_bench(session, *script) as bench, trio.open_nursery() as nursery:
        for text in "abcd":
            await bench.say(text)
        left, target = session.get_leaf_id(), first_answer(session)
        second = [head.id for head in session.heads if head.detail == "assistant"][1]
        nursery.start_soon(bench.harness.navigate_with_summary, second)
        await trio.sleep(1)
        with pytest.raises(BusyError, match="busy"):
            bench.harness.navigate(target)
        await bench.harness.wait_for_idle()
        (summary,) = [head for head in session.heads if head.type == "branch_summary"]
        assert (summary.parent_id, session.get_leaf_id()) == (second, summary.id)
        assert session.raw(summary.id)["fromId"] == left
        await bench.say("e")
        assert [text[-15:] for text in bench.requested(5)][:4] == ["a", "one", "b", "two"]
        assert "What was tried." in bench.requested(5)[4]


async def test_what_is_said_during_a_summary_goes_in_once_after_it(
    session: Session, autojump_clock: Any
) -> None:
    """TR-09: where the move led, and not where it came from."""
    script = ["one", "two", [Pause(5), "What was tried."], "three"]
    async with open_bench(session, *script) as bench, trio.open_nursery() as nursery:
        await bench.say("a")
        await bench.say("b")
        nursery.start_soon(bench.harness.navigate_with_summary, first_answer(session))
        await trio.sleep(1)
        bench.harness.steer("said meanwhile")
        await trio.sleep(10)
        await bench.harness.wait_for_idle()
        assert bench.texts()[0] == "a"
        assert bench.texts().count("said meanwhile") == 1
        said = [each for each in bench.kinds() if each in ("user", "assistant", "branch_summary")]
        assert said == ["user", "assistant", "branch_summary", "user", "assistant"]


def state_of(folder: Path) -> dict[str, tuple[str, int]]:
    """Content and time of every file, git's own included."""
    return {
        str(path): (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


async def test_moving_in_the_tree_moves_no_file(tmp_path: Path, demo_in_a_hurry: None) -> None:
    """TR-11: neither the agent's edits nor anybody else's, in a folder of a repository of git."""
    project = tmp_path / "project"
    (project / "sub").mkdir(parents=True)
    await trio.run_process(["git", "init", "-q", str(project)])
    async with open_runtime(
        RuntimeConfig(cwd=project / "sub", agent_dir=tmp_path / "agent", demo=True)
    ) as runtime:
        session_id = (await runtime.new_session()).session.id
        for text in ("hello", "run `echo agent > a.txt`", "run `true`"):
            await runtime.prompt(session_id, text)
            await runtime.wait_for_idle(session_id)
        (project / "b.txt").write_text("by hand\n")
        before = state_of(project)
        assert any(path.endswith("sub/a.txt") for path in before)
        snapshot = await runtime.snapshot(session_id)
        prompts = [head.id for head in snapshot.heads if head.detail == "user"]
        for target in (prompts[1], prompts[2], prompts[0], str(snapshot.leaf_id)):
            await runtime.navigate(session_id, target)
            assert state_of(project) == before
