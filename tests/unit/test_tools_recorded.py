"""The calls of recorded sessions of pi, made again: the same facts in the same form."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from pi_trio import codec
from pi_trio.harness.runtime import open_runtime
from pi_trio.resources.config import RuntimeConfig
from pi_trio.tool import ToolResult
from pi_trio.tools import LocalEnvironment, ToolError, coding_tools

OTHERWISE = {
    "ENOENT: no such file or directory, access '{project}/missing.txt'": (
        "{project}/missing.txt: there is no such file or folder."
    ),
    "Could not find the exact text in src/hello.py. "
    "The old text must match exactly including all whitespace and newlines.": (
        "edits[0].oldText was not found in src/hello.py. "
        "It must be what the file has, blanks and line ends included. Read the file again."
    ),
    # pi takes what follows the last line end for a line
    'def hello(name):\n    return "Hello, " + name\n\n[4 more lines in file. Use offset=3 to continue.]': (
        'def hello(name):\n    return "Hello, " + name\n\n[3 more lines in file. Use offset=3 to continue.]'
    ),
}
"""Where our words differ on purpose. Errors are sentences for the model, not the system's codes."""


@attrs.frozen
class Recorded:
    """A call and the result that pi gave."""

    name: str
    args: dict[str, Any]
    result: dict[str, Any]

    @property
    def text(self) -> str:
        return str(self.result["content"][0]["text"])


def recorded_calls(path: Path) -> Iterator[Recorded]:
    calls: dict[str, dict[str, Any]] = {}
    for message in messages_of(path):
        if message["role"] == "assistant":
            calls |= {block["id"]: block for block in message["content"] if block["type"] == "toolCall"}
        elif message["role"] == "toolResult":
            call = calls[message["toolCallId"]]
            yield Recorded(call["name"], call["arguments"], message)


def messages_of(path: Path) -> Iterator[dict[str, Any]]:
    entries = map(json.loads, path.read_bytes().splitlines())
    return (entry["message"] for entry in entries if entry["type"] == "message")


@pytest.fixture
def project(tmp_path: Path, shared: Path) -> Path:
    """The project that the calls were made in, put together from what they show."""
    recordings = shared / "sessions" / "real-pi"
    shown = {(call.name, call.args.get("path")): call for call in recorded_calls(recordings / "tools.jsonl")}
    image = next(call for call in recorded_calls(recordings / "image.jsonl") if call.name == "read")
    edited = next(
        call
        for call in recorded_calls(recordings / "tools.jsonl")
        if (call.result.get("details") or {}).get("patch")
    )
    before = re.findall(r"^[ -](?!-- )(.*\n)", edited.result["details"]["patch"], re.MULTILINE)
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    (folder / "README.md").write_text(shown["read", "README.md"].text)
    (folder / "src" / "hello.py").write_text("".join(before))
    (folder / "picture.png").write_bytes(base64.b64decode(image.result["content"][1]["data"]))
    return folder


def compared(value: Any, project: Path) -> str:
    """Without what is another one each time: the project and the file of the full output."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True).replace(str(project), "{project}")
    return re.sub(
        r"/[^\s\"\]]*/(pi-)?bash-[0-9a-f]{16}\.log", "{log}", text.replace("/tmp/demo-project", "{project}")
    )


def details_of(call: Recorded) -> dict[str, Any]:
    """Without the copy of the text that pi keeps in `truncation`."""
    details: dict[str, Any] = call.result.get("details") or {}
    details.get("truncation", {}).pop("content", None)
    return details


async def made(project: Path, call: Recorded) -> ToolResult:
    environment = LocalEnvironment(project)
    (tool,) = coding_tools(environment, [call.name])
    try:
        return await tool.execute("c1", call.args, _ignore)
    except ToolError as error:
        return ToolResult(str(error), is_error=True)


async def _ignore(partial: ToolResult) -> None:
    pass


@pytest.mark.parametrize("session", ["tools", "parallel", "truncated", "image"])
async def test_results_have_the_same_facts_in_the_same_form(
    shared: Path, project: Path, session: str
) -> None:
    for call in recorded_calls(shared / "sessions" / "real-pi" / f"{session}.jsonl"):
        if call.name == "teleport" or "cmd" in call.args:
            continue  # these never reach a tool
        result = await made(project, call)
        assert result.is_error == call.result["isError"]
        wanted = json.loads(compared(call.result["content"], project))
        wanted[0]["text"] = OTHERWISE.get(wanted[0]["text"], wanted[0]["text"])
        assert json.loads(compared(codec.to_json(result.content), project)) == wanted
        details = {key: value for key, value in (result.details or {}).items() if key != "files"}
        assert compared(details, project) == compared(details_of(call), project)


@pytest.mark.parametrize("session", ["shell", "tui-shell"])
async def test_commands_of_the_user_are_kept_in_the_same_form(
    shared: Path, project: Path, session: str
) -> None:
    recorded = [
        message
        for message in messages_of(shared / "sessions" / "real-pi" / f"{session}.jsonl")
        if message["role"] == "bashExecution"
    ]
    assert recorded
    config = RuntimeConfig(cwd=project, agent_dir=project.parent / "agent", demo=True)
    async with open_runtime(config) as runtime:
        session_id = (await runtime.new_session()).session.id
        for wanted in recorded:
            excluded = wanted.get("excludeFromContext", False)
            message = codec.to_json(await runtime.run_shell(session_id, wanted["command"], excluded))
            for each in (message, wanted):
                del each["timestamp"]
                each.setdefault("excludeFromContext", False)  # pi's screen writes it out
            assert message == wanted
