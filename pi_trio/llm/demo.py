"""The demo model: no key, no network. It streams Markdown and really uses the tools.

It understands a few plain orders, so that everything around a model can be tried without
one. What it answers depends on the conversation alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from shlex import quote
from typing import Any

from attrs import frozen

from pi_trio.codec import dumps
from pi_trio.llm.builder import AnswerBuilder
from pi_trio.llm.demo_tour import STEPS, TOUR
from pi_trio.llm.playback import Beat, Playback
from pi_trio.llm.protocol import Context, Model, ModelCost, StreamOptions
from pi_trio.messages import AssistantMessage, LlmMessage, ToolResultMessage, Usage, UserMessage, text_of
from pi_trio.text import plural

__all__ = ["API", "MODEL", "PROVIDER", "TOUR", "stream"]

API = "demo"
PROVIDER = "demo"
MODEL = Model(
    "demo",
    name="Demo (no key, no network)",
    api=API,
    provider=PROVIDER,
    reasoning=True,
    cost=ModelCost(),
    context_window=128_000,
    max_tokens=16_384,
)

DELTA_INTERVAL = 0.005
"""Seconds between two deltas: about what a fast model does."""

_CHARS_PER_TOKEN = 4
_PIECE = re.compile(r"\S{1,8}\s*|\s+")


def stream(model: Model, context: Context, options: StreamOptions) -> Playback:
    """Answer without a provider. See `StreamFunction`."""
    return Playback(_play(model, context, options, _answer(context)))


@frozen
class _Call:
    """A tool call to make."""

    tool: str
    arguments: Mapping[str, Any]


@frozen
class _Answer:
    """What to say: some thinking, then text, then calls."""

    thinking: str
    text: str
    calls: Sequence[_Call] = ()


# ------------------------------------------------------------------ saying it


def _play(model: Model, context: Context, options: StreamOptions, answer: _Answer) -> Iterator[Beat]:
    builder = AnswerBuilder(
        AssistantMessage((), model.api, model.provider, model.id, thinking_level=options.thinking_level)
    )
    builder.start()
    if options.thinking_level != "off":
        for piece in _PIECE.findall(answer.thinking):
            builder.thinking(piece)
            yield builder.take()
            yield DELTA_INTERVAL
    for piece in _PIECE.findall(answer.text):
        builder.text(piece)
        yield builder.take()
        yield DELTA_INTERVAL
    for number, call in enumerate(answer.calls):
        call_id = f"demo_{len(context.messages)}_{number}"
        builder.tool_call(number, call_id, call.tool, dumps(dict(call.arguments)).decode())
        yield builder.take()
        yield DELTA_INTERVAL
    builder.usage = _usage(context, answer)
    builder.done("toolUse" if answer.calls else "stop")
    yield builder.take()


def _usage(context: Context, answer: _Answer) -> Usage:
    asked = len(context.system_prompt) + sum(len(text_of(message.content)) for message in context.messages)
    said = len(answer.thinking) + len(answer.text) + sum(len(str(call.arguments)) for call in answer.calls)
    asked, said = asked // _CHARS_PER_TOKEN, said // _CHARS_PER_TOKEN
    return Usage(input=asked, output=said, total_tokens=asked + said)


# ------------------------------------------------------------------ what to say


def _answer(context: Context) -> _Answer:
    prompt = _last_prompt(context.messages)
    if prompt.strip() == TOUR:
        return _tour(context)
    results = _results_at_the_end(context.messages)
    if results:
        return _Answer("The tools have answered. I sum up what came back.", _report(results))
    if "<conversation>" in prompt or prompt.lstrip().startswith("# Conversation"):
        return _Answer("A summary is wanted.", _summary(prompt, context.messages))
    tools = {tool.name for tool in context.tools}
    calls = list(_orders(prompt, tools))
    if not calls:
        return _Answer("No order that I know is in this. I say what can be tried.", _HELP)
    missing = sorted({call.tool for call in calls} - tools)
    if missing:
        return _Answer(
            "A tool is missing.", f"For that I would need {_names(missing)}, which I was not given.\n"
        )
    names = _names([call.tool for call in calls])
    return _Answer(f"This is work for {names}.", f"I use {names}.\n\n", calls)


def _tour(context: Context) -> _Answer:
    """The next step of the tour; one that was stopped is over."""
    prompts = [at for at, message in enumerate(context.messages) if isinstance(message, UserMessage)]
    said = sum(isinstance(message, AssistantMessage) for message in context.messages[prompts[-1] :])
    step = STEPS[min(said, len(STEPS) - 1)]
    if all(tool.name != "bash" for tool in context.tools):
        return _Answer("There are no commands here, so I only tell it.", "".join(each.text for each in STEPS))
    calls = [_Call("bash", {"command": command}) for command in step.commands]
    return _Answer("The tour goes on.", step.text, calls)


def _names(tools: Sequence[str]) -> str:
    return " and ".join(f"`{tool}`" for tool in tools)


def _results_at_the_end(messages: Sequence[LlmMessage]) -> list[ToolResultMessage]:
    results: list[ToolResultMessage] = []
    for message in reversed(messages):
        if not isinstance(message, ToolResultMessage):
            break
        results.insert(0, message)
    return results


def _last_prompt(messages: Sequence[LlmMessage]) -> str:
    return next((text_of(each.content) for each in reversed(messages) if isinstance(each, UserMessage)), "")


_HELP = """\
I am the **demo model**: I run inside this program, without a key and without a network. \
I understand a few orders, and the tools I use are real:

