"""The demo model."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing
from markdown_it import MarkdownIt

from pi_trio.llm import demo
from pi_trio.llm.protocol import Context, StreamOptions, TextDelta, ThinkingDelta
from pi_trio.messages import (
    AssistantMessage,
    ImageContent,
    TextContent,
    ToolResultMessage,
    ToolSchema,
    UserMessage,
)

pytestmark = pytest.mark.usefixtures("demo_in_a_hurry")

BASIC = ("read", "bash", "edit", "write")

PACE = demo.DELTA_INTERVAL


async def ask(*messages: Any, tools: tuple[str, ...] = BASIC, **options: Any) -> list[Any]:
    context = Context("Be brief.", messages, tuple(ToolSchema(name, "", {}) for name in tools))
    async with demo.stream(demo.MODEL, context, StreamOptions(**options)) as events:
        return [event async for event in events]


async def answer_to(text: str, tools: tuple[str, ...] = BASIC) -> AssistantMessage:
    return (await ask(UserMessage.of(text), tools=tools))[-1].message


async def calls_for(text: str, tools: tuple[str, ...] = BASIC) -> list[tuple[str, dict[str, Any]]]:
    return [(call.name, dict(call.arguments)) for call in (await answer_to(text, tools)).tool_calls]


@pytest.mark.parametrize(
    ("order", "call"),
    [
        ("read README.md", ("read", {"path": "README.md"})),
        ("Please read the file `a b`", None),
        ("Read `src/main.py`.", ("read", {"path": "src/main.py"})),
        ("list src", ("bash", {"command": "ls -la src"})),
        ("list", ("bash", {"command": "ls -la ."})),
        ("list the files in it's", ("bash", {"command": "ls -la 'it'\"'\"'s'"})),
        ("run `ls -la`", ("bash", {"command": "ls -la"})),
        ("run ls -la", ("bash", {"command": "ls -la"})),
        ("search TODO in src", ("bash", {"command": "grep -rn -e TODO src"})),
        ('search "a b"', ("bash", {"command": "grep -rn -e 'a b' ."})),
        ("write hello to notes.txt", ("write", {"path": "notes.txt", "content": "hello\n"})),
        (
            "in notes.txt replace hello by bye",
            ("edit", {"path": "notes.txt", "edits": [{"oldText": "hello", "newText": "bye"}]}),
        ),
        ("what is the weather?", None),
    ],
)
async def test_orders(order: str, call: tuple[str, dict[str, Any]] | None) -> None:
    assert await calls_for(order) == ([call] if call else [])


async def test_search_and_list_use_their_own_tools_where_there_are_any() -> None:
    tools = (*BASIC, "grep", "ls")
    assert await calls_for("search TODO in src and list src", tools) == [
        ("grep", {"pattern": "TODO", "path": "src"}),
        ("ls", {"path": "src"}),
    ]


@pytest.mark.parametrize(
    "text", ["read a and run `x and y`", "read a, run `x and y`", "read a\nrun `x and y`"]
)
async def test_several_orders_are_parallel_calls_of_one_answer(text: str) -> None:
    assert await calls_for(text) == [("read", {"path": "a"}), ("bash", {"command": "x and y"})]


async def test_ids_differ_between_answers() -> None:
    first = (await answer_to("read a and read b")).tool_calls
    second = (await ask(UserMessage.of("read a"), UserMessage.of("read b")))[-1].message.tool_calls
    assert len({call.id for call in (*first, *second)}) == 3


async def test_tool_that_is_missing_is_named_and_not_called() -> None:
    message = await answer_to("run date", tools=("read",))
    assert message.tool_calls == ()
    assert "`bash`" in message.text


async def test_results_are_summed_up_honestly() -> None:
    lines = "\n".join(f"line {number}" for number in range(20))
    results = (
        ToolResultMessage("1", "read", (TextContent(lines),)),
        ToolResultMessage("2", "bash", (TextContent("```\nno such file"),), is_error=True),
        ToolResultMessage("3", "view", (ImageContent("AAAA", "image/png"),)),
    )
    message = (await ask(UserMessage.of("read a"), *results))[-1].message
    assert message.stop_reason == "stop"
    assert "3 tools have answered, 1 of them failed." in message.text
    assert "**read** answered:\n\n```\nline 0\n" in message.text
    assert "… and 12 more lines." in message.text
    assert "**bash** failed:\n\n````\n```\nno such file\n````" in message.text
    assert "**view** answered without any text." in message.text


@pytest.mark.parametrize("prompt", ["<conversation>\n{}\n</conversation>", "# Conversation\n{}"])
async def test_summary_has_the_sections_that_compaction_wants(prompt: str) -> None:
    talk = '[User]: fix {the} bug\n\n[Assistant tool calls]: read(path="a")'
    text = (await answer_to(prompt.replace("{}", talk))).text
    headings = [line for line in text.splitlines() if line.startswith("#")]
    assert headings == [
        "## Goal",
        "## Constraints & Preferences",
        "## Progress",
        "### Done",
        "### In Progress",
        "### Blocked",
        "## Key Decisions",
        "## Next Steps",
        "## Critical Context",
    ]
    assert "fix {the} bug" in text
    assert '- [x] read(path="a")' in text


async def test_streams_at_the_pace_of_a_fast_model(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "DELTA_INTERVAL", PACE)
    began = trio.current_time()
    events = await ask(UserMessage.of("help"))
    deltas = sum(isinstance(event, TextDelta) for event in events)
    assert deltas > 50
    assert 150 <= deltas / (trio.current_time() - began) <= 250
    joined = "".join(event.delta for event in events if isinstance(event, TextDelta))
    assert joined == events[-1].message.text


async def test_thinks_unless_it_is_off() -> None:
    async def thoughts(level: str) -> int:
        events = await ask(UserMessage.of("help"), thinking_level=level)
        return sum(isinstance(event, ThinkingDelta) for event in events)

    assert await thoughts("off") == 0
    assert await thoughts("low") > 0


async def test_usage_is_estimated_and_free() -> None:
    usage = (await answer_to("x" * 391)).usage
    assert usage.input == 100
    assert usage.output > 50
    assert usage.total_tokens == usage.input + usage.output
    assert usage.cost.total == 0


async def test_same_conversation_same_answer() -> None:
    assert (await answer_to("read a")).content == (await answer_to("read a")).content


def test_a_pasted_book_is_no_list_of_orders() -> None:
    """PF-02: nor does it take time to see that, however many lines it has."""
    assert list(demo._orders("read README.md\n" * 300_000, {"read"})) == []
    assert len(list(demo._orders("read README.md\n" * 3, {"read"}))) == 3


async def test_the_orders_that_it_names_are_shown_as_they_are_typed() -> None:
    """A span of code loses a space at its ends only if there is one at both."""
    paragraphs = MarkdownIt().parse((await answer_to("hello")).text)
    spans = [
        each.content for part in paragraphs for each in part.children or () if each.type == "code_inline"
    ]
    assert {"run `ls -la`", "read README.md and run `date`"} <= set(spans)
    assert [each for each in spans if each != each.strip()] == []
