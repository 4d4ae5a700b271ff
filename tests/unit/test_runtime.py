"""The runtime in this process, on the demo model and real files."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from pi_trio.codec import loads
from pi_trio.errors import BusyError, ConfigError, SessionError, UsageError
from pi_trio.events import (
    AgentEvent,
    AgentSettled,
    ApprovalRequested,
    ApprovalResolved,
    EntryAppended,
    ToolExecutionStart,
    ToolExecutionUpdate,
)
from pi_trio.harness.runtime import LocalRuntime, open_runtime
from pi_trio.hub import Outbox
from pi_trio.remote.interface import Runtime, Snapshot
from pi_trio.resources.config import RuntimeConfig
from pi_trio.resources.settings import GateSettings, Settings
from pi_trio.wire import event_to_json

pytestmark = pytest.mark.usefixtures("demo_in_a_hurry")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "README.md").write_text("# A small project\n")
    return folder


@asynccontextmanager
async def runtime_of(project: Path, **options: Any) -> AsyncIterator[LocalRuntime]:
    config = RuntimeConfig(**{"cwd": project, "agent_dir": project.parent / "agent", "demo": True, **options})
    async with open_runtime(config) as runtime:
        checked: Runtime = runtime  # mypy: it is what screens expect
        assert checked is runtime
        yield runtime


async def _say(runtime: LocalRuntime, session_id: str, text: str) -> None:
    await runtime.prompt(session_id, text)
    await runtime.wait_for_idle(session_id)


async def _bodies(runtime: LocalRuntime, snapshot: Snapshot) -> list[dict[str, Any]]:
    ids = [head.id for head in (await runtime.snapshot(snapshot.session.id)).heads]
    return [dict(entry) for entry in await runtime.entries(snapshot.session.id, ids)]


def _role(entry: dict[str, Any]) -> str | None:
    role: str | None = entry.get("message", {}).get("role")
    return role


def _digest(path: str | None) -> str:
    assert path is not None
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


async def test_a_new_session_has_no_file_before_its_first_input(project: Path) -> None:
    async with runtime_of(project) as runtime:
        snapshot = await runtime.new_session()
        assert snapshot.session.path is not None
        assert not Path(snapshot.session.path).exists()
        await _say(runtime, snapshot.session.id, "hello")
        assert Path(snapshot.session.path).is_file()


async def test_the_demo_model_uses_the_real_tools(project: Path) -> None:
    async with runtime_of(project) as runtime:
        snapshot = await runtime.new_session()
        await _say(runtime, snapshot.session.id, "read README.md and run `ls`")
        results = [each for each in await _bodies(runtime, snapshot) if _role(each) == "toolResult"]
        texts = [each["message"]["content"][0]["text"] for each in results]
        assert texts == ["# A small project\n", "README.md\n"]


async def test_a_session_comes_back_as_it_was(project: Path) -> None:
    async with runtime_of(project) as runtime:
        first = await runtime.new_session()
        await _say(runtime, first.session.id, "hello")
        bodies = await _bodies(runtime, first)
    async with runtime_of(project) as runtime:
        again = await runtime.continue_session()
        assert again.session.id == first.session.id
        assert await _bodies(runtime, again) == bodies
        assert again.leaf_id == bodies[-1]["id"]


async def test_without_a_session_to_continue_a_new_one_is_opened(project: Path) -> None:
    async with runtime_of(project) as runtime:
        assert (await runtime.continue_session()).heads == ()


async def test_a_session_opens_by_the_beginning_of_its_id_and_only_once(project: Path) -> None:
    async with runtime_of(project) as runtime:
        snapshot = await runtime.new_session()
        await _say(runtime, snapshot.session.id, "hello")
        path = Path(str(snapshot.session.path))
        link = project / "link.jsonl"
        link.symlink_to(path)
        for reference in (snapshot.session.id, snapshot.session.id[:13], str(path), str(link)):
            assert (await runtime.open_session(reference)).session == snapshot.session
    async with runtime_of(project) as runtime:
        assert (await runtime.open_session(snapshot.session.id[:13])).session.id == snapshot.session.id


async def test_navigating_before_a_prompt_gives_its_text_and_makes_a_branch(project: Path) -> None:
    async with runtime_of(project) as runtime:
        session_id = (snapshot := await runtime.new_session()).session.id
        await _say(runtime, session_id, "hello")
        await _say(runtime, session_id, "run `ls`")
        prompts = [each for each in await _bodies(runtime, snapshot) if _role(each) == "user"]
        moved = await runtime.navigate(session_id, prompts[1]["id"])
        assert moved.text == "run `ls`"
        await _say(runtime, session_id, "run `pwd`")
        tree = runtime.repository.open(session_id, writable=False).tree
        branches = [
            tree.path(each["id"]) for each in await _bodies(runtime, snapshot) if _role(each) == "user"
        ]
        assert branches[0][-1] in branches[1]
        assert branches[0][-1] in branches[2]
        assert branches[1][-1] not in branches[2]


async def test_a_fork_leaves_its_source_as_it_is(project: Path) -> None:
    """TR-04"""
    async with runtime_of(project) as runtime:
        session_id = (snapshot := await runtime.new_session()).session.id
        await _say(runtime, session_id, "hello")
        await _say(runtime, session_id, "run `ls`")
        before = _digest(snapshot.session.path)
        prompt = [each for each in await _bodies(runtime, snapshot) if _role(each) == "user"][1]
        moved = await runtime.fork(session_id, prompt["id"], "before")
        fork = await runtime.snapshot(moved.session_id)
        assert moved.text == "run `ls`"
        assert not Path(str(fork.session.path)).exists()
        await _say(runtime, moved.session_id, "run `pwd`")
        header = loads(Path(str(fork.session.path)).read_bytes().splitlines()[0])
        assert header["parentSession"] == snapshot.session.path
        assert _digest(snapshot.session.path) == before


async def test_nothing_moves_while_a_run_is_in_progress(project: Path) -> None:
    async with runtime_of(project) as runtime:
        session_id = (await runtime.new_session()).session.id
        await _say(runtime, session_id, "hello")
        entry = (await runtime.snapshot(session_id)).heads[0].id
        await runtime.prompt(session_id, "run `sleep 60`")
        with pytest.raises(BusyError):
            await runtime.navigate(session_id, entry)
        with pytest.raises(BusyError):
            await runtime.prompt(session_id, "hello")
        await runtime.abort(session_id)


async def test_a_subscriber_sees_what_follows_its_snapshot(project: Path) -> None:
    async with runtime_of(project) as runtime:
        session_id = (await runtime.new_session()).session.id
        outbox = Outbox(lambda: None)
        snapshot = await runtime.subscribe(session_id, outbox)
        await _say(runtime, session_id, "hello")
        envelopes = outbox.take()
        assert snapshot.seq == 0
        assert isinstance(envelopes[-1].event, AgentSettled)
        told = [each.event.entry["id"] for each in envelopes if isinstance(each.event, EntryAppended)]
        assert told == [head.id for head in (await runtime.snapshot(session_id)).heads]
        await runtime.unsubscribe(session_id, outbox)
        assert outbox.closed


async def test_leaving_the_runtime_stops_what_runs(project: Path) -> None:
    pids: list[int] = []
    async with runtime_of(project) as runtime:
        session_id = (await runtime.new_session()).session.id
        printed = trio.Event()

        def listen(event: AgentEvent) -> None:
            if isinstance(event, ToolExecutionUpdate) and event.partial_result.content:
                pids.append(int(event.partial_result.content[0].text))  # type: ignore[union-attr]
                printed.set()

        runtime._open(session_id).harness.hub.subscribe(listen)
        await runtime.prompt(session_id, "run `echo $$; sleep 60`")
        await printed.wait()
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)


async def test_cancelling_around_the_runtime_leaves_a_whole_session(project: Path) -> None:
    with trio.CancelScope() as scope:
        async with runtime_of(project) as runtime:
            session_id = (snapshot := await runtime.new_session()).session.id
            runtime._open(session_id).harness.hub.subscribe(
                lambda event: scope.cancel() if isinstance(event, ToolExecutionStart) else None
            )
            await _say(runtime, session_id, "run `sleep 60`")
    assert scope.cancelled_caught
    lines = [loads(line) for line in Path(str(snapshot.session.path)).read_bytes().splitlines()]
    assert [line.get("customType") for line in lines][-2:] == ["step/end", "turn/end"]
    assert lines[-3]["message"]["role"] == "toolResult"


async def test_the_model_of_the_flag_wins_over_the_session_and_the_settings(project: Path) -> None:
    agent = project.parent / "agent"
    agent.mkdir()
    models = {
        "providers": {
            "local": {
                "baseUrl": "http://127.0.0.1:9",
                "apiKey": "none",
                "models": [{"id": "one"}, {"id": "two"}],
            }
        }
    }
    (agent / "models.json").write_text(json.dumps(models))
    settings = Settings(default_provider="local", default_model="two")
    async with runtime_of(project, demo=False, settings=settings) as runtime:
        assert (await runtime.new_session()).model.reference == "local/two"
    async with runtime_of(project, demo=False, settings=settings, model="local/one") as runtime:
        assert (await runtime.new_session()).model.reference == "local/one"
    async with runtime_of(project, settings=settings) as runtime:
        await _say(runtime, (await runtime.new_session()).session.id, "hello")
    async with runtime_of(project, demo=False, settings=settings) as runtime:
        assert (await runtime.continue_session()).model.reference == "demo/demo"


async def test_without_any_key_the_demo_model_is_used_and_says_so(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "OPENROUTER_API_KEY", "DEEPSEEK_API_KEY", "GROQ_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    async with runtime_of(project, demo=False) as runtime:
        snapshot = await runtime.new_session()
        assert snapshot.model.reference == "demo/demo"
        assert "no key was found" in snapshot.notice


async def test_wrong_names_are_one_clear_error(project: Path) -> None:
    async with runtime_of(project) as runtime:
        session_id = (await runtime.new_session()).session.id
        with pytest.raises(ConfigError, match="nonsense"):
            await runtime.set_model(session_id, "nonsense/model")
        with pytest.raises(SessionError):
            await runtime.open_session("ffffffff")
        with pytest.raises(UsageError):
            await runtime.navigate(session_id, "ffffffff")
        with pytest.raises(UsageError):
            await runtime.abort("ffffffff")


@pytest.mark.parametrize("name", ["linear", "tree-two-branches"])
async def test_sessions_of_pi_open_and_go_on(project: Path, shared: Path, name: str) -> None:
    path = project / f"{name}.jsonl"
    shutil.copy(shared / "sessions" / "real-pi" / f"{name}.jsonl", path)
    before = path.read_bytes()
    async with runtime_of(project) as runtime:
        snapshot = await runtime.open_session(str(path))
        assert path.read_bytes() == before
        await _say(runtime, snapshot.session.id, "hello")
    after = path.read_bytes()
    assert after.startswith(before)
    added = [loads(line) for line in after[len(before) :].splitlines()]
    assert added[0]["parentId"] == loads(before.splitlines()[-1])["id"]
    assert [_role(entry) for entry in added if _role(entry)] == ["system", "user", "assistant"]


# ---- tools and what they may do


def _declared(runtime: LocalRuntime, session_id: str) -> list[str]:
    return [tool.name for tool in runtime.harness(session_id).active_tools]


@pytest.mark.parametrize(
    ("choice", "declared"),
    [
        (("read", "bash", "edit", "write"), ["read", "bash", "edit", "write"]),
        (("+grep", "-bash"), ["read", "edit", "write", "grep"]),
        (("ls", "+find"), ["ls", "find"]),
    ],
)
async def test_the_tools_of_the_settings(project: Path, choice: tuple[str, ...], declared: list[str]) -> None:
    async with runtime_of(project, settings=Settings(default_tools=choice)) as runtime:
        assert _declared(runtime, (await runtime.new_session()).session.id) == declared


async def test_a_session_whose_folder_and_model_are_gone_opens_and_says_so(project: Path) -> None:
    """RS-05: nothing is lost, and what takes their place is named."""
    async with runtime_of(project) as runtime:
        session_id = (await runtime.new_session()).session.id
        await _say(runtime, session_id, "hello")
        path = Path(str((await runtime.snapshot(session_id)).session.path))
    shutil.rmtree(project)
    path.write_text(path.read_text().replace('"provider":"demo"', '"provider":"lost"'))
    before = path.read_bytes()
    elsewhere = project.parent / "elsewhere"
    elsewhere.mkdir()
    async with runtime_of(elsewhere, agent_dir=project.parent / "agent", demo=False) as runtime:
        snapshot = await runtime.open_session(str(path))
        folder, model = snapshot.findings[:2]
        assert folder == f"The folder of this session, {project}, is gone: tools work in {elsewhere}."
        assert model.startswith("The model of this session, lost/demo, cannot be used now: ")
        assert path.read_bytes() == before
        await _say(runtime, snapshot.session.id, "are you there?")
        assert path.read_bytes().startswith(before)


async def test_a_tool_that_is_not_there_is_told(project: Path) -> None:
    async with runtime_of(project, settings=Settings(default_tools=("+grpe",))) as runtime:
        (finding,) = (await runtime.new_session()).findings
        assert finding.startswith(
            "settings.json: defaultTools: there is no tool 'grpe'; there are read, bash,"
        )


async def test_read_only_has_other_tools_and_the_model_is_told(project: Path) -> None:
    async with runtime_of(project, mode="read-only") as runtime:
        snapshot = await runtime.new_session()
        assert snapshot.mode == "read-only"
        await _say(runtime, snapshot.session.id, "search small and list the files")
        bodies = await _bodies(runtime, snapshot)
        (system,) = [each["message"] for each in bodies if _role(each) == "system"]
        assert [tool["name"] for tool in system["toolsAdded"]] == ["read", "grep", "find", "ls"]
        results = [each["message"]["content"][0]["text"] for each in bodies if _role(each) == "toolResult"]
        assert results == ["README.md:1: # A small project", "README.md"]


async def test_what_a_session_of_pi_chose_is_offered_but_nothing_forbidden(project: Path) -> None:
    """A tool that is off here is on in that branch; read-only, nothing brings a writing tool back."""
    async with runtime_of(project) as runtime:
        session_id = (await runtime.new_session()).session.id
        assert _declared(runtime, session_id) == ["read", "bash", "edit", "write"]
        runtime.harness(session_id).session.append_active_tools_change(["write", "grep", "of_an_extension"])
        runtime.harness(session_id).branch_changed()
        assert _declared(runtime, session_id) == ["write", "grep"]
        await runtime.set_mode(session_id, "read-only")
        assert _declared(runtime, session_id) == ["grep"]


async def test_a_mode_is_changed_within_a_session(project: Path) -> None:
    async with runtime_of(project) as runtime:
        snapshot = await runtime.new_session()
        await runtime.set_mode(snapshot.session.id, "read-only")
        assert (await runtime.snapshot(snapshot.session.id)).mode == "read-only"
        assert _declared(runtime, snapshot.session.id) == ["read", "grep", "find", "ls"]
        await runtime.set_mode(snapshot.session.id, "auto")
        await _say(runtime, snapshot.session.id, "write hello to notes.txt")
        assert (project / "notes.txt").read_text() == "hello\n"


async def test_where_nobody_can_be_asked_the_call_is_not_run(project: Path) -> None:
    settings = Settings(gate=GateSettings(mode="ask"))
    async with runtime_of(project, settings=settings) as runtime:
        snapshot = await runtime.new_session()
        await _say(runtime, snapshot.session.id, "write hello to notes.txt and read README.md")
        results = [
            each["message"] for each in await _bodies(runtime, snapshot) if _role(each) == "toolResult"
        ]
        assert [result["isError"] for result in results] == [True, False]
        assert "a person must be asked and none is here" in results[0]["content"][0]["text"]
        assert not (project / "notes.txt").exists()


@pytest.mark.parametrize(("answer", "written"), [("once", True), ("no", False)])
async def test_a_question_waits_for_its_answer(project: Path, answer: Any, written: bool) -> None:
    async with runtime_of(project, mode="ask", can_ask=True) as runtime:
        session_id = (await runtime.new_session()).session.id
        told: list[AgentEvent] = []
        asked = trio.Event()

        def listen(event: AgentEvent) -> None:
            if isinstance(event, (ApprovalRequested, ApprovalResolved)):
                told.append(event)
                asked.set()

        runtime._open(session_id).harness.hub.subscribe(listen)
        await runtime.prompt(session_id, "write hello to notes.txt")
        await asked.wait()
        (question,) = (await runtime.snapshot(session_id)).questions
        assert question.args == {"path": "notes.txt", "content": "hello\n"}
        assert not (project / "notes.txt").exists()
        await runtime.answer(session_id, question.id, answer)
        await runtime.wait_for_idle(session_id)
        assert (project / "notes.txt").exists() == written
        assert told == [ApprovalRequested(question), ApprovalResolved(question.id)]
        assert event_to_json(told[0])["question"]["toolName"] == "write"
        with pytest.raises(UsageError):
            await runtime.answer(session_id, question.id, answer)


async def test_a_question_is_withdrawn_by_an_abort(project: Path) -> None:
    async with runtime_of(project, mode="ask", can_ask=True) as runtime:
        session_id = (await runtime.new_session()).session.id
        asked = trio.Event()
        runtime._open(session_id).harness.hub.subscribe(
            lambda event: asked.set() if isinstance(event, ApprovalRequested) else None
        )
        await runtime.prompt(session_id, "run `touch made`")
        await asked.wait()
        await runtime.abort(session_id)
        assert (await runtime.snapshot(session_id)).questions == ()
        assert not (project / "made").exists()


async def test_a_rule_that_cannot_be_read_stops_the_start(project: Path) -> None:
    settings = Settings(gate=GateSettings(deny=("bash(rm",)))
    async with runtime_of(project, settings=settings) as runtime:
        with pytest.raises(ConfigError, match=r"gate: 'bash\(rm' is not a rule"):
            await runtime.new_session()


@pytest.mark.parametrize("call", ["prompt", "steer", "follow_up"])
async def test_without_a_key_nothing_is_taken(
    project: Path, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HL-01: no file is left, and who asked still has the text."""
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    async with runtime_of(project, demo=False, model="anthropic/claude-sonnet-4-5") as runtime:
        snapshot = await runtime.new_session()
        with pytest.raises(ConfigError, match="There is no API key for anthropic: set ANTHROPIC_API_KEY"):
            await getattr(runtime, call)(snapshot.session.id, "hello")
        after = await runtime.snapshot(snapshot.session.id)
        assert (after.running, after.heads, after.returned) == (False, (), ())
        assert after.session.path is not None
        assert not Path(after.session.path).exists()
        await runtime.set_model(snapshot.session.id, "demo/demo")
        await _say(runtime, snapshot.session.id, "hello")
        assert Path(after.session.path).is_file()


