"""Having a model summarise, and what makes a summary fit to be used.

Where the last request's provider may still have it in its cache, the request for a summary
is that request's beginning and one message more. Otherwise a request of its own shows the
conversation as text, in several pieces if it must.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeAlias

import attrs
from attrs import frozen

from pi_trio.compaction import prompts
from pi_trio.compaction.estimate import CHARS_PER_TOKEN, estimate, estimate_text
from pi_trio.compaction.files import without_lists
from pi_trio.compaction.plan import Plan
from pi_trio.compaction.serialise import chunks, serialise
from pi_trio.errors import SummaryError
from pi_trio.llm.protocol import Context, Model
from pi_trio.loop.convert import convert_messages
from pi_trio.messages import (
    AgentMessage,
    AssistantMessage,
    CompactionSummaryMessage,
    Cost,
    ImageContent,
    LlmMessage,
    Usage,
    UserMessage,
)
from pi_trio.session.entries import CompactionEntry

__all__ = ["Ask", "Questions", "Summary", "add_usage", "room_for_text", "summarise"]

Ask: TypeAlias = Callable[[Context], Awaitable[AssistantMessage]]
"""Sends a request and gives the answer, failed ones as well. Retries and cancellation are its own."""


@frozen
class Summary:
    """The text that is to stand for what a plan covers, and what asking for it used."""

    text: str
    usage: Usage

    def entry(self, plan: Plan) -> CompactionEntry:
        """What to append: from then on the context begins with this summary."""
        return CompactionEntry(
            self.text,
            plan.first_kept_id,
            plan.tokens_before,
            plan.files.details(),
            self.usage,
            from_hook=False,
            system_message=plan.system,
        )


async def summarise(
    plan: Plan,
    ask: Ask,
    model: Model,
    *,
    last: Context | None = None,
    too_large: int | None = None,
    focus: str = "",
) -> Summary:
    """Have `model` summarise what the plan covers, looking at `focus` in particular.

    `last` is the context of the next request without new input: its beginning may be in the
    provider's cache. After an overflow give `too_large` instead, the tokens that did not fit.
    Raises `SummaryError`; cancelling leaves nothing.
    """
    questions = Questions(ask)
    in_place = None if last is None else _in_place(plan, model, last, focus)
    if in_place is not None:
        text = await questions.put(in_place)
    else:
        longest = room_for_text(model)
        if too_large is not None:  # the window may be smaller than we were told
            longest = min(longest, too_large * CHARS_PER_TOKEN // 2)
        text = await _apart(plan, questions, longest, focus)
    summary = Summary(text + plan.files.lists(), questions.usage)
    _check_size(summary, plan)
    return summary


def _check_size(summary: Summary, plan: Plan) -> None:
    size = estimate(CompactionSummaryMessage(summary.text))
    if size >= plan.covered_tokens:
        raise SummaryError(
            f"The summary has about {size:,} tokens, and what it is to replace has {plan.covered_tokens:,}."
        )


# ------------------------------------------------------------------ asking


class Questions:
    """Puts requests for text, one after the other, and adds up what they use."""

    def __init__(self, ask: Ask) -> None:
        self.usage: Usage = Usage()
        self._ask = ask

    async def put(self, context: Context) -> str:
        """The text of the answer. Raises `SummaryError` if it is not a whole summary."""
        answer = await self._ask(context)
        self.usage = add_usage(self.usage, answer.usage)
        fault = _fault(answer)
        if fault is not None:
            raise SummaryError(f"There is no summary: {fault}.")
        return answer.text.strip()

    async def put_in_pieces(
        self,
        request: Callable[[str, str | None], str],
        messages: Sequence[AgentMessage],
        longest: int,
        previous: str | None = None,
    ) -> str | None:
        """Show `messages` in texts of at most `longest` characters; each answer updates `previous`.

        `request` makes the words of a request from such a text and the summary before it.
        """
        for text in chunks(serialise(messages), longest):
            asked = UserMessage.of(request(text, previous))
            previous = await self.put(Context(prompts.SYSTEM, (asked,)))
        return previous


def _fault(answer: AssistantMessage) -> str | None:
    """Why an answer cannot be a summary; half a one would be worse than none."""
    if answer.stop_reason == "error":
        return (answer.error_message or "the request failed").rstrip(".")
    if answer.stop_reason in ("aborted", "length"):
        return "the answer was cut short" if answer.stop_reason == "length" else "the request was aborted"
    if answer.tool_calls:
        return "the model called a tool instead"
    return None if answer.text.strip() else "the answer has no text"


def add_usage(one: Usage, other: Usage) -> Usage:
    """Both together, costs included."""
    return Usage(
        one.input + other.input,
        one.output + other.output,
        one.cache_read + other.cache_read,
        one.cache_write + other.cache_write,
        _plus(one.cache_write_1h, other.cache_write_1h),
        _plus(one.reasoning, other.reasoning),
        one.total_tokens + other.total_tokens,
        _add_cost(one.cost, other.cost),
    )


def _plus(one: int | None, other: int | None) -> int | None:
    return other if one is None else one + (other or 0)


def _add_cost(one: Cost, other: Cost) -> Cost:
    names = ("input", "output", "cache_read", "cache_write", "total")
    return Cost(**{name: getattr(one, name) + getattr(other, name) for name in names})


# ------------------------------------------------------------------ in the conversation itself


def _in_place(plan: Plan, model: Model, last: Context, focus: str) -> Context | None:
    """The last request up to the cut and the wish for a summary; None where that will not do."""
    covered = convert_messages(plan.covered)
    beginning = last.messages[: len(covered)]
    if not (_same(beginning, covered) and _answered_by(model, beginning) and _can_see(model, beginning)):
        return None
    asked = UserMessage.of(prompts.in_place_request(bool(plan.turn), focus))
    size = plan.tokens_before - plan.kept_tokens + estimate(asked)
    if size + _room_for_answer(model) > model.context_window:
        return None
    return attrs.evolve(last, messages=(*beginning, asked))


def _same(sent: Sequence[LlmMessage], covered: Sequence[LlmMessage]) -> bool:
    """Whether a model sees the same in both."""
    return [(each.role, each.content) for each in sent] == [(each.role, each.content) for each in covered]


def _answered_by(model: Model, messages: Sequence[LlmMessage]) -> bool:
    """Whether the last answer is this model's: another one has nothing cached."""
    answers = (each for each in reversed(messages) if isinstance(each, AssistantMessage))
    last = next(answers, None)
    return last is not None and (last.provider, last.model) == (model.provider, model.id)


