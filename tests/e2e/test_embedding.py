"""The samples of docs/embedding.md run, each as the body of a coroutine."""

from __future__ import annotations

import asyncio
import re
import textwrap
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import trio.testing

import pi_trio
from pi_trio import (
    Agent,
    AgentHarness,
    HarnessOptions,
    Hooks,
    Session,
    UsageError,
    function_tool,
    open_harness,
)
from pi_trio.llm.demo import MODEL as DEMO
from pi_trio.llm.demo import stream

PAGE = (Path(__file__).parents[2] / "docs" / "embedding.md").read_text("utf-8")
SECTIONS = [part.partition("\n") for part in PAGE.split("\n## ")]
SAMPLES = {
    title: blocks
    for title, _, text in SECTIONS
    if (blocks := re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
}
ASYNCIO = "In an asyncio service"


def body(title: str) -> Callable[[], Awaitable[None]]:
    """The samples of a section, one after another, as a coroutine function."""
    names: dict[str, Any] = {}
    source = f"async def main():\n{textwrap.indent(''.join(SAMPLES[title]), '    ')}"
    exec(compile(source, title, "exec", dont_inherit=True), names)
    return names["main"]


@pytest.mark.parametrize("title", [title for title in SAMPLES if title != ASYNCIO])
async def test_sample(title: str, autojump_clock: trio.testing.MockClock) -> None:
    await body(title)()


def test_every_sample_is_run() -> None:
    assert sum(map(len, SAMPLES.values())) == PAGE.count("```python")


def test_every_public_name_is_in_the_table() -> None:
    table = PAGE.partition("## All names\n")[2].partition("| --- |")[2]
    assert set(re.findall(r"`([A-Za-z_]+)`", table)) == set(pi_trio.__all__)


def test_every_option_of_a_harness_is_in_the_table() -> None:
    rows = PAGE.partition("## A session\n")[2].partition("| option |")[2].partition("| of a harness |")
    assert set(re.findall(r"`([a-z_]+)`", re.sub(r"(?m)^(\| [^|]+\|).*", r"\1", rows[0]))) == {
        each.name for each in attrs.fields(HarnessOptions)
    }
    named = re.sub(r"(?m)^(\| [^|]+\|).*", r"\1", rows[2].partition("\n\n")[0])
    made = {*dir(AgentHarness), "session", "hub", "model", "thinking_level"}  # what it is made with, too
    assert [name for name in re.findall(r"`(?:await )?([a-z_]+)", named) if name not in made] == []


def test_tools_are_tools_with_names_of_their_own() -> None:
    def look() -> str:
        """Looks."""
        return ""

    made = [
        lambda tools: Agent(model=DEMO, stream_fn=stream, tools=tools),
        lambda tools: HarnessOptions(stream_function=lambda model: stream, tools=tools),
    ]
    for make in made:
        assert len(make([function_tool(look)]).tools) == 1
        with pytest.raises(UsageError, match=r"look.* is no Tool: function_tool makes one"):
            make([look])
        with pytest.raises(UsageError, match="two tools have the name 'look'"):
            make([function_tool(look), function_tool(look)])


def test_what_is_offered_is_one_of_the_tools() -> None:
    def look() -> str:
        """Looks."""
        return ""

    tools = [function_tool(look)]
    agent = Agent(model=DEMO, stream_fn=stream, tools=tools, active_tool_names=("look", "look"))
    assert agent.active_tool_names == ("look",)
    with pytest.raises(UsageError, match="there is no tool 'nosuch'; there are: look"):
        Agent(model=DEMO, stream_fn=stream, tools=tools, active_tool_names=["look", "nosuch"])


async def test_a_model_is_more_than_its_name() -> None:
    told = r"'gpt-5' is no Model: Models\(…\).get_model finds one by its name"
    with pytest.raises(UsageError, match=told):
        Agent(model="gpt-5", stream_fn=stream)  # type: ignore[arg-type]
    options = HarnessOptions(stream_function=lambda model: stream)
    with pytest.raises(UsageError, match=told):
        async with open_harness(Session.in_memory("/"), options, model="gpt-5"):  # type: ignore[arg-type]
            pass


def test_a_session_has_no_hook_for_input() -> None:
    async def poll() -> list[Any]:
        return []

    for name in ("get_steering_messages", "get_follow_up_messages"):
        with pytest.raises(UsageError, match=f"does not ask the hook {name}"):
            HarnessOptions(stream_function=lambda model: None, hooks=Hooks(**{name: poll}))


# ------------------------------------------------------------------ in an asyncio service


def trio_thread() -> Any:
    names: dict[str, Any] = {}
    exec(SAMPLES[ASYNCIO][0], names)
    return names["TrioThread"]()


def test_the_sample_in_an_asyncio_service() -> None:
    asyncio.run(body(ASYNCIO)())


def test_cancelling_on_the_asyncio_side_cancels_and_waits_on_the_trio_side() -> None:
    steps: list[str] = []

    async def main() -> None:
        started = asyncio.Event()

        async def work() -> None:
            try:
                thread.tell(started.set)
                await trio.sleep_forever()
            finally:
                with trio.CancelScope(shield=True):
                    await trio.lowlevel.checkpoint()
                    steps.append("trio is done")

        async with trio_thread() as thread:
            task = asyncio.create_task(thread.run(work))
            await started.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            steps.append("asyncio is done")

    asyncio.run(main())
    assert steps == ["trio is done", "asyncio is done"]


def test_an_exception_comes_over_and_others_go_on() -> None:
    async def main() -> None:
        async def fail() -> None:
            raise LookupError("no such thing")

        async def wait(event: trio.Event) -> str:
            await event.wait()
            return "waited"

        async with trio_thread() as thread:
            event = trio.Event()
            waiting = asyncio.create_task(thread.run(wait, event))
            with pytest.raises(LookupError, match="no such thing"):
                await thread.run(fail)

            async def release() -> None:
                event.set()

            await thread.run(release)
            assert await waiting == "waited"

    asyncio.run(main())


def test_leaving_the_block_ends_what_runs_and_the_thread() -> None:
    threads = threading.active_count()

    async def main() -> None:
        async with trio_thread() as thread:
            task = asyncio.create_task(thread.run(trio.sleep_forever))
            await thread.run(trio.lowlevel.checkpoint)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not thread._thread.is_alive()

    asyncio.run(main())
    assert threading.active_count() == threads
