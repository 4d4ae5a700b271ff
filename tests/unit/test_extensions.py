"""Extensions: what they register, what comes of a failure, and that nothing of them stays."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from trio.testing import wait_all_tasks_blocked

from pi_trio.errors import BusyError, ConfigError, UsageError
from pi_trio.events import AgentSettled, EntryAppended, ExtensionError, SessionInfoChanged
from pi_trio.extensions import loading
from pi_trio.extensions.renderers import render
from pi_trio.harness.runtime import LocalRuntime, open_runtime
from pi_trio.hub import Outbox
from pi_trio.remote.interface import CommandInfo
from pi_trio.resources.config import RuntimeConfig
from pi_trio.resources.settings import Settings
from pi_trio.resources.trust import Trust
from pi_trio.tools.gate import Gate

pytestmark = pytest.mark.usefixtures("demo_in_a_hurry")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The agent directory's folder of extensions."""
    folder = tmp_path / "agent" / "extensions"
    folder.mkdir(parents=True)
    (tmp_path / "project").mkdir()
    return folder


class Session:
    """A session whose events are kept."""

    def __init__(self, runtime: LocalRuntime, session_id: str) -> None:
        self.runtime, self.id = runtime, session_id
        self.outbox = Outbox(lambda: None)
        self.harness = runtime._open(session_id).harness

    async def say(self, text: str) -> list[Any]:
        await self.runtime.prompt(self.id, text)
        await self.runtime.wait_for_idle(self.id)
        return self.events()

    def events(self) -> list[Any]:
        return [envelope.event for envelope in self.outbox.take()]

    def entries(self, kind: str) -> list[dict[str, Any]]:
        session = self.harness.session
        return [dict(session.raw(head.id)) for head in session.heads if head.type == kind]

    def results(self) -> list[str]:
        messages = [entry["message"] for entry in self.entries("message")]
        return [each["content"][0]["text"] for each in messages if each["role"] == "toolResult"]


@asynccontextmanager
async def session_of(folder: Path, **options: Any) -> AsyncIterator[Session]:
    root = folder.parents[1]
    config = RuntimeConfig(**{"cwd": root / "project", "agent_dir": root / "agent", "demo": True, **options})
    async with open_runtime(config) as runtime:
        session = Session(runtime, (await runtime.new_session()).session.id)
        await runtime.subscribe(session.id, session.outbox)
        yield session


# ------------------------------------------------------------------ loading


def _load(folder: Path, **options: Any) -> loading.Loaded:
    root = folder.parents[1]
    config = RuntimeConfig(cwd=root / "project", agent_dir=root / "agent", **options)
    return loading.load_extensions(config)


def _paths(loaded: loading.Loaded) -> list[str]:
    return [Path(each.path).relative_to(Path(each.path).parents[1]).as_posix() for each in loaded.extensions]


def test_files_and_packages_are_loaded_in_order(folder: Path) -> None:
    (folder / "b.py").write_text("def extend(api): pass")
    (folder / "a").mkdir()
    (folder / "a" / "__init__.py").write_text("from .inner import extend")
    (folder / "a" / "inner.py").write_text("def extend(api): pass")
    (folder / "_private.py").write_text("raise SystemExit")
    (folder / "notes.txt").write_text("")
    loaded = _load(folder)
    assert _paths(loaded) == ["a/__init__.py", "extensions/b.py"]
    assert loaded.findings == ()
    assert not list(folder.rglob("__pycache__")), "a new file in a trusted folder would ask again"


def test_a_projects_extensions_need_a_yes(folder: Path) -> None:
    """SE-14: without one the file is not even imported."""
    project = folder.parents[1] / "project" / ".pi" / "extensions"
    project.mkdir(parents=True)
    (project / "evil.py").write_text("raise AssertionError('it ran')")
    assert _load(folder) == loading.Loaded()
    assert "it ran" in _load(folder, trust=Trust(True)).findings[0]


