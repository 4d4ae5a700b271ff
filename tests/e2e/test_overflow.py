"""A conversation of 200,000 tokens that a model server refuses, over HTTP."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pi_trio.messages import AssistantMessage, TextContent, ToolCall, ToolResultMessage, Usage, UserMessage
from pi_trio.session.repository import SessionRepository

REFUSAL = (
    "This model's maximum context length is 128000 tokens. However, your messages came to 203117 tokens."
)
STEPS = 40
LONG = "word " * 4_000
"""A result of 5,000 tokens."""


@pytest.fixture
def conversation(program) -> None:
    """One turn of many steps, 200,000 tokens in all, most of them in results."""
    session = SessionRepository(program.agent_dir, program.project).create()
    session.append_message(UserMessage.of("Read all of it."))
    for number in range(STEPS):
        call = ToolCall(f"call_{number}", "bash", {"command": f"cat part{number}"})
        session.append_message(AssistantMessage((call,), "openai-completions", "stub", "m", usage=Usage()))
        session.append_message(ToolResultMessage(call.id, "bash", (TextContent(LONG),)))
    session.append_message(
        AssistantMessage((TextContent("Read."),), "openai-completions", "stub", "m", usage=Usage())
    )
    session.close()


def kinds(program: Any) -> list[str]:
    (entries,) = program.sessions()
    return [entry["type"] for entry in entries]


def size(request: dict[str, Any]) -> int:
    return len(json.dumps(request["messages"]))


@pytest.mark.usefixtures("conversation")
def test_an_overflow_is_pruned_and_summarised_once_and_then_answered(program, stub) -> None:
    """The answer to the question comes in the same step."""
    stub.refuses(400, REFUSAL)
    stub.says("## Goal\nRead all parts. They hold words.")
    stub.says("They hold words.")
    done = program.run("-c", "-p", "What do they hold?")
    assert (done.returncode, done.stdout) == (0, "They hold words.\n")
    first, summary, again = stub.requests
    assert size(first) > 800_000
    assert size(again) < size(first) / 4
    assert again["messages"][-1]["content"] == "What do they hold?"
    assert "tools" not in summary
    kept = kinds(program)
    assert kept.count("compaction") == 1
    assert kept.count("context_edit") == STEPS, "each long result is shortened, and once"
    assert kept.index("context_edit") < kept.index("compaction")


@pytest.mark.usefixtures("conversation")
def test_a_summary_that_is_no_smaller_is_not_tried_again(program, stub) -> None:
    """The refusal stands, with what was tried; nothing is summarised, and no request follows."""
    stub.refuses(400, REFUSAL)
    stub.says(LONG * (STEPS + 2))
    stub.refuses(400, REFUSAL)
    done = program.run("-c", "-p", "What do they hold?")
    assert (done.returncode, done.stdout) == (1, "")
    assert REFUSAL in done.stderr
    assert "shortening 40 tool results" in done.stderr
    assert "a summary, which failed" in done.stderr
    assert "compaction" not in kinds(program)