- `read README.md`
- `list src`
- `` run `ls -la` ``
- `search TODO in src`
- `write hello to notes.txt`
- `in notes.txt replace hello by bye`

Join orders with *and* to run them in parallel, as in `` read README.md and run `date` ``. \
To work with a real model, choose one that you have a key for.
"""


# ------------------------------------------------------------------ orders


_WORD = r"`?([^\s`]+)`?"
_TEXT = r"[`\"']?(.+?)[`\"']?"
_ORDERS: Mapping[str, re.Pattern[str]] = {
    name: re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for name, pattern in {
        "read": rf"(?:please )?(?:read|show|open)(?: the file)? {_WORD}",
        "list": rf"(?:please )?(?:list|ls)(?: the files(?: in| of)?)?(?: {_WORD})?",
        "run": r"(?:please )?run (?:`([^`]+)`|(.+))",
        "search": rf"(?:please )?(?:search|grep|find)(?: for)? {_TEXT}(?: in {_WORD})?",
        "write": rf"(?:please )?write {_TEXT} (?:to|into) {_WORD}",
        "edit": rf"(?:please )?in {_WORD} replace {_TEXT} (?:by|with) {_TEXT}",
    }.items()
}
_FULL_STOP = re.compile(r"(?<=[\w`\"'])[.!]$")
_OUTSIDE_CODE = r"(?=(?:[^`]*`[^`]*`)*[^`]*$)"
_SEPARATOR = re.compile(rf"(?:,\s*(?:and\s+)?|\s+and\s+(?:then\s+)?|\n+){_OUTSIDE_CODE}", re.IGNORECASE)


_LONGEST_ORDERS = 4_000
"""Characters of a prompt that may hold orders. What is longer is a text that somebody pasted or piped."""


def _orders(prompt: str, tools: set[str]) -> Iterator[_Call]:
    """The calls that the orders in a prompt ask for; parts that are no order are passed over."""
    if len(prompt) > _LONGEST_ORDERS:
        return
    for part in _SEPARATOR.split(prompt.strip()):
        for name, pattern in _ORDERS.items():
            match = pattern.fullmatch(_FULL_STOP.sub("", part.strip()))
            if match is not None:
                yield _call(name, match, tools)
                break


def _call(order: str, match: re.Match[str], tools: set[str]) -> _Call:
    first, second, third = [*(group or "" for group in match.groups()), "", ""][:3]
    match order:
        case "read":
            return _Call("read", {"path": first})
        case "list" if "ls" in tools:
            return _Call("ls", {"path": first or "."})
        case "list":
            return _Call("bash", {"command": f"ls -la {quote(first or '.')}"})
        case "run":
            return _Call("bash", {"command": first or second})
        case "search" if "grep" in tools:
            return _Call("grep", {"pattern": first, "path": second or "."})
        case "search":
            return _Call("bash", {"command": f"grep -rn -e {quote(first)} {quote(second or '.')}"})
        case "write":
            return _Call("write", {"path": second, "content": f"{first}\n"})
        case _:
            return _Call("edit", {"path": first, "edits": [{"oldText": second, "newText": third}]})


# ------------------------------------------------------------------ telling what came back


_SHOWN_LINES = 8


def _report(results: Sequence[ToolResultMessage]) -> str:
    failed = sum(result.is_error for result in results)
    count = "One tool has" if len(results) == 1 else f"{len(results)} tools have"
    verdict = "no errors" if not failed else f"{failed} of them failed" if len(results) > 1 else "it failed"
    parts = [f"### What came back\n\n{count} answered, {verdict}.", *(_told(result) for result in results)]
    return "\n\n".join(parts) + "\n"


def _told(result: ToolResultMessage) -> str:
    """The first lines of a result, fenced so that nothing in it is taken for Markdown."""
    state = "failed" if result.is_error else "answered"
    text = text_of(result.content).strip("\n")
    if not text:
        return f"**{result.tool_name}** {state} without any text."
    lines = text.split("\n")
    shown = "\n".join(lines[:_SHOWN_LINES])
    fence = "`" * (1 + max((len(run) for run in re.findall(r"`{3,}", shown)), default=2))
    more = len(lines) - _SHOWN_LINES
    rest = f"\n\n… and {plural(more, 'more line')}." if more > 0 else ""
    return f"**{result.tool_name}** {state}:\n\n{fence}\n{shown}\n{fence}{rest}"


_SUMMARY = """\
## Goal
{goal}

## Constraints & Preferences
- (none)

## Progress
### Done
{done}

### In Progress
- [ ] Nothing

### Blocked
- (none)

## Key Decisions
- **Demo model**: the answers come from the program itself

## Next Steps
1. Continue with the next prompt

## Critical Context
- (none)
"""


def _summary(prompt: str, messages: Sequence[LlmMessage]) -> str:
    """The structured summary that compaction asks for."""
    goals = re.findall(r"^\[User\]: (.+)", prompt, re.MULTILINE)
    calls = re.findall(r"^\[Assistant tool calls\]: (.+)", prompt, re.MULTILINE)
    if len(messages) > 1:  # the conversation itself is there, not its text
        goals = [text_of(each.content) for each in messages if isinstance(each, UserMessage)]
        answers = (each for each in messages if isinstance(each, AssistantMessage))
        calls = [call.name for answer in answers for call in answer.tool_calls]
    goal = next((goal.splitlines()[0] for goal in goals if goal), "Try the program with the demo model")
    done = "\n".join(f"- [x] {line}" for line in calls) or "- [x] Talked with the demo model"
    return _SUMMARY.format(goal=goal, done=done)
