"""Asking for summaries, and what is done with them."""

from __future__ import annotations

from functools import partial

import attrs
import pytest
import trio

from pi_trio.compaction import prompts
from pi_trio.compaction.cut import find_cut
from pi_trio.compaction.estimate import measure
from pi_trio.compaction.files import Files, files_of, without_lists
from pi_trio.compaction.plan import Plan, make_plan
from pi_trio.compaction.prune import prune
from pi_trio.compaction.serialise import chunks, serialise
from pi_trio.compaction.summary import Summary, add_usage, summarise
from pi_trio.compaction.surface import surface_of
from pi_trio.errors import SummaryError
from pi_trio.llm import demo
from pi_trio.llm.protocol import Context, Done, Failed, Failure, Model, StreamOptions
from pi_trio.loop.convert import convert_messages
from pi_trio.messages import (
    AssistantMessage,
    BashExecutionMessage,
    Cost,
    ImageContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    ToolSchema,
    Usage,
    UserMessage,
    text_of,
)
from pi_trio.session.entries import CompactionEntry
from pi_trio.testing import Call, Hang, ScriptedModel, Stop

TEXT = "word " * 200
SIZE = 258
SECTIONS = (
    "## Goal",
    "## Constraints & Preferences",
    "## Progress",
    "### Done",
    "### In Progress",
    "### Blocked",
    "## Key Decisions",
    "## Next Steps",
    "## Critical Context",
)


async def ask(model: ScriptedModel, context: Context, stream=None, described=None) -> AssistantMessage:
    async with (stream or model)(described or model.model, context, StreamOptions()) as events:
        *_, last = [event async for event in events]
    assert isinstance(last, (Done, Failed))
    return last.message


def plan_of(log, keep: int = SIZE, **changes) -> Plan:
    plan = make_plan(log.session, keep=keep, size=measure(log.session).size)
    assert isinstance(plan, Plan)
    return attrs.evolve(plan, **changes)


def next_request(log) -> Context:
    """The context of the next request, as a driver would have it."""
    tools = (ToolSchema("bash", "Runs.", {"type": "object"}),)
    return Context("Be brief.", convert_messages(log.session.build_context().messages), tools)


def prompt_of(model: ScriptedModel, number: int = -1) -> str:
    return text_of(model.requests[number].context.messages[-1].content)


@pytest.fixture
def log(new_log):
    log = new_log()
    log.user(f"Find it. {TEXT}")
    log.answer(f"Found it. {TEXT}", told=600)
    log.user(f"Mend it. {TEXT}")
    log.answer(f"Mended it. {TEXT}", told=1200)
    log.user(f"Test it. {TEXT}")
    return log


# ------------------------------------------------------------------ a request of its own


async def test_a_first_summary(log) -> None:
    model = ScriptedModel(["## Goal\nMend it.\n"])
    summary = await summarise(plan_of(log), partial(ask, model), model.model)
    assert summary.text == "## Goal\nMend it."
    context = model.requests[0].context
    assert (context.tools, context.system_prompt) == ((), prompts.SYSTEM)
    assert len(context.messages) == 1
    prompt = prompt_of(model)
    assert prompt.startswith("<conversation>\n[User]: Find it.")
    assert "[Assistant]: Mended it." in prompt
    assert "Test it." not in prompt
    assert "<previous-summary>" not in prompt
    assert all(f"\n{section}\n" in prompt for section in SECTIONS)


async def test_a_second_summary_updates_the_first(log) -> None:
    """E57: the previous summary and what is new; nothing that the previous one stands for."""
    kept = log.session.get_leaf_id()
    log.add(CompactionEntry("The first.\n\n<read-files>\na.py\n</read-files>", kept))
    log.answer(f"Tested it. {TEXT}")
    log.user(f"And now? {TEXT}")
    model = ScriptedModel(["The second."])
    await summarise(plan_of(log), partial(ask, model), model.model)
    prompt = prompt_of(model)
    assert "<previous-summary>\nThe first.\n</previous-summary>" in prompt
    assert "[User]: Test it." in prompt
    assert "[Assistant]: Tested it." in prompt
    assert "Find it." not in prompt
    assert 'from "In Progress" to "Done"' in prompt


