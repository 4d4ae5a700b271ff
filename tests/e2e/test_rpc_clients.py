"""RPC mode as independent clients of pi's protocol use it. Each is skipped where it is not installed."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

SCRIPT = "while [ ! -e go ]; do sleep 0.01; done"
"""A command that a test ends by making a file."""

SUMMARY = "## Goal\nTo count.\n## Progress\nOne and two.\n## Next Steps\nThree."


@pytest.fixture
def executable(program, tmp_path: Path) -> Path:
    """The program under a name of its own, with its environment and a little room for summaries."""
    settings = json.loads((program.agent_dir / "settings.json").read_text())
    program.write("settings.json", {**settings, "compaction": {"keepRecentTokens": 50}})
    assignments = "\n".join(f"export {name}='{value}'" for name, value in program.environ.items())
    path = tmp_path / "pi"
    path.write_text(f'#!/bin/sh\n{assignments}\nexec "{Path(sys.executable).parent}/pi-trio" "$@"\n')
    path.chmod(0o700)
    return path


def _run(work: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(work(), 40))


# ------------------------------------------------------------------ pi-agent-python-sdk


@asynccontextmanager
async def _agent_client(executable: Path, program: Any) -> AsyncIterator[Any]:
    pi_agent = pytest.importorskip("pi_agent")
    async with pi_agent.AsyncPiClient(
        executable=str(executable),
        cwd=program.project,
        provider="stub",
        model="m",
        allow_unknown_version=True,  # the version that it knows is pi's
    ) as client:
        yield client


def test_pi_agent_runs_streams_and_reads(executable: Path, program, stub) -> None:
    async def work() -> None:
        async with _agent_client(executable, program) as client:
            stub.says("Hello", " there.")
            async with client.stream("hi") as run:
                kinds = [event.type async for event in run]
                result = await run.result()
            assert (result.text, result.stop_reason) == ("Hello there.", "stop")
            assert kinds[-1] == "agent_settled"
            state = await client.get_state()
            assert (state["isStreaming"], state["sessionId"]) == (False, client.session.session_id)
            assert await client.get_last_assistant_text() == "Hello there."
            assert [each["role"] for each in await client.get_messages()][1:] == ["user", "assistant"]
            assert (await client.get_session_stats())["userMessages"] == 1
            assert (await client.get_tree())["leafId"] == (await client.get_entries())["leafId"]
            assert (await client.get_available_models())[0]["provider"] == "stub"
            assert (await client.bash("echo printed"))["output"] == "printed\n"

    _run(work)


def test_pi_agent_steers_aborts_forks_and_compacts(executable: Path, program, stub) -> None:
    async def work() -> None:
        async with _agent_client(executable, program) as client:
            stub.calls(("bash", {"command": SCRIPT}))
            stub.says("word " * 200)
            async with client.stream("begin " + "and so on " * 100) as run:
                async for event in run:
                    if event.type == "tool_execution_start":
                        await client.steer("the other way")
                        (program.project / "go").touch()
            assert "the other way" in str(stub.requests[-1]["messages"][-1])
            stub.says("word " * 200)
            await client.run("again " + "and so on " * 100)
            stub.says(SUMMARY)
            assert "To count." in (await client.compact())["summary"]
            (program.project / "go").unlink()
            stub.calls(("bash", {"command": SCRIPT}))
            async with client.stream("wait") as run:
                async for event in run:
                    if event.type == "tool_execution_start":
                        await client.abort()
                assert (await run.result()).stop_reason in ("toolUse", "aborted")
            prompts = await client.get_fork_messages()
            assert (await client.fork(prompts[-1]["entryId"]))["text"] == "wait"
            stub.says("On the fork.")
            assert (await client.run("go on")).text == "On the fork."

    _run(work)


# ------------------------------------------------------------------ pi-py-sdk


@asynccontextmanager
async def _sdk_agent(executable: Path, program: Any) -> AsyncIterator[Any]:
    sdk = pytest.importorskip("pi_py_sdk")
    config = sdk.PiConfig(bin=str(executable), cwd=str(program.project), provider="stub", model="m")
    async with sdk.PiAgent(config=config) as agent:
        yield agent


def test_pi_py_sdk_runs_steers_forks_and_reads(executable: Path, program, stub) -> None:
    async def work() -> None:
        async with _sdk_agent(executable, program) as agent:
            stub.calls(("bash", {"command": SCRIPT}))
            stub.says("Turned.")
            kinds = []
            async for event in agent.prompt_stream("begin"):
                kinds.append(event.type)
                if event.type == "tool_execution_start":
                    await agent.steer("the other way")
                    (program.project / "go").touch()
            assert kinds[-1] == "agent_end"
            assert await agent.get_last_assistant_text() == "Turned."
            assert (await agent.get_state())["thinkingLevel"] == "off"
            assert [each.role for each in await agent.get_messages()][-1] == "assistant"
            prompts = await agent.get_fork_messages()
            assert (await agent.fork(prompts[0]["entryId"]))["text"] == "begin"
            assert (await agent.bash("echo printed"))["exitCode"] == 0

    _run(work)


def test_pi_py_sdk_aborts_and_compacts(executable: Path, program, stub) -> None:
    async def work() -> None:
        async with _sdk_agent(executable, program) as agent:
            for text in ("one", "two"):
                stub.says("word " * 200)
                await agent.prompt_and_wait(f"{text} " + "and so on " * 100)
            stub.says(SUMMARY)
            assert "To count." in (await agent.compact("numbers"))["summary"]
            stub.calls(("bash", {"command": SCRIPT}))
            async for event in agent.prompt_stream("wait"):
                if event.type == "tool_execution_start":
                    await agent.abort()
            assert not (await agent.get_state())["isStreaming"]

    _run(work)


# ------------------------------------------------------------------ pidriver


def test_pidriver_prompts_answers_and_cancels(executable: Path, program, stub) -> None:
    pidriver = pytest.importorskip("pidriver")
    settings = json.loads((program.agent_dir / "settings.json").read_text())
    program.write("settings.json", {**settings, "gate": {"mode": "ask"}})
    isolation = ("extensions", "skills", "context_files", "prompt_templates", "themes")
    config = pidriver.PiConfig(
        binary=str(executable),
        workspace=program.project,
        auto_install=False,
        provider="stub",
        model="m",
        **{f"no_{each}": False for each in isolation},
    )

    async def work() -> None:
        client = pidriver.PiClient(config)
        stub.calls(("bash", {"command": "touch made"}))
        stub.says("Made.")
        stub.calls(("bash", {"command": SCRIPT}))
        seen: list[str] = []
        async with await client.start("make it") as session:
            async for event in session:
                seen.append(type(event).__name__)
                match event:
                    case pidriver.InteractionRequest(request_id=request_id):
                        assert event.kind == pidriver.InteractionKind.PERMISSION
                        await session.respond(request_id, pidriver.Decision.ALLOW)
                    case pidriver.AgentEnd() if seen.count("AgentEnd") == 1:
                        await session.prompt("wait")
                    case pidriver.ToolStart() if "AgentEnd" in seen:
                        await session.cancel()
                    case pidriver.AgentEnd():
                        break
        assert {"MessageDelta", "ToolEnd", "Usage"} <= set(seen)
        assert (program.project / "made").exists()

    _run(work)