async def test_an_id_of_ones_own_names_one_session(project: Path) -> None:
    """HL-09"""
    async with runtime_of(project) as runtime:
        first = await runtime.session_of("job-1")
        assert first.session.id == "job-1"
        await _say(runtime, "job-1", "hello")
        longer = await runtime.session_of("job-12")  # the beginning of an id is not the id
        assert longer.session.id == "job-12"
        await _say(runtime, "job-12", "hello")
    async with runtime_of(project) as runtime:
        again = await runtime.session_of("job-1")
        assert again.session.path == first.session.path
        assert again.heads
        assert (await runtime.session_of("job-1")).session.path == first.session.path
        with pytest.raises(UsageError, match="cannot be the id of a session"):
            await runtime.session_of("../job")


async def test_a_fork_of_a_file_leaves_the_file_alone(project: Path) -> None:
    async with runtime_of(project) as runtime:
        source = await runtime.new_session()
        await _say(runtime, source.session.id, "hello")
        before = _digest(source.session.path)
        fork = await runtime.fork_file(source.session.id)
        assert fork.session.parent_session == source.session.path
        assert len(fork.heads) == len((await runtime.snapshot(source.session.id)).heads)
        assert fork.session.path is not None
        assert not Path(fork.session.path).exists(), "nothing was said in it yet"
        await _say(runtime, fork.session.id, "and on")
        assert Path(fork.session.path).is_file()
        assert _digest(source.session.path) == before