async def test_a_parted_turn_has_its_own_part(log) -> None:
    """The history and the turn's first part are asked for one after the other, and usage is summed."""
    log.step("1", TEXT)
    log.step("2", TEXT)
    used = Usage(100, 10, total_tokens=110, cost=Cost(total=0.5))
    model = ScriptedModel([["The history.", used], ["The turn.", used]])
    summary = await summarise(plan_of(log), partial(ask, model), model.model)
    assert summary.text == "The history.\n\n---\n\n**Turn Context (split turn):**\n\nThe turn."
    assert summary.usage == Usage(200, 20, total_tokens=220, cost=Cost(total=1.0))
    prompt = prompt_of(model)
    assert prompt.startswith("# Conversation\n\n[User]: Test it.")
    assert "[Assistant tool calls]: bash()" in prompt
    assert "Find it." not in prompt
    for heading in (
        "# Instructions",
        "## Original Request",
        "## Progress So Far",
        "## Context Needed to Continue",
    ):
        assert f"\n{heading}\n" in prompt


@pytest.mark.parametrize("previous", [None, "What was before."])
async def test_a_turn_without_history(new_log, previous: str | None) -> None:
    log = new_log()
    begin = log.user(TEXT)
    if previous is not None:
        log.add(CompactionEntry(previous, begin))
    log.step("1", TEXT)
    log.step("2", TEXT)
    model = ScriptedModel(["The turn."])
    summary = await summarise(plan_of(log), partial(ask, model), model.model)
    assert summary.text.startswith(f"{previous or 'No prior history.'}\n\n---\n\n**Turn Context")
    assert len(model.requests) == 1


async def test_the_focus_is_told(log) -> None:
    model = ScriptedModel(["Short.", "Short.", "Short."])
    await summarise(plan_of(log), partial(ask, model), model.model, focus="the names of tests ")
    assert prompt_of(model).endswith("\n\nAdditional focus: the names of tests")
    await summarise(plan_of(log), partial(ask, model), model.model, last=next_request(log), focus="names")
    assert prompt_of(model).endswith("\n\nAdditional focus: names")
    await summarise(plan_of(log), partial(ask, model), model.model, focus=" ")
    assert "Additional focus" not in prompt_of(model)


async def test_a_conversation_larger_than_the_window_is_shown_in_pieces(new_log) -> None:
    """After a change to a model with a small window; the summary grows from piece to piece."""
    log = new_log()
    for number in range(60):
        log.user(f"Question {number}. {TEXT}")
    small = Model("small", provider="scripted", context_window=8_000, max_tokens=1_000)
    model = ScriptedModel(["One.", "Two.", "Three.", "Four.", "Five."], small)
    summary = await summarise(plan_of(log), partial(ask, model), small)
    count = len(model.requests)
    assert 3 <= count <= 5
    assert summary.text == ["One.", "Two.", "Three.", "Four.", "Five."][count - 1]
    shown = "".join(prompt_of(model, number) for number in range(count))
    assert all(shown.count(f"[User]: Question {number}. ") == 1 for number in range(59))
    assert "<previous-summary>\nOne.\n</previous-summary>" in prompt_of(model, 1)
    assert all(len(prompt_of(model, number)) < 8_000 * 3 for number in range(count))


async def test_after_an_overflow_the_request_is_smaller_than_what_overflowed(new_log) -> None:
    """The window may be smaller than we were told."""
    log = new_log()
    for _ in range(40):
        log.user(TEXT)
    model = ScriptedModel(["One."] * 9)
    plan = plan_of(log, keep=2_000)
    await summarise(plan, partial(ask, model), model.model, too_large=plan.tokens_before)
    assert len(model.requests) == 2
    assert all(len(prompt_of(model, number)) < plan.tokens_before * 3 for number in range(2))


# ------------------------------------------------------------------ as the end of the last request


