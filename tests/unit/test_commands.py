"""The slash commands over a real runtime on the demo model."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import pytest
import trio.testing

from pi_trio.builtin_commands import builtin_commands
from pi_trio.commands import View
from pi_trio.doctor import CHECKS
from pi_trio.errors import BusyError, ConfigError, StorageError, UsageError
from pi_trio.harness.runtime import LocalRuntime, open_runtime
from pi_trio.llm import demo
from pi_trio.prompt_tree import prompt_tree
from pi_trio.resources.config import RuntimeConfig
from pi_trio.session.tree import EntryHead


class Person:
    """Somebody at a session: what was told, offered and asked for."""

    def __init__(self, runtime: LocalRuntime, session_id: str) -> None:
        self.runtime, self.session_id = runtime, session_id
        self.told: list[str] = []
        self.edited: list[str] = []
        self.shown: list[str] = []
        self.gone = False
        self.opened: list[tuple[str, str]] = []
        self.has_places = False
        self.commands = builtin_commands()

    def tell(self, text: str) -> None:
        self.told.append(text)

    async def show(self, session_id: str) -> None:
        self.session_id = session_id
        self.shown.append(session_id)

    def edit(self, text: str) -> None:
        self.edited.append(text)

    def open_view(self, view: View, argument: str) -> bool:
        self.opened.append((view, argument))
        return self.has_places

    def quit(self) -> None:
        self.gone = True

    async def types(self, line: str) -> str:
        """Type a line; what was told, or an empty text if it went to the model."""
        self.told = []
        if not await self.commands.run(self, line):
            await self.runtime.prompt(self.session_id, line)
            await self.runtime.wait_for_idle(self.session_id)
        return "\n".join(self.told)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(demo, "DELTA_INTERVAL", 0.0)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "project").mkdir()
    (tmp_path / "agent").mkdir()
    return tmp_path


@asynccontextmanager
async def person_at(root: Path, **options: Any) -> AsyncIterator[Person]:
    config = RuntimeConfig(**{"cwd": root / "project", "agent_dir": root / "agent", "demo": True, **options})
    async with open_runtime(config) as runtime:
        yield Person(runtime, (await runtime.new_session()).session.id)


def _prompts(root: Path, name: str, text: str) -> None:
    (root / "agent" / "prompts").mkdir(exist_ok=True)
    (root / "agent" / "prompts" / f"{name}.md").write_text(text)


async def _said(person: Person) -> list[str]:
    """The texts of the user messages of the session, in file order."""
    ids = [head.id for head in (await person.runtime.snapshot(person.session_id)).heads]
    entries = await person.runtime.entries(person.session_id, ids)
    messages = [entry["message"] for entry in entries if entry["type"] == "message"]
    return [
        each["content"] if isinstance(each["content"], str) else each["content"][0]["text"]
        for each in messages
        if each["role"] == "user"
    ]


# ------------------------------------------------------------------ the registry


async def test_what_is_no_command_goes_to_the_model(root: Path) -> None:
    async with person_at(root) as person:
        for line in ("hello", "/", "/usr/bin/env", "/notes.txt is odd"):
            assert not await person.commands.run(person, line)


async def test_an_unknown_command_is_said(root: Path) -> None:
    async with person_at(root) as person:
        for line in ("/nothing", "/nothing of ours"):
            with pytest.raises(UsageError, match="no command /nothing: /help lists them"):
                await person.commands.run(person, line)


@pytest.mark.command("help")
async def test_commands_are_listed_with_their_sources_and_built_in_names_stay(root: Path) -> None:
    _prompts(root, "review", "---\ndescription: looks\nargument-hint: FILE\n---\nReview $1")
    _prompts(root, "model", "mine")
    (root / "agent" / "skills" / "pdf").mkdir(parents=True)
    (root / "agent" / "skills" / "pdf" / "SKILL.md").write_text("---\ndescription: reads\n---\nbody")
    async with person_at(root) as person:
        infos = {info.name: info for info in await person.commands.all(person)}
        assert infos["model"].source == "builtin"
        assert (infos["review"].source, infos["review"].argument_hint) == ("prompt", "FILE")
        assert infos["skill:pdf"].source == "skill"
        told = await person.types("/help")
        assert "/review FILE: looks (prompt)" in told
        assert "/skill:pdf: reads (skill)" in told


async def test_names_and_arguments_are_completed(root: Path) -> None:
    (root / "agent" / "extensions").mkdir()
    (root / "agent" / "extensions" / "x.py").write_text(
        "async def run(arguments): pass\n"
        "def extend(api): api.register_command('mood', run, choices=['good', 'bad'])\n"
    )
    async with person_at(root) as person:
        complete = person.commands.complete
        assert await complete(person, "/mo") == ["/model", "/mode", "/mouse", "/mood"]
        assert await complete(person, "/thinking hi") == ["/thinking high", "/thinking xhigh"]
        assert await complete(person, "/model dem") == ["/model demo/demo"]
        assert await complete(person, "/mood b") == ["/mood bad"]
        assert await complete(person, "hello") == await complete(person, "/none x") == []
        await person.types("hello")
        assert await complete(person, "/fork ") == ["/fork 1"]


async def test_templates_and_skills_are_sent_as_their_texts(root: Path) -> None:
    _prompts(root, "twice", "$1 and $1")
    async with person_at(root) as person:
        await person.types("/twice hello")
        assert await _said(person) == ["hello and hello"]


# ------------------------------------------------------------------ the built-in ones


@pytest.mark.command("model", "thinking")
async def test_model_and_thinking(root: Path) -> None:
    async with person_at(root) as person:
        assert "demo/demo" in await person.types("/model")
        assert await person.types("/model demo") == "The model is now demo/demo."
        with pytest.raises(ConfigError, match="There is no model 'none'"):
            await person.types("/model none")
        assert "The thinking level is " in await person.types("/thinking")
        assert (await person.types("/thinking off")) == "The thinking level is now off."
        with pytest.raises(UsageError, match="'hig' is not a thinking level"):
            await person.types("/thinking hig")


@pytest.mark.command("mode")
async def test_the_mode_says_what_runs_unasked(root: Path) -> None:
    async with person_at(root) as person:
        assert await person.types("/mode") == "The mode is auto: edits and commands run without asking."
        assert "asked about first" in await person.types("/mode ask")
        assert (await person.runtime.snapshot(person.session_id)).mode == "ask"
        assert "/mode read-only" in await person.commands.complete(person, "/mode ")
        with pytest.raises(UsageError, match="is not a mode"):
            await person.types("/mode yolo")


@pytest.mark.command("new", "name", "resume", "session")
async def test_new_name_resume_and_session(root: Path) -> None:
    async with person_at(root) as person:
        first = person.session_id
        await person.types("hello")
        assert await person.types("/name") == "The session has no name: /name NAME gives one."
        assert await person.types("/name one thing") == "The session is called one thing."
        told = await person.types("/session")
        assert "name: one thing" in told
        assert "prompts: 1 in" in told
        assert "spent: 0 tokens" not in told
        await person.types("/new")
        assert person.session_id != first
        await person.types(f"/resume {first}")
        assert person.session_id == first
        with pytest.raises(UsageError, match="Say which session"):
            await person.types("/resume")


@pytest.mark.command("tree")
async def test_the_tree_is_walked_by_numbers(root: Path) -> None:
    async with person_at(root) as person:
        assert await person.types("/tree") == "There is no prompt yet."
        for line in ("hello one", "hello two"):
            await person.types(line)
        assert await person.types("/tree 2") == "The conversation goes on before prompt 2."
        assert person.edited == ["hello two"]
        await person.types("hello three")
        assert (await person.types("/tree")).splitlines() == [
            "* 1. hello one",
            "    2. hello two",
            "*   3. hello three",
        ]
        with pytest.raises(UsageError, match="by its number"):
            await person.types("/tree 9")


@pytest.mark.command("fork", "clone")
async def test_fork_and_clone_open_other_sessions(root: Path) -> None:
    async with person_at(root) as person:
        with pytest.raises(UsageError, match="nothing to clone"):
            await person.types("/clone")
        for line in ("hello one", "hello two"):
            await person.types(line)
        first = person.session_id
        await person.types("/clone")
        assert person.session_id != first
        assert await _said(person) == ["hello one", "hello two"]
        await person.types("/fork 2")
        assert await _said(person) == ["hello one"]
        assert person.edited == ["hello two"]


@pytest.mark.command("trust", "reload")
async def test_a_change_of_trust_counts_at_once(root: Path) -> None:
    (root / "project" / ".pi" / "prompts").mkdir(parents=True)
    (root / "project" / ".pi" / "prompts" / "theirs.md").write_text("hello")
    async with person_at(root) as person:
        assert not await person.runtime.commands(person.session_id)
        await person.types("/reload")
        assert "is not trusted" in await person.types("/trust")
        await person.types("/trust yes")
        assert [info.name for info in await person.runtime.commands(person.session_id)] == ["theirs"]
        stored = json.loads((root / "agent" / "trust.json").read_text())
        assert stored == {str(root / "project"): True}
        await person.types("/trust no")
        assert not await person.runtime.commands(person.session_id)
        with pytest.raises(UsageError, match="/trust yes"):
            await person.types("/trust perhaps")
        with pytest.raises(UsageError, match="nor a folder above"):
            await person.runtime.set_trust(person.session_id, str(root / "agent"), True)


@pytest.mark.command("doctor")
async def test_the_doctor_looks_at_the_sessions_own_folder(root: Path) -> None:
    """The same checks as `pi-trio doctor`, which tests/unit/test_cli_commands.py goes through."""
    (root / "project" / "AGENTS.md").write_text("rules")
    async with person_at(root) as person:
        told = await person.types("/doctor")
    titles = [line[5:].partition(":")[0] for line in told.splitlines() if not line.startswith("    ")]
    assert list(dict.fromkeys(titles)) == list(CHECKS)
    assert str(root / "project" / "AGENTS.md") in told


@pytest.mark.command("export")
async def test_the_session_is_exported_to_a_file(root: Path) -> None:
    async with person_at(root) as person:
        await person.types("hello there")
        told = await person.types("/export")
        page = root / "project" / f"session-{person.session_id}.html"
        assert told == f"Written to {page}."
        assert "hello there" in page.read_text()
        await person.types("/export")  # it may have grown
        assert await person.types("/export talk.md") == f"Written to {root / 'project' / 'talk.md'}."
        assert "hello there" in (root / "project" / "talk.md").read_text()
        with pytest.raises(StorageError, match=r"talk\.md is there already"):
            await person.types("/export talk.md")
        with pytest.raises(UsageError, match=r"\.html, \.md, \.jsonl"):
            await person.types("/export talk.pdf")


async def test_what_a_runtime_does_not_offer_is_said(root: Path) -> None:
    async with person_at(root) as person:
        person.runtime = SimpleNamespace()
        person.runtime.commands = AsyncMock(return_value=())
        names = {info.name for info in await person.commands.all(person)}
        assert "model" in names
        assert not names & {"doctor", "export", "import", "login", "settings", "context"}
        for line in ("/doctor", "/export", "/import pi"):
            with pytest.raises(UsageError, match=f"{line.split()[0]} is not possible here"):
                await person.types(line)


@pytest.mark.command("import")
async def test_import_pi_takes_no_other_word(root: Path) -> None:
    async with person_at(root) as person:
        with pytest.raises(UsageError, match="/import pi"):
            await person.types("/import everything")
        with pytest.raises(ConfigError, match="is not there"):
            await person.types("/import pi")


async def test_busy_commands_are_refused(root: Path) -> None:
    async with person_at(root) as person:
        await person.types("hello")
        await person.runtime.prompt(person.session_id, "run `sleep 60`")
        for line in ("/tree 1", "/reload"):
            with pytest.raises(BusyError):
                await person.types(line)
        await person.runtime.abort(person.session_id)
        await person.types("/quit")
        assert person.gone


# ------------------------------------------------------------------ the tree of prompts


def _heads(*rows: tuple[str, str | None, str]) -> list[EntryHead]:
    kinds = {"leaf": "leaf", "turn/end": "custom"}
    return [EntryHead(each, parent, kinds.get(role, "message"), role) for each, parent, role in rows]


def test_prompts_form_a_tree_with_several_roots() -> None:
    heads = _heads(
        ("a", None, "user"),
        ("b", "a", "assistant"),
        ("c", "b", "user"),
        ("d", "a", "user"),
        ("e", "c", "user"),
        ("f", None, "user"),
        ("g", "gone", "user"),
    )
    nodes = [(node.id, node.number, node.depth, node.active) for node in prompt_tree(heads, "e")]
    assert nodes == [
        ("a", 1, 0, True),
        ("c", 2, 1, True),
        ("e", 4, 1, True),
        ("d", 3, 1, False),
        ("f", 5, 0, False),
        ("g", 6, 0, False),
    ]
    assert prompt_tree([], None) == []


def test_a_prompt_that_was_withdrawn_is_not_of_the_tree() -> None:
    said = (("a", None, "user"), ("b", "a", "assistant"), ("c", "b", "user"), ("d", "c", "turn/end"))
    back = (("l", "b", "leaf"),)
    anew = (("e", "l", "user"), ("f", "e", "assistant"))
    returned = (("m", "d", "leaf"),)

    def prompts(*lines: tuple[str, str | None, str], leaf: str) -> list[tuple[str, int, int]]:
        return [(node.id, node.number, node.depth) for node in prompt_tree(_heads(*lines), leaf)]

    assert prompts(*said, leaf="d") == [("a", 1, 0), ("c", 2, 0)]
    assert prompts(*said, *back, leaf="b") == [("a", 1, 0)]
    assert prompts(*said, *back, *anew, leaf="f") == [("a", 1, 0), ("e", 2, 0)]
    assert prompts(*said, *back, *returned, leaf="d") == [("a", 1, 0), ("c", 2, 0)]


def test_a_long_conversation_is_no_deep_recursion() -> None:
    heads = _heads(*((str(at), str(at - 1) if at else None, "user") for at in range(20_000)))
    nodes = prompt_tree(heads, "19999")
    assert len(nodes) == 20_000
    assert {node.depth for node in nodes} == {0}


async def test_login_is_a_place_or_another_way_is_told(root: Path) -> None:
    async with person_at(root) as person:
        assert "`pi-trio auth login PROVIDER`" in await person.types("/login")
        assert "`pi-trio auth login openai`" in await person.types("/login openai")
        person.has_places = True
        assert await person.types("/login openai") == ""
        assert person.opened[-1] == ("login", "openai")
        with pytest.raises(UsageError, match="Not stored"):
            await person.types("/login sk-ant-api03-" + "a1B2" * 10)
        assert "/login anthropic" in await person.commands.complete(person, "/login anth")


async def test_resume_alone_opens_the_list_where_there_is_one(root: Path) -> None:
    async with person_at(root) as person:
        with pytest.raises(UsageError, match="Say which session"):
            await person.types("/resume")
        person.has_places = True
        await person.types("/resume")
        assert person.opened[-1] == ("sessions", "")


@pytest.mark.command("tour")
async def test_the_tour_has_a_session_of_its_own(root: Path) -> None:
    async with person_at(root) as person:
        before = person.session_id
        await person.types("/tour")
        assert person.session_id != before
        await trio.testing.wait_all_tasks_blocked()
        assert await _said(person) == [demo.TOUR]
        await person.runtime.abort(person.session_id)


# ------------------------------------------------------------------ the program itself


@pytest.mark.command("settings")
async def test_settings_in_plain_lines(root: Path) -> None:
    async with person_at(root) as person:
        assert "retry.maxRetries: 3\n" in await person.types("/settings")
        assert "how often at most" in await person.types("/settings retry.maxRetries")
        told = await person.types("/settings retry.maxRetries 7")
        assert told.startswith("retry.maxRetries is now 7.")
        assert json.loads((root / "agent" / "settings.json").read_text()) == {"retry": {"maxRetries": 7}}
        assert "retry.maxRetries: 7 (global)" in await person.types("/settings")
        await person.types("/settings retry.maxRetries default")
        assert "retry.maxRetries: 3\n" in await person.types("/settings")
        with pytest.raises(UsageError, match="x is not a setting"):
            await person.types("/settings x")
        with pytest.raises(UsageError, match="must be a whole number"):
            await person.types("/settings retry.maxRetries many")
        completed = await person.commands.complete(person, "/settings maxretries")
        assert completed == ["/settings retry.maxRetries"]


@pytest.mark.command("theme", "mouse")
async def test_the_theme_and_the_mouse_where_there_is_no_screen(root: Path) -> None:
    async with person_at(root) as person:
        assert "the colours of the screen" in await person.types("/theme")
        assert (await person.types("/theme nord")).startswith('theme is now "nord".')
        with pytest.raises(UsageError, match="no mouse"):
            await person.types("/mouse off")
        with pytest.raises(UsageError, match="/mouse on or /mouse off"):
            await person.types("/mouse perhaps")


@pytest.mark.command("context")
async def test_what_fills_the_window(root: Path) -> None:
    (root / "project" / "AGENTS.md").write_text("be brief " * 100)
    async with person_at(root) as person:
        before = await person.runtime.context_use(person.session_id)
        assert {part.name for part in before.parts} == {"tool definitions", "system prompt", "context files"}
        await person.types("run `echo " + "word " * 50 + "`")
        use = await person.runtime.context_use(person.session_id)
        names = {part.name for part in use.parts}
        assert {"prompts", "answers and calls", "tool results"} <= names
        assert sum(part.tokens for part in use.parts) == use.tokens
        size = person.runtime._open(person.session_id).harness.compactor.meter.size
        assert abs(use.tokens - size) <= max(len(use.parts), size * 0.05)
        lines = (await person.types("/context")).splitlines()
        assert lines[0].startswith(f"The context holds {use.tokens:,} tokens of {use.window:,}")
        free = next(line for line in lines if line.split()[0] == "free")
        assert f"{use.window - use.tokens:,}" in free


async def test_whose_keys_were_brought_over_is_told_how_to_use_them(root: Path) -> None:
    """Whoever has a model already keeps it."""
    pi = root / "home" / ".pi" / "agent"
    pi.mkdir(parents=True)
    (pi / "auth.json").write_text('{"openai": {"type": "api_key", "key": "x"}}')
    async with person_at(root) as person:
        assert "/model" not in await person.types("/import pi --dry-run")
        told = await person.types("/import pi")
        assert told.endswith("\nThe demo model still answers here: /model chooses one that a key is for.")
        assert "/model" not in await person.types("/import pi"), "they are here already"
        await person.types("/model openai/gpt-5.5")
        (pi / "auth.json").write_text('{"anthropic": {"type": "api_key", "key": "x"}}')
        assert await person.types("/import pi") == "key of anthropic: copied"
