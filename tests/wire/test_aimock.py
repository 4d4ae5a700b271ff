"""All dialects against an independent server, `aimock` of npm.

Runs where it is found, on the path or by the environment variable AIMOCK.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from pi_trio.llm.protocol import Context, Done, Failed, Model, StreamOptions
from pi_trio.llm.registry import Models
from pi_trio.messages import LlmMessage, ThinkingContent, ToolResultMessage, ToolSchema, UserMessage

READ = {"name": "read", "arguments": {"path": "a.txt"}}
FIXTURES = [
    {
        "match": {"userMessage": "greet"},
        "response": {"content": "Hello — 한😀é", "reasoning": "They greet."},
    },
    {
        "match": {"userMessage": "look", "hasToolResult": False},
        "response": {"content": "I look.", "toolCalls": [READ, READ]},
    },
    {"match": {"userMessage": "look", "hasToolResult": True}, "response": {"content": "Seen."}},
    {
        "match": {"userMessage": "limit"},
        "response": {"error": {"message": "Rate limited", "type": "rate_limit_error"}, "status": 429},
    },
    {
        "match": {"userMessage": "cut"},
        "response": {"content": "one two three four five"},
        "chunkSize": 4,
        "truncateAfterChunks": 4,
    },
]
TOOLS = (ToolSchema("read", "Reads a file", {"type": "object", "properties": {"path": {"type": "string"}}}),)
MODELS = {
    "openai-completions": Model("gpt-5", api="openai-completions", provider="openai", base_url="/v1"),
    "openai-responses": Model("gpt-5", api="openai-responses", provider="openai", base_url="/v1"),
    "anthropic-messages": Model("claude-opus-5", api="anthropic-messages", provider="anthropic", base_url=""),
    "google-generative-ai": Model(
        "gemini-4-argon", api="google-generative-ai", provider="google", base_url="/v1beta"
    ),
}


@pytest.fixture
async def aimock(nursery: trio.Nursery, tmp_path: Path) -> AsyncIterator[str]:
    """The address of a running server."""
    program = os.environ.get("AIMOCK") or shutil.which("aimock")
    if program is None:
        pytest.skip("aimock is not installed (npm install @copilotkit/aimock)")
    fixtures = tmp_path / "fixtures.json"
    fixtures.write_text(json.dumps({"fixtures": FIXTURES}))
    llmock = str(Path(program).with_name("llmock"))
    process: trio.Process = await nursery.start(
        partial(
            trio.run_process,
            [llmock, "--port", "0", "--fixtures", str(fixtures), "--strict"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
    )
    assert process.stdout is not None
    said = ""
    while not (found := re.search(r"http://127\.0\.0\.1:\d+", said)):
        said += (await process.stdout.receive_some()).decode()
    yield found[0]
    process.terminate()


async def ask(aimock: str, api: str, tmp_path: Path, *messages: LlmMessage) -> Done | Failed:
    model = MODELS[api]
    model = Model(
        model.id, api=api, provider=model.provider, base_url=aimock + model.base_url, reasoning=True
    )
    stream = Models(tmp_path, {}).stream_function(model)
    options = StreamOptions(api_key="key", thinking_level="high", idle_timeout=10)
    async with stream(model, Context("Be brief.", messages, TOOLS), options) as events:
        last: Any = [event async for event in events][-1]
    return last


@pytest.mark.parametrize("api", MODELS)
async def test_words_and_thinking(aimock: str, api: str, tmp_path: Path) -> None:
    done = await ask(aimock, api, tmp_path, UserMessage("greet"))
    assert isinstance(done, Done)
    assert (done.message.text, done.message.stop_reason) == ("Hello — 한😀é", "stop")
    thoughts = [block for block in done.message.content if isinstance(block, ThinkingContent)]
    assert "".join(block.thinking for block in thoughts) == "They greet."


@pytest.mark.parametrize("api", MODELS)
async def test_calls_and_their_results(aimock: str, api: str, tmp_path: Path) -> None:
    asked = UserMessage("look")
    done = await ask(aimock, api, tmp_path, asked)
    assert isinstance(done, Done)
    assert (done.message.text, done.message.stop_reason) == ("I look.", "toolUse")
    calls = done.message.tool_calls
    assert [(call.name, call.arguments) for call in calls] == [("read", {"path": "a.txt"})] * 2
    results = [ToolResultMessage(call.id, call.name, "1") for call in calls]
    last = await ask(aimock, api, tmp_path, asked, done.message, *results)
    assert isinstance(last, Done), last.failure
    assert last.message.text == "Seen."


@pytest.mark.parametrize("api", MODELS)
async def test_refusals_and_broken_connections(aimock: str, api: str, tmp_path: Path) -> None:
    limited = await ask(aimock, api, tmp_path, UserMessage("limit"))
    assert isinstance(limited, Failed)
    assert (limited.failure.code, limited.failure.status) == ("rate_limit", 429)
    broken = await ask(aimock, api, tmp_path, UserMessage("cut"))
    assert isinstance(broken, Failed)
    assert broken.failure.code == "transport"