async def test_the_request_is_a_prefix_of_the_last_one_and_one_message(log) -> None:
    """L60, L53: the last request up to the cut, and one user message; nothing of the new prompt."""
    last = next_request(log)
    model = ScriptedModel(["## Goal\nMend it."])
    plan = plan_of(log)
    summary = await summarise(plan, partial(ask, model), model.model, last=last)
    assert summary.text == "## Goal\nMend it."
    sent = model.requests[0].context
    assert (sent.system_prompt, sent.tools) == (last.system_prompt, last.tools)
    assert sent.messages[:-1] == last.messages[:4]
    assert isinstance(sent.messages[-1], UserMessage)
    assert all(f"\n{section}\n" in prompt_of(model) for section in SECTIONS)
    assert "split turn" not in prompt_of(model)


async def test_a_parted_turn_is_one_request_there(log) -> None:
    log.answer(f"Tested it. {TEXT}", "1", told=2_000)
    log.result("1")
    log.answer(f"Really. {TEXT}", told=2_500)
    model = ScriptedModel(["All of it."])
    plan = plan_of(log)
    assert plan.turn
    await summarise(plan, partial(ask, model), model.model, last=next_request(log))
    assert len(model.requests) == 1
    assert "**Turn Context (split turn):**" in prompt_of(model)


async def test_an_earlier_summary_is_the_beginning_of_the_prefix(log) -> None:
    """F10: summaries reach the model."""
    log.add(CompactionEntry("The first. " * 20, log.session.get_leaf_id()))
    log.answer(f"Tested it. {TEXT}")
    log.user(f"And now? {TEXT}")
    last = next_request(log)
    model = ScriptedModel(["The second."])
    await summarise(plan_of(log), partial(ask, model), model.model, last=last)
    sent = model.requests[0].context.messages
    assert "The first." in text_of(sent[0].content)
    assert sent[:-1] == last.messages[:3]


IMAGE = ImageContent(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
    "image/png",
)


@pytest.mark.parametrize("why", ["another model", "no room", "a changed context", "images"])
async def test_where_that_will_not_do_the_request_is_its_own(log, why: str) -> None:
    """CP-06: a model that cannot see gets a note for each image."""
    model = ScriptedModel(["Short."])
    if why == "images":
        log.message(UserMessage.of("Look.", [IMAGE]))
        log.message(attrs.evolve(log.session.get_branch()[1].message))
        log.user(TEXT)
    last, described, plan = next_request(log), model.model, plan_of(log)
    if why == "another model":
        described = attrs.evolve(described, id="another")
    elif why == "no room":
        plan = attrs.evolve(plan, tokens_before=described.context_window)
    elif why == "a changed context":
        last = attrs.evolve(last, messages=(UserMessage.of("hook"), *last.messages[1:]))
    await summarise(plan, partial(ask, model, described=described), described, last=last)
    sent = model.requests[0].context.messages
    assert len(sent) == 1
    assert prompt_of(model).startswith("<conversation>")
    if why == "images":
        assert "Look.\n(an image, image/png)" in prompt_of(model)
        assert not any(isinstance(block, ImageContent) for block in sent[0].content)


async def test_a_model_that_sees_keeps_its_images(log) -> None:
    log.message(UserMessage.of("Look.", [IMAGE]))
    log.answer("Seen.")
    log.user(TEXT)
    model = ScriptedModel(["Short."], Model("scripted", provider="scripted", input=("text", "image")))
    await summarise(plan_of(log), partial(ask, model), model.model, last=next_request(log))
    assert IMAGE in model.requests[0].context.messages[-3].content


async def test_messages_that_a_file_gave_back_are_the_same(log) -> None:
    """The comparison with the last request is about what a model sees, not about details."""
    last = next_request(log)
    old = attrs.evolve(last.messages[1], timestamp=1, usage=Usage(), extra={"stream": [1, 2]})
    last = attrs.evolve(last, messages=(last.messages[0], old, *last.messages[2:]))
    model = ScriptedModel(["Short."])
    await summarise(plan_of(log), partial(ask, model), model.model, last=last)
    assert len(model.requests[0].context.messages) == 5


