"""What every kind of test shares."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from pi_trio.cli.main import main
from pi_trio.cli.status import MISTAKE
from pi_trio.llm import demo
from pi_trio.messages import AssistantMessage, TextContent, ToolCall, ToolResultMessage, Usage, UserMessage
from pi_trio.session.entries import MessageEntry
from pi_trio.session.session import Session

os.environ["PI_OFFLINE"] = "1"  # no test asks the model servers of the machine that it runs on
# Hundreds of tests start the programs: without compiled modules that takes more than twice as long.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

settings.load_profile("ci")  # the same examples on every machine, and none is too slow on a busy one

TRIO_FOLDERS = ("unit", "props", "faults", "wire", "e2e")
"""Coroutine tests of these folders run on trio; those of `tui` are marked for asyncio there."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    root = Path(__file__).parent
    for item in items:
        if item.path.relative_to(root).parts[0] in TRIO_FOLDERS and _is_coroutine(item):
            item.add_marker(pytest.mark.trio)


def _is_coroutine(item: pytest.Item) -> bool:
    function = getattr(item, "obj", None)
    hypothesis = getattr(function, "hypothesis", None)  # @given hides the test that it wraps
    return inspect.iscoroutinefunction(hypothesis.inner_test if hypothesis else function)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of recorded data beside the checkout; tests over it are skipped where it is missing."""
    folder = Path(os.environ.get("PI_SHARED", Path(__file__).parents[2] / "shared"))
    if not folder.is_dir():
        pytest.skip(f"no recorded data at {folder}")
    return folder


@pytest.fixture
def demo_in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo model does not wait between the pieces of its answers."""
    monkeypatch.setattr(demo, "DELTA_INTERVAL", 0.0)


@pytest.fixture
def mistake(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs `pi-trio` where something has to be mended first: the one line that says so."""

    def run(*arguments: str) -> str:
        assert main(arguments) == MISTAKE
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("pi-trio: ")
        return line

    return run


class Log:
    """A session in memory, written in few words. Each call gives the new entry's id."""

    def __init__(self) -> None:
        self.session = Session.in_memory("/p")

    def add(self, entry) -> str:
        return self.session.append(entry).id

    def message(self, message) -> str:
        return self.add(MessageEntry(message))

    def user(self, text="go on") -> str:
        return self.message(UserMessage.of(text))

    def answer(self, text="", *calls, told=0, stop="stop") -> str:
        """An answer with calls, each an id, or an id and a tool and a path. `told` is the size it tells."""
        named = (call if isinstance(call, tuple) else (call, "bash", None) for call in calls)
        made = (ToolCall(each, tool, {} if path is None else {"path": path}) for each, tool, path in named)
        content = (*([TextContent(text)] if text else []), *made)
        usage = Usage(input=told, total_tokens=told)
        return self.message(
            AssistantMessage(content, "scripted", "scripted", "scripted", usage=usage, stop_reason=stop)
        )

    def result(self, call_id, text="done", *, error=False) -> str:
        return self.message(ToolResultMessage(call_id, "bash", (TextContent(text),), is_error=error))

    def step(self, call_id, text="done", **answer) -> str:
        """An answer with one call, and its result. Gives the answer's id."""
        answer_id = self.answer("", call_id, **answer)
        self.result(call_id, text)
        return answer_id


@pytest.fixture(scope="session")
def new_log() -> type[Log]:
    """Makes sessions for tests of what a branch comes to."""
    return Log