def _can_see(model: Model, messages: Sequence[LlmMessage]) -> bool:
    """Whether the model takes what is in the messages: images, or only text."""
    return "image" in model.input or not any(
        isinstance(block, ImageContent) for message in messages for block in message.content
    )


# ------------------------------------------------------------------ in a request of its own


async def _apart(plan: Plan, questions: Questions, longest: int, focus: str) -> str:
    """The history first, then the first part of a parted turn."""
    previous = None if plan.previous is None else without_lists(plan.previous)
    about_history = partial(prompts.history_request, focus=focus)
    history = await questions.put_in_pieces(about_history, plan.history, longest, previous)
    about_turn = partial(prompts.turn_request, focus=focus)
    turn = await questions.put_in_pieces(about_turn, plan.turn, longest)
    if turn is None:
        return history or prompts.NO_HISTORY
    return f"{history or prompts.NO_HISTORY}{prompts.SPLIT_TURN}{turn}"


def room_for_text(model: Model) -> int:
    """How many characters of conversation are sure to fit into a request for a summary."""
    overhead = estimate_text(prompts.SYSTEM + prompts.history_request("", None))
    tokens = model.context_window - 2 * _room_for_answer(model) - overhead  # the previous one, and the new
    return max(tokens, model.context_window // 4) * 3  # numbers and many languages take more tokens


def _room_for_answer(model: Model) -> int:
    return min(model.max_tokens, model.context_window // 4, 16_384)