# ------------------------------------------------------------------ what fails changes nothing


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Failure("529 Overloaded.", "overloaded"), "529 Overloaded."),
        (["Half a summ", Failure("The connection broke.", "transport")], "The connection broke."),
        (["Half", Stop("length")], "cut short"),
        (["", Stop("stop")], "no text"),
        ([" \n"], "no text"),
        (["Let me see.", Call("bash", {"command": "ls"})], "called a tool"),
        (["too long " * 1_000], "what it is to replace"),
    ],
)
@pytest.mark.parametrize("in_place", [False, True])
async def test_a_summary_that_cannot_be_used(log, answer, words: str, in_place: bool) -> None:
    """E60, CP-08: an error is raised, and the session is as it was."""
    model = ScriptedModel([answer])
    before = [log.session.line(head.id) for head in log.session.heads]
    with pytest.raises(SummaryError, match=words):
        await summarise(
            plan_of(log), partial(ask, model), model.model, last=next_request(log) if in_place else None
        )
    assert len(model.requests) == 1
    assert [log.session.line(head.id) for head in log.session.heads] == before


async def test_the_second_part_fails(log) -> None:
    log.step("1", TEXT)
    log.step("2", TEXT)
    model = ScriptedModel(["The history.", Failure("No.", "server")])
    with pytest.raises(SummaryError, match=r"There is no summary: No\."):
        await summarise(plan_of(log), partial(ask, model), model.model)


async def test_cancelling_leaves_nothing(log, autojump_clock) -> None:
    """CP-07: at once, without an entry; the conversation goes on."""
    model = ScriptedModel([["Half", Hang()], "Whole."])
    count = len(log.session.heads)
    with trio.move_on_after(2) as scope:
        await summarise(plan_of(log), partial(ask, model), model.model)
    assert scope.cancelled_caught
    assert trio.current_time() == pytest.approx(2, abs=0.5)
    assert len(log.session.heads) == count
    assert (await summarise(plan_of(log), partial(ask, model), model.model)).text == "Whole."


# ------------------------------------------------------------------ files


async def test_files_are_listed_once_and_changes_win(log) -> None:
    """E58, F26"""
    log.answer("", ("1", "read", "a"), ("2", "read", "b"), ("3", "edit", "b"), ("4", "write", "c"))
    for call_id in "1234":
        log.result(call_id)
    log.answer("", ("5", "read", "gone"), ("6", "read", "unknown"), ("7", "bash", "x"))
    log.result("5", error=True)
    log.user(TEXT)
    model = ScriptedModel(["Sum."])
    plan = plan_of(log)
    summary = await summarise(plan, partial(ask, model), model.model)
    lists = "\n\n<read-files>\na\nunknown\n</read-files>\n\n<modified-files>\nb\nc\n</modified-files>"
    assert summary.text == f"Sum.{lists}"
    assert summary.entry(plan).details == {"readFiles": ["a", "unknown"], "modifiedFiles": ["b", "c"]}
    assert without_lists(summary.text) == "Sum."


def test_calls_inside_other_calls_count() -> None:
    nested = {"calls": [{"name": "read", "arguments": {"path": "n"}, "status": "ok"}, {"name": "edit"}, 3]}
    failed = {"calls": [{"name": "write", "arguments": {"path": "f"}, "status": "error"}]}
    messages = [
        AssistantMessage((ToolCall("1", "code"), ToolCall("2", "code"))),
        ToolResultMessage("1", "code", "", nested_calls=nested),
        ToolResultMessage("2", "code", "", nested_calls=failed),
    ]
    assert files_of(messages).details() == {"readFiles": ["n"], "modifiedFiles": []}


@pytest.mark.parametrize("details", [None, 3, {}, {"readFiles": "a"}, {"readFiles": [1, None]}])
def test_details_of_another_kind_name_no_files(details) -> None:
    assert Files.from_details(details).lists() == ""


# ------------------------------------------------------------------ the conversation as text


def test_the_conversation_as_text() -> None:
    messages = [
        UserMessage.of("Hello \ud83d", [IMAGE]),
        AssistantMessage(
            (ThinkingContent("secret"), TextContent("Yes."), ToolCall("1", "a", {"x": 1, "y": "z"}))
        ),
        AssistantMessage((ToolCall("1", "a"), ToolCall("2", "b"))),
        ToolResultMessage("1", "a", "x" * 2_345),
        ToolResultMessage("2", "b", ""),
        BashExecutionMessage("ls", "out"),
        BashExecutionMessage("ls", "not for models", exclude_from_context=True),
        AssistantMessage((TextContent("failed"),), stop_reason="error"),
    ]
    assert serialise(messages) == [
        "[User]: Hello \ufffd\n(an image, image/png)",
        "[Assistant]: Yes.",
        '[Assistant tool calls]: a(x=1, y="z")',
        "[Assistant tool calls]: a(); b()",
        f"[Tool result]: {'x' * 2_000}\n[… 345 more characters]",
        "[User]: Ran `ls`\n```\nout\n```",
    ]


