"""Making a branch fit for a request, in memory: nothing of this is written.

Providers refuse a call without its result, a result without its call, a turn without content,
and images that are damaged or too large. A crash, an abort, an edit of the context or another
program may leave all of them in a file.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeAlias

import attrs

from pi_trio.images import is_whole, read_header
from pi_trio.messages import (
    AgentMessage,
    AssistantMessage,
    CustomMessage,
    ImageContent,
    TextContent,
    ToolCall,
    ToolResultMessage,
    UserContent,
    UserMessage,
    is_blank,
    sendable,
)

__all__ = [
    "NOT_STARTED",
    "OUTCOME_UNKNOWN",
    "Conversation",
    "fit",
    "missing_result",
]

NOT_STARTED = "not_started"
OUTCOME_UNKNOWN = "outcome_unknown"

Started: TypeAlias = Callable[[Sequence[str]], Collection[str]]
"""The calls that `tool/call` facts, given by their entries' ids, say were started."""


def missing_result(call: ToolCall, code: str, timestamp: int) -> ToolResultMessage:
    """The result of a call that has none: `code` is `NOT_STARTED` or `OUTCOME_UNKNOWN`."""
    text = _MISSING[code]
    return ToolResultMessage(
        call.id, call.name, (TextContent(text),), {"code": code}, is_error=True, timestamp=timestamp
    )


_MISSING = {
    NOT_STARTED: "This call was not started: the run was interrupted before it. It is safe to make it again.",
    OUTCOME_UNKNOWN: "The run was interrupted and no result of this call was saved. "
    "It may have run in part or as a whole: check what it did before making it again.",
}


# ------------------------------------------------------------------ calls and results


class _OpenCalls:
    """An answer with calls, until the next answer comes. `logged`: the step's facts are there."""

    def __init__(self, message: AssistantMessage, calls: Iterable[ToolCall], *, logged: bool) -> None:
        self.message = message
        self.calls = {call.id: call for call in calls}
        self.logged = logged
        self.facts: list[str] = []
        self.results: dict[str, ToolResultMessage] = {}
        self.after: list[AgentMessage] = []

    def missing(self) -> list[ToolCall]:
        """The calls that have no result."""
        if len(self.results) == len(self.calls):
            return []
        return [call for call_id, call in self.calls.items() if call_id not in self.results]

    def closed(self, started: Started) -> list[AgentMessage]:
        """The answer, one result for each call in the calls' order, then what came between."""
        missing = self.missing()
        known = started(self.facts) if missing and self.logged else ()
        results = dict(self.results)
        for call in missing:
            idle = self.logged and call.id not in known
            code = NOT_STARTED if idle else OUTCOME_UNKNOWN
            results[call.id] = missing_result(call, code, self.message.timestamp)
        return [self.message, *(results[call.id] for call in self.message.tool_calls), *self.after]


class Conversation:
    """The messages of a branch, one after the other, with each call's result right after it.

    A result that comes late moves up; one without a call, or a second one, is dropped.
    """

    def __init__(self, started: Started) -> None:
        self._started = started
        self._messages: list[AgentMessage] = []
        self._open: _OpenCalls | None = None
        self._in_step = False
        self._repairs: list[str] = []

    def step_begins(self) -> None:
        """A `step/start` fact: from here on `tool/call` facts tell which calls were started."""
        self._in_step = True

    def step_ends(self) -> None:
        """A `step/end` or `turn/end` fact."""
        self._in_step = False

    def call_begins(self, entry_id: str) -> None:
        """A `tool/call` fact, which is read only if a result turns out to be missing."""
        if self._open is not None:
            self._open.facts.append(entry_id)

    def add(self, message: AgentMessage) -> None:
        """The next message of the branch."""
        if isinstance(message, AssistantMessage):
            self._answer(message)
            return
        sound = fit(message)
        if sound is None:
            self._repairs.append(f"a {message.role} message without content was left out")
            return
        if sound is not message:
            self._repairs.append(f"images of a {message.role} message cannot be sent: notes stand for them")
        if isinstance(sound, ToolResultMessage):
            self._result(sound)
        elif self._open is not None:
            self._open.after.append(sound)
        else:
            self._messages.append(sound)

    def messages(self) -> tuple[AgentMessage, ...]:
        """What can be sent now."""
        if self._open is None:
            return tuple(self._messages)
        return (*self._messages, *self._open.closed(self._started))

    def repairs(self) -> tuple[str, ...]:
        """What was changed to make it so, a sentence each."""
        missing = self._open.missing() if self._open is not None else ()
        return (*self._repairs, *map(_supplied, missing))

    def _answer(self, message: AssistantMessage) -> None:
        kept = sendable(message)
        if kept is None:
            return
        if self._open is not None:
            self._repairs.extend(map(_supplied, self._open.missing()))
            self._messages.extend(self._open.closed(self._started))
            self._open = None
        calls = kept.tool_calls
        if calls:
            self._open = _OpenCalls(kept, calls, logged=self._in_step)
        else:
            self._messages.append(kept)

    def _result(self, message: ToolResultMessage) -> None:
        waiting, call_id = self._open, message.tool_call_id
        if waiting is None or call_id not in waiting.calls:
            self._repairs.append(f"a result of {message.tool_name} has no call and was left out")
        elif call_id in waiting.results:
            self._repairs.append(f"a second result of the same call of {message.tool_name} was left out")
        else:
            waiting.results[call_id] = message


def _supplied(call: ToolCall) -> str:
    return f"a call of {call.name} has no result and got one that says so"


# ------------------------------------------------------------------ one message


def fit(message: AgentMessage) -> AgentMessage | None:
    """The message as it can be sent, whatever stands around it; None if nothing of it can."""
    if isinstance(message, AssistantMessage):
        return sendable(message)
    sound = with_sound_images(message)
    if isinstance(sound, (UserMessage, CustomMessage)) and is_blank(sound.content):
        return None
    return sound


LARGEST_IMAGE = 5 << 20
"""Characters of base64 that the strictest provider takes in one image."""
MOST_PIXELS = 8000
"""Pixels a side that the strictest provider takes."""


def with_sound_images(message: AgentMessage) -> AgentMessage:
    """The message itself, or one with a note in place of each image that no provider takes."""
    if not isinstance(message, (UserMessage, ToolResultMessage, CustomMessage)) or isinstance(
        message.content, str
    ):
        return message
    if not any(isinstance(block, ImageContent) for block in message.content):
        return message
    sound = tuple(_sound(block) if isinstance(block, ImageContent) else block for block in message.content)
    return message if sound == message.content else attrs.evolve(message, content=sound)


def _sound(image: ImageContent) -> UserContent:
    fault = _fault(image)
    return image if fault is None else TextContent(f"[An image was left out here: {fault}]")


def _fault(image: ImageContent) -> str | None:
    if len(image.data) > LARGEST_IMAGE:
        return "it is too large"
    try:
        data = binascii.a2b_base64(image.data, strict_mode=True)
    except ValueError:
        return "its data is damaged"
    header = read_header(data)
    if header is None or not is_whole(header.mime_type, data):
        return "its data is damaged"
    return "it has too many pixels" if max(header.width, header.height) > MOST_PIXELS else None
