"""What a list shows of entries, without their bodies: first words, and sums over some of them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any

from attrs import evolve, frozen

__all__ = ["Digest", "calls_of", "digest", "merged", "of_branch", "said"]

MOST_CHARACTERS = 300
"""Of a text that is one line in a list."""


_PREAMBLE = re.compile(
    r"The (?:person tried another branch|user explored a different conversation branch)\b[^:]{0,200}:\s*"
)
"""What ours and pi's summaries of branches begin with: it is said to the model, and the same in each."""

_STOPPED = ("aborted", "aborted_before_start", "outcome_unknown", "not_started")
"""Codes of results of calls that were stopped, or not begun, because the turn was."""


@frozen
class Digest:
    """Some entries of a path, in order, in one value.

    `text` is the beginning of what the first of them says, `timestamp` when it was written.
    `tools` counts results of calls, `answers` those of models; `changes` are the ids of calls of
    `edit` and `write` with the paths that they named, without those that failed; `failed_calls`
    are the ids of failed calls that were made before the first of these entries.
    `context` is the size of the last request and its answer in tokens, 0
    for unknown; `cost` is in US dollars. `model` and `stop_reason` are those of the last answer;
    the reason is `aborted` also where a call of it was stopped. `failed` says that the first entry
    is the result of a call that failed.
    """

    text: str = ""
    timestamp: str = ""
    tools: int = 0
    answers: int = 0
    changes: tuple[tuple[str, str], ...] = ()
    failed_calls: tuple[str, ...] = ()
    context: int = 0
    cost: float = 0.0
    model: str = ""
    stop_reason: str = ""
    failed: bool = False

    @property
    def files(self) -> tuple[str, ...]:
        """The paths that were changed, or are about to be."""
        return tuple(dict.fromkeys(path for _, path in self.changes))


def digest(entries: Iterable[Mapping[str, Any]]) -> Digest:
    """Of entries as JSON objects; whatever is odd in one counts for nothing."""
    rest = iter(entries)
    first = next(rest, None)
    if first is None:
        return Digest()
    begun = evolve(_sums(first), text=said(first)[:MOST_CHARACTERS], timestamp=_text(first.get("timestamp")))
    return reduce(merged, map(_sums, rest), begun)


def merged(first: Digest, then: Digest) -> Digest:
    """Of all entries of two digests, one after the other."""
    changes = list(first.changes)
    earlier = tuple(each for each in then.failed_calls if not _take_back(changes, each))
    return Digest(
        text=first.text,
        timestamp=first.timestamp,
        tools=first.tools + then.tools,
        answers=first.answers + then.answers,
        changes=(*changes, *then.changes),
        failed_calls=first.failed_calls + earlier,
        context=then.context or first.context,
        cost=first.cost + then.cost,
        model=then.model or first.model,
        stop_reason=then.stop_reason if then.answers or then.stop_reason else first.stop_reason,
        failed=first.failed,
    )


def _take_back(changes: list[tuple[str, str]], call_id: str) -> bool:
    """Leave out the latest call with an id, since some providers count anew. False if there is none."""
    for at in range(len(changes) - 1, -1, -1):
        if changes[at][0] == call_id:
            del changes[at]
            return True
    return False


def _sums(entry: Mapping[str, Any]) -> Digest:
    """Of one entry, without its text and time."""
    message = entry.get("message")
    if not isinstance(message, Mapping):
        return Digest(cost=_cost(_mapping(entry.get("usage"))))  # what a summary has cost
    usage = _mapping(message.get("usage"))
    match message.get("role"):
        case "toolResult":
            code = _mapping(message.get("details")).get("code")
            failed = bool(message.get("isError"))
            return Digest(
                tools=1,
                cost=_cost(usage),
                stop_reason="aborted" if code in _STOPPED else "",
                failed_calls=(_text(message.get("toolCallId")),) if failed else (),
                failed=failed,
            )
        case "assistant":
            total = usage.get("totalTokens")
            return Digest(
                answers=1,
                changes=_changes(message),
                context=total if isinstance(total, int) and total > 0 else 0,
                cost=_cost(usage),
                model=_text(message.get("model")),
                stop_reason=_text(message.get("stopReason")),
            )
        case _:
            return Digest()


def said(entry: Mapping[str, Any]) -> str:
    """What an entry says to a person; of an answer without words, its calls."""
    match entry.get("type"):
        case "message":
            return _message(_mapping(entry.get("message")))
        case "custom_message":
            return _content(entry.get("content"))
        case "compaction":
            return _text(entry.get("summary"))
        case "branch_summary":
            return of_branch(_text(entry.get("summary")))
        case "label":
            label = _text(entry.get("label"))
            return f"label {label}" if label else "label taken away"
        case "session_info":
            return f"name {_text(entry.get('name'))}"
        case "model_change":
            return f"model {_text(entry.get('provider'))}/{_text(entry.get('modelId'))}"
        case "thinking_level_change":
            return f"thinking {_text(entry.get('thinkingLevel'))}"
        case kind:
            return " ".join(filter(None, (_text(kind), _text(entry.get("customType")))))


def of_branch(summary: str) -> str:
    """What a summary of a branch tells, without the sentence that leads up to it."""
    preamble = _PREAMBLE.match(summary)
    return summary[preamble.end() :] if preamble else summary


def _message(message: Mapping[str, Any]) -> str:
    match message.get("role"):
        case "bashExecution":
            return f"! {_text(message.get('command'))}"
        case "system":
            return _content(message.get("content")) or "system prompt"
        case "toolResult":
            return f"{_text(message.get('toolName'))}: {_content(message.get('content'))}"
        case "assistant":
            return _content(message.get("content")) or calls_of(message) or _text(message.get("errorMessage"))
        case _:
            return _content(message.get("content"))


def calls_of(message: Mapping[str, Any]) -> str:
    """The calls of an answer, each in a few words."""
    return ", ".join(map(_call, _calls(message)))


def _content(content: Any) -> str:
    if isinstance(content, str):
        return content
    blocks = [each for each in content if isinstance(each, Mapping)] if isinstance(content, list) else []
    texts = [_text(each.get("text")) for each in blocks if each.get("type") == "text"]
    images = sum(each.get("type") == "image" for each in blocks)
    return "\n".join(filter(None, texts)) or ("(an image)" if images else "")


def _calls(message: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    return (each for each in blocks if isinstance(each, Mapping) and each.get("type") == "toolCall")


def _call(call: Mapping[str, Any]) -> str:
    """A call in a few words: its tool, and what it works on."""
    arguments = _mapping(call.get("arguments"))
    about = next((arguments[name] for name in ("command", "pattern", "path") if name in arguments), "")
    return f"{_text(call.get('name'))} {_text(about)}".strip()


def _changes(message: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    named = (
        (_text(call.get("id")), _mapping(call.get("arguments")).get("path"))
        for call in _calls(message)
        if call.get("name") in ("edit", "write")
    )
    return tuple((id_, path) for id_, path in named if isinstance(path, str))


def _cost(usage: Mapping[str, Any]) -> float:
    total = _mapping(usage.get("cost")).get("total")
    return float(total) if isinstance(total, (int, float)) else 0.0


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