def test_texts_of_a_limited_length() -> None:
    assert list(chunks(["aaa", "bbb", "ccc"], 8)) == ["aaa\n\nbbb", "ccc"]
    assert list(chunks(["aaa", "bbb"], 100)) == ["aaa\n\nbbb"]
    assert list(chunks([], 8)) == []
    assert list(chunks(["a" * 50], 8)) == ["a" * 8 + "\n[… 42 more characters]"]


def test_usage_adds_up() -> None:
    one = Usage(1, 2, 3, 4, cache_write_1h=5, total_tokens=10, cost=Cost(1, 2, 3, 4, 10))
    assert add_usage(one, one) == Usage(
        2, 4, 6, 8, cache_write_1h=10, total_tokens=20, cost=Cost(2, 4, 6, 8, 20)
    )
    assert add_usage(Usage(), one) == one


# ------------------------------------------------------------------ the whole way


@pytest.mark.parametrize("in_place", [False, True])
async def test_from_plan_to_context(log, in_place: bool) -> None:
    """L53 to L60 together: prune, plan, summarise, append; the next context is smaller and legal."""
    log.answer("", ("1", "read", "a.py"), told=2_000)
    log.result("1", "x" * 50_000)
    log.answer(f"Read. {TEXT}", told=14_000)
    log.user(f"Last. {TEXT}")
    nodes = surface_of(log.session).nodes
    cut = find_cut(nodes, SIZE)
    assert cut is not None
    for pruned in prune(nodes[: cut.kept]):
        for entry in pruned.entries(log.session.id):
            log.add(entry)
    model = ScriptedModel(["The summary."])
    plan = plan_of(log)
    last = next_request(log) if in_place else None
    summary = await summarise(plan, partial(ask, model), model.model, last=last)
    log.add(summary.entry(plan))
    messages = log.session.build_context().messages
    assert [each.role for each in messages] == ["compactionSummary", "user"]
    assert messages[0].summary == "The summary.\n\n<read-files>\na.py\n</read-files>"
    assert messages[0].tokens_before == plan.tokens_before
    assert measure(log.session).size < plan.tokens_before
    shown = model.requests[0].context.messages
    assert sum(len(text_of(each.content)) for each in shown) < 20_000  # what was pruned was not shown


@pytest.mark.parametrize("in_place", [False, True])
async def test_the_demo_model_summarises(new_log, in_place: bool) -> None:
    log = new_log()
    log.user("read a.py")
    identity = {"api": demo.API, "provider": demo.PROVIDER, "model": demo.MODEL.id}
    log.message(
        AssistantMessage((ToolCall("1", "read", {"path": "a.py"}),), **identity, stop_reason="toolUse")
    )
    log.result("1", "x" * 4_000)
    log.message(AssistantMessage((TextContent("Read."),), **identity))
    log.user("and now?")
    answers: list[AssistantMessage] = []

    async def asked(context: Context) -> AssistantMessage:
        answers.append(await ask(None, context, demo.stream, demo.MODEL))
        return answers[-1]

    plan = plan_of(log, keep=1)
    last = next_request(log) if in_place else None
    summary = await summarise(plan, asked, demo.MODEL, last=last)
    assert len(answers) == 1
    assert summary.text.startswith("## Goal\nread a.py\n")
    assert "- [x] read" in summary.text
    assert summary.text.endswith("<read-files>\na.py\n</read-files>")
    assert summary.usage == answers[0].usage
    log.add(summary.entry(plan))
    assert measure(log.session).size < plan.tokens_before


def test_a_summary_is_an_entry(log) -> None:
    plan = plan_of(log)
    entry = Summary("text", Usage(1)).entry(plan)
    assert (entry.summary, entry.first_kept_entry_id) == ("text", plan.first_kept_id)
