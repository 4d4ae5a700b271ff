"""What the local runtime offers besides running sessions: files, keys, the machine."""

from __future__ import annotations

import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from pi_trio.errors import ConfigError, SessionError, StorageError, UsageError
from pi_trio.events import ToolExecutionStart
from pi_trio.harness.runtime import LocalRuntime, open_runtime
from pi_trio.hub import Outbox
from pi_trio.llm import demo
from pi_trio.messages import ImageContent, text_of
from pi_trio.remote.offers import CompletesFiles, KeepsKeys, LooksAround, SessionShelf
from pi_trio.resources.config import RuntimeConfig

KEY = "sk-ant-api03-" + "a1B2" * 10


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(demo, "DELTA_INTERVAL", 0.0)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PI_OFFLINE", "1")
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "PI_CODING_AGENT_DIR"):
        monkeypatch.delenv(name, raising=False)
    for name in ("project", "other", "agent", "home"):
        (tmp_path / name).mkdir()
    return tmp_path


@asynccontextmanager
async def runtime_at(root: Path, **options: Any) -> AsyncIterator[LocalRuntime]:
    config = RuntimeConfig(**{"cwd": root / "project", "agent_dir": root / "agent", "demo": True, **options})
    async with open_runtime(config) as runtime:
        yield runtime


async def _session(runtime: LocalRuntime, text: str) -> str:
    """A session in which something was said; its file."""
    session_id = (await runtime.new_session()).session.id
    await runtime.prompt(session_id, text)
    await runtime.wait_for_idle(session_id)
    path = (await runtime.snapshot(session_id)).session.path
    assert path is not None
    return path


async def test_it_offers_all(root: Path) -> None:
    async with runtime_at(root) as runtime:
        for offer in (SessionShelf, KeepsKeys, LooksAround, CompletesFiles):
            assert isinstance(runtime, offer)


async def test_sessions_are_listed_searched_and_previewed(root: Path) -> None:
    async with runtime_at(root) as runtime:
        apples, pears = await _session(runtime, "about apples"), await _session(runtime, "about pears")
        listed = await runtime.list_sessions()
        assert [each.path for each in listed] == [pears, apples]
        [found] = await runtime.list_sessions("apples")
        assert (found.path, found.first_message, found.excerpt) == (apples, "about apples", "about apples")
        prompt, answer = await runtime.preview_session(pears)
        assert prompt == "about pears"
        assert answer.startswith("I am the **demo model**")
        with pytest.raises(StorageError, match="gone"):
            await runtime.preview_session("/gone.jsonl")


async def test_a_session_is_renamed_whether_it_is_open_or_not(root: Path) -> None:
    async with runtime_at(root) as runtime:
        path = await _session(runtime, "hello")
        await runtime.rename_session(path, "while open")
        assert [each.name for each in await runtime.list_sessions()] == ["while open"]
        [session] = await runtime.list_sessions()
        await runtime.close_session(session.id)
        await runtime.rename_session(path, "while closed")
        assert [each.name for each in await runtime.list_sessions()] == ["while closed"]
        await runtime.rename_session(path, "")
        assert [each.name for each in await runtime.list_sessions()] == [None]