async def test_a_session_of_another_folder_does_not_bring_its_extensions(folder: Path) -> None:
    """SE-18: the yes was to this folder; the session names its own."""
    other = folder.parents[1] / "other"
    (other / ".pi" / "extensions").mkdir(parents=True)
    (other / ".pi" / "extensions" / "evil.py").write_text("raise AssertionError('it ran')")
    header = {"type": "session", "version": 3, "id": "s1", "timestamp": "", "cwd": str(other)}
    path = folder.parents[1] / "from-elsewhere.jsonl"
    path.write_text(json.dumps(header) + "\n")
    async with session_of(folder, approve=True, trust=Trust(True)) as session:
        snapshot = await session.runtime.open_session(str(path))
        assert "evil" not in str(snapshot.findings)
        assert "is not trusted yet" in str(snapshot.findings)


def test_paths_that_are_named_are_loaded_too(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("def extend(api): pass")
    (tmp_path / "many").mkdir()
    (tmp_path / "many" / "two.py").write_text("def extend(api): pass")
    names = ("one.py", "many", "many/two.py", "none.py", "pi.ts", "-builtin:mcp")
    named = tuple(str(tmp_path / name) for name in names)
    loaded = _load(folder, extensions=named)
    assert [Path(each.path).name for each in loaded.extensions] == ["one.py", "two.py"]
    assert loaded.findings == (f"{tmp_path}/none.py is not an extension: it is no Python file and no folder",)


def test_of_those_left_out_only_what_is_named_is_loaded(folder: Path, tmp_path: Path) -> None:
    (folder / "found.py").write_text("def extend(api): pass")
    (tmp_path / "listed.py").write_text("def extend(api): pass")
    (tmp_path / "named.py").write_text("def extend(api): pass")
    options = {
        "settings": Settings(extensions=(str(tmp_path / "listed.py"),)),
        "extensions": (str(tmp_path / "named.py"),),
    }
    assert [Path(each.path).name for each in _load(folder, **options).extensions] == [
        "found.py",
        "listed.py",
        "named.py",
    ]
    loaded = _load(folder, **options, without=frozenset({"extensions"}))
    assert [Path(each.path).name for each in loaded.extensions] == ["named.py"]


async def test_without_tools_those_of_extensions_are_not_offered(folder: Path) -> None:
    (folder / "one.py").write_text(
        "from pi_trio.tool import Tool\n"
        "async def run(call_id, args, on_update): ...\n"
        "def extend(api):\n"
        "    api.register_tool(Tool(name='mine', description='d', parameters={}, execute=run))\n"
    )
    for without, names in ((frozenset(), ["mine"]), (frozenset({"extension-tools"}), [])):
        async with session_of(
            folder, tools=("-read", "-bash", "-edit", "-write"), without=without
        ) as session:
            assert [tool.name for tool in session.harness.options.tools] == names


def test_installed_distributions_are_asked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def extend(api: object) -> None: ...

    def fail() -> None:
        raise ImportError("no such module")

    points = [
        SimpleNamespace(value="good:extend", load=lambda: extend),
        SimpleNamespace(value="bad:extend", load=fail),
        SimpleNamespace(value="odd:extend", load=lambda: 3),
    ]
    monkeypatch.setattr(
        loading, "entry_points", lambda group: points if group == "pi_trio.extensions" else []
    )
    loaded = _load(folder)
    assert [each.path for each in loaded.extensions] == [__file__]
    assert loaded.findings[0] == "the extension bad:extend failed: ImportError: no such module"
    assert loaded.findings[1].startswith("odd:extend is not an extension")


@pytest.mark.parametrize(
    ("code", "place"),
    [
        ("x = 1\nraise ValueError('no')", "bad.py:2 failed: ValueError: no"),
        ("def extend(api)\n    pass", "bad.py:1 failed: SyntaxError"),
        ("import sys\nsys.exit('bye')", "bad.py:2 failed: SystemExit: bye"),
        ("import json\njson.loads('{')", "bad.py:2 failed: JSONDecodeError"),
        ("x = 1", "bad.py is not an extension: it has no function extend(api)"),
    ],
)
def test_one_that_fails_is_told_with_its_line_and_stops_no_other(folder: Path, code: str, place: str) -> None:
    (folder / "bad.py").write_text(code)
    (folder / "good.py").write_text("def extend(api): pass")
    loaded = _load(folder)
    assert _paths(loaded) == ["extensions/good.py"]
    assert len(loaded.findings) == 1
    assert place in loaded.findings[0]


def test_a_change_counts_at_the_next_load(folder: Path) -> None:
    (folder / "a").mkdir()
    (folder / "a" / "__init__.py").write_text("from .inner import extend")
    for answer in (1, 2):
        (folder / "a" / "inner.py").write_text(f"def extend(api): return {answer}")
        (extension,) = _load(folder).extensions
        assert extension.extend(None) == answer  # type: ignore[arg-type, func-returns-value]


# ------------------------------------------------------------------ hooks


async def test_a_handler_may_block_a_call(folder: Path) -> None:
    (folder / "guard.py").write_text(
        "from pi_trio import BeforeToolCallResult\n"
        "def extend(api):\n"
        "    @api.on('tool_call')\n"
        "    async def guard(context):\n"
        "        if 'rm' in context.args['command']:\n"
        "            return BeforeToolCallResult(block=True, reason='not here')\n"
    )
    async with session_of(folder) as session:
        await session.say("run `rm x` and run `echo fine`")
        assert session.results() == ["not here", "fine\n"]


async def test_a_failing_tool_call_handler_blocks_the_call(folder: Path) -> None:
    (folder / "guard.py").write_text("def extend(api):\n    api.on('tool_call', lambda context: 1 / 0)\n")
    async with session_of(folder) as session:
        events = await session.say("run `echo no`")
        text = f"the extension {folder}/guard.py:2 failed: ZeroDivisionError: division by zero"
        assert session.results() == [text]
        assert ExtensionError(f"{folder}/guard.py", "tool_call", text) in events
        assert isinstance(events[-1], AgentSettled)


async def test_ending_the_program_is_a_failure_like_any_other(folder: Path) -> None:
    (folder / "exits.py").write_text(
        "import sys\n"
        "async def leave(arguments): sys.exit(arguments)\n"
        "def extend(api):\n"
        "    api.on('turn_end', lambda event: sys.exit(3))\n"
        "    api.register_command('leave', leave)\n"
    )
    async with session_of(folder) as session:
        events = await session.say("hello")
        assert isinstance(events[-1], AgentSettled)
        await session.runtime.run_command(session.id, "leave", "now")
        await wait_all_tasks_blocked()
        (failure,) = session.events()
        assert "exits.py:2 failed: SystemExit: now" in failure.error


async def test_any_other_failing_handler_changes_nothing(folder: Path) -> None:
    points = ("tool_result", "context", "input", "agent_start", "message_update", "turn_end")
    lines = [f"    api.on({point!r}, lambda *_: 1 / 0)" for point in points]
    (folder / "bad.py").write_text("\n".join(["def extend(api):", *lines]))
    async with session_of(folder) as session:
        events = await session.say("run `echo fine`")
        assert session.results() == ["fine\n"]
        failed = {event.event for event in events if isinstance(event, ExtensionError)}
        assert failed == set(points)


async def test_handlers_run_in_the_order_of_loading_and_see_what_was_changed(folder: Path) -> None:
    for name in ("a", "b"):
        (folder / f"{name}.py").write_text(
            "from pi_trio import AfterToolCallResult, ToolResult\n"
            "def extend(api):\n"
            "    @api.on('tool_result')\n"
            "    def add(context):\n"
            "        text = context.result.content[0].text\n"
            f"        content = ToolResult(text + '{name}').content\n"
            f"        return AfterToolCallResult(content=content, details='{name}')\n"
            f"    api.on('input', lambda text: text[:-1] + '{name}`')\n"
        )
    async with session_of(folder) as session:
        await session.say("run `echo 0`")
        assert session.results() == ["0ab\nab"]
        details = [
            entry["message"]["details"]
            for entry in session.entries("message")
            if entry["message"]["role"] == "toolResult"
        ]
        assert details == ["b"]


async def test_the_messages_of_a_request_may_be_changed(folder: Path) -> None:
    (folder / "rewrite.py").write_text(
        "from pi_trio import UserMessage\n"
        "def extend(api):\n"
        "    api.on('context', lambda messages: [*messages[:-1], UserMessage.of('run `echo changed`')]\n"
        "           if messages[-1].role == 'user' else None)\n"
    )
    async with session_of(folder) as session:
        await session.say("hello")
        assert session.results() == ["changed\n"]
        users = [each for each in session.entries("message") if each["message"]["role"] == "user"]
        assert users[0]["message"]["content"] != "run `echo changed`", "the transcript itself stays"


async def test_the_points_of_the_lifecycle_are_there_too(folder: Path) -> None:
    (folder / "sections.py").write_text(
        "def extend(api):\n"
        "    @api.on('system-prompt/assemble')\n"
        "    async def add(context, next):\n"
        "        return {**await next(context), 'mine': 'Be brief.'}\n"
    )
    async with session_of(folder) as session:
        await session.say("hello")
        system = next(each["message"] for each in session.entries("message"))
        assert "Be brief." in str(system)


@pytest.mark.parametrize("body", ["1 / 0", "await next(context)\n    1 / 0"])
async def test_a_failing_decision_leaves_what_the_others_decide(folder: Path, body: str) -> None:
    (folder / "bad.py").write_text(
        f"async def bad(context, next):\n    {body}\n"
        "def extend(api):\n"
        "    for point in ('system-prompt/assemble', 'agent/pre-step', 'agent/request', 'llm/stream'):\n"
        "        api.on(point, bad)\n"
        "    api.on('agent/turn-stopping', lambda context: 1 / 0)\n"
    )
    async with session_of(folder) as session:
        events = await session.say("run `echo fine`")
        assert session.results() == ["fine\n"]
        assert len({event.event for event in events if isinstance(event, ExtensionError)}) == 5


async def test_what_fails_below_an_extension_is_no_failure_of_it(folder: Path) -> None:
    (folder / "through.py").write_text(
        "async def through(context, next):\n    return await next(context)\n"
        "def extend(api):\n    api.on('agent/request', through)\n"
    )
    async with session_of(folder) as session:

        async def refuse(context: Any, following: Any) -> Any:
            raise ConfigError("no key")

        session.harness.handlers.add("agent/request", refuse)
        await session.runtime.prompt(session.id, "hello")
        with pytest.raises(ConfigError, match="no key"):
            await session.runtime.wait_for_idle(session.id)
        assert not [event for event in session.events() if isinstance(event, ExtensionError)]


async def test_a_point_that_there_is_not_is_a_mistake_of_the_extension(folder: Path) -> None:
    (folder / "bad.py").write_text("def extend(api):\n    api.on('tool_cal', print)\n")
    async with session_of(folder) as session:
        snapshot = await session.runtime.snapshot(session.id)
        assert "bad.py:2 failed: UsageError: there is no hook point 'tool_cal'" in snapshot.findings[0]


# ------------------------------------------------------------------ tools, commands, providers, actions


REGISTERS = """
from pi_trio import Tool, ToolResult

async def execute(call_id, args, on_update):
    return ToolResult("ran")

async def greet(arguments):
    return f"hello {arguments}"

def extend(api):
    api.on("tool_call", lambda context: None)
    api.on("tool_result", lambda context: None)
    api.on("context", lambda messages: None)
    api.on("input", lambda text: None)
    api.on("session_shutdown", lambda: None)
    api.on("turn_end", lambda event: None)
    api.on("agent/turn-stopping", lambda context: None)
    api.register_tool(Tool(name="mine", description="d", parameters={}, execute=execute))
    api.register_tool(Tool(name="bash", description="another", parameters={}, execute=execute))
    api.register_command("greet", greet, description="greets", argument_hint="NAME", choices=["you"])
    api.register_provider("mine", {"baseUrl": "http://127.0.0.1:1", "models": [{"id": "m"}]})
    api.register_renderer("count", "{n} times")
"""


def _registered(session: Session) -> dict[str, Any]:
    """Everything that an extension can have added."""
    harness = session.harness
    return {
        "tools": [(tool.name, tool.description) for tool in harness.options.tools],
        "hooks": harness.options.hooks,
        "listeners": list(harness.hub._listeners),
        "handlers": {name: list(each) for name, each in harness.handlers._by_point.items() if each},
        "commands": session.runtime._open(session.id).furnishing.commands,
        "renderers": dict(session.runtime._open(session.id).furnishing.renderers),
        "providers": [provider.id for provider in session.runtime.registry.providers],
    }


async def test_everything_that_was_registered_is_there_and_gone_after_unloading(folder: Path) -> None:
    async with session_of(folder) as session:
        before = _registered(session)
        (folder / "all.py").write_text(REGISTERS)
        assert await session.runtime.reload(session.id) == ()
        during = _registered(session)
        assert all(during[key] != before[key] for key in before), during
        assert ("mine", "d") in during["tools"]
        assert [each for each in during["tools"] if each[0] == "bash"] == [("bash", "another")]
        assert during["commands"] == [
            CommandInfo("greet", "greets", "extension", "NAME", f"{folder}/all.py", ("you",))
        ]
        (folder / "all.py").unlink()
        await session.runtime.reload(session.id)
        assert _registered(session) == before


async def test_the_last_tool_of_a_name_hides_the_others(folder: Path) -> None:
    """A provider refuses a request that offers two of one name."""
    for name in ("a", "b"):
        (folder / f"{name}.py").write_text(
            "from pi_trio import function_tool\n"
            "def extend(api):\n"
            f"    api.register_tool(function_tool(lambda: '', name='same', description='{name}'))\n"
        )
    async with session_of(folder) as session:
        offered = [(tool.name, tool.description) for tool in session.harness.active_tools]
        assert [each for each in offered if each[0] == "same"] == [("same", "b")]
        (folder / "b.py").unlink()
        await session.runtime.reload(session.id)
        assert ("same", "a") in [(tool.name, tool.description) for tool in session.harness.active_tools]


async def test_a_failing_extend_leaves_nothing_behind(folder: Path) -> None:
    async with session_of(folder) as session:
        before = _registered(session)
        (folder / "all.py").write_text(REGISTERS + "    raise ValueError('late')\n")
        findings = await session.runtime.reload(session.id)
        assert _registered(session) == before
        assert "failed: ValueError: late" in findings[0]


async def test_two_sessions_have_extensions_of_their_own(folder: Path) -> None:
    (folder / "all.py").write_text(REGISTERS)
    async with session_of(folder) as session:
        other = await session.runtime.new_session()
        await session.runtime.close_session(other.session.id)
        assert "mine" in [provider.id for provider in session.runtime.registry.providers]
        assert await session.runtime.run_command(session.id, "greet", "you") == "hello you"


async def test_a_command_that_fails_is_told(folder: Path) -> None:
    (folder / "bad.py").write_text(
        "async def bad(arguments):\n    return {}[arguments]\n"
        "def extend(api):\n    api.register_command('bad', bad)\n"
    )
    async with session_of(folder) as session:
        assert await session.runtime.run_command(session.id, "bad", "x") == "", "it is told once"
        await wait_all_tasks_blocked()
        assert [each.error for each in session.events()] == [
            f"the extension {folder}/bad.py:2 failed: KeyError: 'x'"
        ]
        with pytest.raises(UsageError, match="no extension has a command /none"):
            await session.runtime.run_command(session.id, "none", "")


async def test_a_command_may_be_a_plain_function(folder: Path) -> None:
    (folder / "plain.py").write_text(
        "def extend(api):\n"
        "    api.register_command('up', str.upper)\n"
        "    api.register_command('silent', lambda arguments: None)\n"
    )
    async with session_of(folder) as session:
        assert await session.runtime.run_command(session.id, "up", "hello") == "HELLO"
        assert await session.runtime.run_command(session.id, "silent", "") == ""
        assert session.events() == []


ACTS = """
def extend(api):
    async def act(arguments):
        entry = api.append_entry("count", {"n": 1})
        api.set_label(entry, "here")
        api.session_name = "named"
        api.send_message("note", "remember this", details={"a": 1}, deliver="next_turn")
        api.active_tools = [name for name in api.tools if name != "bash"]
        return f"{api.session_name}: {', '.join(api.active_tools)}"

    async def say(arguments):
        api.send_user_message(arguments)

    api.register_command("act", act)
    api.register_command("say", say)
"""


async def test_acting_writes_entries_and_messages(folder: Path) -> None:
    (folder / "acts.py").write_text(ACTS)
    async with session_of(folder) as session:
        assert (
            await session.runtime.run_command(session.id, "act", "")
            == "named: read, edit, write, grep, find, ls"
        )
        await session.runtime.run_command(session.id, "say", "hello")
        await session.runtime.wait_for_idle(session.id)
        assert not session.entries("custom_message"), "it waits for the next prompt"
        events = await session.say("hello")
        (count,) = [each for each in session.entries("custom") if each["customType"] == "count"]
        (label,) = session.entries("label")
        (note,) = session.entries("custom_message")
        assert count["data"] == {"n": 1}
        assert (label["targetId"], label["label"]) == (count["id"], "here")
        assert (note["customType"], note["details"], note["display"]) == ("note", {"a": 1}, True)
        assert "inboxId" in note, "so that it is not handed back when the session is opened again"
        assert any(isinstance(event, EntryAppended) for event in events)


async def test_naming_is_told(folder: Path) -> None:
    async with session_of(folder) as session:
        await session.runtime.set_session_name(session.id, "one\ntwo")
        assert SessionInfoChanged("one two") in session.events()
        await session.runtime.set_session_name(session.id, None)
        assert (await session.runtime.snapshot(session.id)).session.name is None


async def test_after_unloading_an_extension_can_do_nothing_more(folder: Path) -> None:
    (folder / "keeps.py").write_text("def extend(api):\n    extend.api = api\n")
    async with session_of(folder) as session:
        api = session.runtime._open(session.id).furnishing._extensions[0]
        await session.runtime.reload(session.id)
        with pytest.raises(UsageError, match="not loaded any more"):
            api.append_entry("x")
        with pytest.raises(UsageError, match="not loaded any more"):
            api.on("tool_call", print)


async def test_nothing_is_reloaded_in_a_run(folder: Path) -> None:
    async with session_of(folder) as session:
        await session.runtime.prompt(session.id, "run `sleep 60`")
        with pytest.raises(BusyError):
            await session.runtime.reload(session.id)
        await session.runtime.abort(session.id)


async def test_a_provider_that_models_json_could_not_have_is_refused(folder: Path) -> None:
    (folder / "bad.py").write_text("def extend(api):\n    api.register_provider('x', {'models': 3})\n")
    async with session_of(folder) as session:
        snapshot = await session.runtime.snapshot(session.id)
        assert "bad.py:2 failed: ConfigError: the models of x: providers.x.models must be a list" in str(
            snapshot.findings
        )
        with pytest.raises(ConfigError):
            session.runtime.registry.get_model("x/y")


async def test_a_session_begins_with_a_model_that_an_extension_brings(folder: Path) -> None:
    entry = {"baseUrl": "http://127.0.0.1:1", "apiKey": "k", "models": [{"id": "large", "reasoning": True}]}
    (folder / "lent.py").write_text(f"def extend(api):\n    api.register_provider('lent', {entry})\n")
    async with session_of(folder, demo=False, model="lent/large:high") as session:
        snapshot = await session.runtime.snapshot(session.id)
        assert (snapshot.model.reference, snapshot.thinking_level) == ("lent/large", "high")
        assert "key of lent from an extension" in snapshot.notice


async def test_a_session_whose_model_there_is_not_is_not_open(folder: Path) -> None:
    (folder / "none.py").write_text("def extend(api):\n    pass\n")
    root = folder.parents[1]
    async with open_runtime(
        RuntimeConfig(cwd=root / "project", agent_dir=root / "agent", model="nosuch")
    ) as runtime:
        with pytest.raises(ConfigError, match="There is no model 'nosuch'"):
            await runtime.new_session()
        assert runtime.open_sessions == []


async def test_without_extensions_nothing_listens(folder: Path) -> None:
    async with session_of(folder) as session:
        assert isinstance(session.harness.options.hooks.before_tool_call.__self__, Gate)
        assert not session.harness.hub._listeners
        assert not [
            name for name in sys.modules if name.startswith("pi_trio_extension_") and str(folder) in name
        ]


# ------------------------------------------------------------------ renderers


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{n} of {total.all}", "3 of 7"),
        ("{list} {flag}", '["ü"] true'),
        ("{none}{total.none}{n.x} {} {0} {{n}}", " {} {0} {3}"),
        ("{n.__class__}", ""),
    ],
)
def test_a_template_is_filled_with_data(template: str, text: str) -> None:
    data = {"n": 3, "total": {"all": 7}, "list": ["ü"], "flag": True}
    assert render(template, data) == text
    assert render(template, None) is not None