async def test_only_a_closed_session_is_deleted(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")  # no program for a trash
    async with runtime_at(root) as runtime:
        path = await _session(runtime, "hello")
        with pytest.raises(UsageError, match="open here"):
            await runtime.delete_session(path)
        [session] = await runtime.list_sessions()
        await runtime.close_session(session.id)
        assert await runtime.delete_session(path) is False
        assert not Path(path).exists()
        with pytest.raises((SessionError, OSError)):
            await runtime.delete_session(path)


async def test_a_copy_works_in_the_other_folder_and_the_source_stays(root: Path) -> None:
    async with runtime_at(root) as runtime:
        path = await _session(runtime, "hello")
        before = Path(path).read_bytes()
        copy = await runtime.copy_session(path, str(root / "other"))
        assert copy.session.cwd == str(root / "other")
        assert len(copy.heads) == before.count(b"\n") - 1
        result = await runtime.run_shell(copy.session.id, "pwd")
        assert result.output.strip() == str(root / "other")
        assert Path(path).read_bytes() == before
        with pytest.raises(UsageError, match="is not a folder"):
            await runtime.copy_session(path, str(root / "nowhere"))


async def test_a_key_is_stored_for_its_owner_and_the_session_gets_a_model(root: Path) -> None:
    async with runtime_at(root, demo=False) as runtime:
        session_id = (await runtime.new_session()).session.id
        assert {place.id: place.source for place in await runtime.key_places()}["anthropic"] is None
        path = Path(await runtime.store_key(session_id, "anthropic", f" {KEY}\n"))
        assert KEY in path.read_text()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        snapshot = await runtime.snapshot(session_id)
        assert snapshot.model.provider == "anthropic"
        assert "auth.json" in snapshot.notice
        assert KEY not in snapshot.notice
        for provider, key, problem in (("nobody", KEY, "no provider"), ("openai", " ", "No key was given")):
            with pytest.raises(ConfigError, match=problem):
                await runtime.store_key(session_id, provider, key)


async def test_a_demo_that_was_asked_for_stays(root: Path) -> None:
    async with runtime_at(root) as runtime:
        session_id = (await runtime.new_session()).session.id
        await runtime.store_key(session_id, "anthropic", KEY)
        assert (await runtime.snapshot(session_id)).model.provider == "demo"


async def test_the_surroundings_are_told(root: Path) -> None:
    pi = root / "home" / ".pi" / "agent"
    for name in ("sessions/x/1.jsonl", "sessions/x/2.jsonl", "skills/one/SKILL.md"):
        (pi / name).parent.mkdir(parents=True, exist_ok=True)
        (pi / name).write_text("")
    (pi / "auth.json").write_text('{"openai": {"type": "api_key", "key": "x"}, "a": {"type": "oauth"}}')
    async with runtime_at(root) as runtime:
        await _session(runtime, "hello")
        session_id = (await runtime.new_session()).session.id
        around = await runtime.surroundings(session_id)
        assert around.pi == f"{pi}: 2 sessions, 1 skill, 1 key"
        assert (around.sessions, around.trust, around.local) == (1, "nothing here needs trust", ())
        assert around.version


async def test_what_was_imported_is_not_offered_again(root: Path) -> None:
    header = '{"type":"session","version":3,"id":"%s","timestamp":"2030-01-01T00:00:00.000Z","cwd":"/p"}\n'
    pi = root / "home" / ".pi" / "agent"
    for name, text in {"sessions/p/1.jsonl": header % "01a1", "skills/one/SKILL.md": ""}.items():
        (pi / name).parent.mkdir(parents=True, exist_ok=True)
        (pi / name).write_text(text)
    (pi / "auth.json").write_text('{"openai": {"type": "api_key", "key": "x"}}')
    async with runtime_at(root) as runtime:
        session_id = (await runtime.new_session()).session.id
        await runtime.import_pi(dry_run=False)
        assert (await runtime.surroundings(session_id)).pi == ""
        (pi / "sessions" / "p" / "2.jsonl").write_text(header % "01a2")
        assert (await runtime.surroundings(session_id)).pi == f"{pi}: 1 session"


async def test_what_a_folder_brings_along_is_told(root: Path) -> None:
    (root / "project" / ".pi" / "skills" / "x").mkdir(parents=True)
    (root / "project" / ".pi" / "skills" / "x" / "SKILL.md").write_text("---\nname: x\ndescription: y\n---\n")
    async with runtime_at(root) as runtime:
        session_id = (await runtime.new_session()).session.id
        await runtime.set_trust(session_id, str(root / "project"), False)
        await runtime.reload(session_id)
        assert (await runtime.surroundings(session_id)).trust.endswith("is not used · /trust")
        await runtime.set_trust(session_id, str(root / "project"), True)
        await runtime.reload(session_id)
        assert (await runtime.surroundings(session_id)).trust == "this folder is trusted"


async def test_pis_folder_that_is_ours_is_not_offered(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PI_CODING_AGENT_DIR", str(root / "agent"))
    async with runtime_at(root) as runtime:
        await _session(runtime, "hello")
        assert (await runtime.surroundings((await runtime.new_session()).session.id)).pi == ""


async def test_files_of_the_sessions_folder_are_completed(root: Path) -> None:
    (root / "project" / "one_file.txt").write_text("")
    async with runtime_at(root) as runtime:
        session_id = (await runtime.new_session()).session.id
        assert await runtime.complete_file(session_id, "onfi") == ["one_file.txt"]


async def test_an_edited_message_keeps_its_images(root: Path) -> None:
    async with runtime_at(root) as runtime:
        session_id = (await runtime.new_session()).session.id
        await runtime.prompt(session_id, "run `sleep 60`")
        await runtime.follow_up(session_id, "look", [ImageContent("eA==", "image/png")])
        item = (await runtime.snapshot(session_id)).queue.follow_up_ids[-1]
        await runtime.edit_queued(session_id, item, "look again")
        waiting = runtime.harness(session_id).inbox.items("next-turn")[-1]
        assert text_of(waiting.message.content) == "look again"
        assert [block for block in waiting.message.content if isinstance(block, ImageContent)]
        await runtime.abort(session_id)


async def test_the_tour_goes_on_step_by_step(root: Path) -> None:
    async with runtime_at(root) as runtime:
        session_id = (await runtime.new_session()).session.id
        filled = trio.Event()
        outbox = Outbox(lambda: filled.set())
        await runtime.subscribe(session_id, outbox)
        await runtime.prompt(session_id, demo.TOUR)
        commands: list[str] = []
        while "sleep 20" not in commands:
            await filled.wait()
            filled = trio.Event()
            events = [envelope.event for envelope in outbox.take()]
            commands += [event.args["command"] for event in events if isinstance(event, ToolExecutionStart)]
        assert commands[0] == "ls"
        await runtime.abort(session_id)
        await runtime.continue_turn(session_id)
        await runtime.wait_for_idle(session_id)
        _, answer = await runtime.preview_session(str(runtime.harness(session_id).session.path))
        assert "That was the tour." in answer
