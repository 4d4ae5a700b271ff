"""What a line chat prints of the events of a session."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

from pi_trio.approval import Question
from pi_trio.codec import dumps, to_json
from pi_trio.events import (
    AgentEvent,
    ApprovalRequested,
    AutoRetryStart,
    CompactionStart,
    ConnectionChanged,
    EntryAppended,
    ExtensionError,
    Gap,
    MessageEnd,
    MessageUpdate,
    ToolExecutionEnd,
    ToolExecutionStart,
)
from pi_trio.extensions.renderers import render
from pi_trio.llm.protocol import StreamEvent, TextDelta, ThinkingDelta, ThinkingStart
from pi_trio.messages import AgentMessage, AssistantMessage, text_of
from pi_trio.text import plural, printed, sanitise

__all__ = ["ChatText"]

_MOST_LINES = 10
_MOST_CHARACTERS = 200


class ChatText:
    """Turns events into text that follows what was printed before.

    `failed` says whether the last answer was no whole one. `renderers` show entries of extensions.
    """

    def __init__(self) -> None:
        self.failed: bool = False
        self.renderers: Mapping[str, str] = {}
        self._thinks_unseen = False
        self._last_line: Literal["whole", "streaming", "waiting"] = "whole"

    @property
    def waiting(self) -> bool:
        """Whether the last line is the one that a person may type on."""
        return self._last_line == "waiting"

    def lines(self, text: str) -> str:
        """`text` on lines of its own."""
        before = "" if self._last_line == "whole" else "\n"
        self._last_line = "whole"
        return f"{before}{sanitise(text)}\n"

    def wait(self, sign: str) -> str:
        """The beginning of a line that a person may type on."""
        text = self.lines(sign)[:-1]
        self._last_line = "waiting"
        return text

    def typed(self) -> None:
        """A line was typed, with its end."""
        self._last_line = "whole"

    def event(self, event: AgentEvent) -> str:
        """What is printed of an event; empty for most."""
        match event:
            case MessageUpdate(piece, _):
                return self._piece(piece)
            case MessageEnd(AssistantMessage() as answer):
                return self._end(answer)
            case ToolExecutionStart():
                return self.lines(f"[{event.tool_name}] {_summary(event.args)}")
            case ToolExecutionEnd():
                return self._result(event)
            case AutoRetryStart():
                seconds = event.delay_ms / 1000
                return self.lines(
                    f"[retry {event.attempt} of {event.max_attempts} in {seconds:g} s] {event.error_message}"
                )
            case CompactionStart():
                return self.lines("[making room in the context]")
            case EntryAppended(entry):
                return self._entry(entry)
            case ExtensionError():
                return self.lines(f"[extension] {event.error}")
            case ApprovalRequested(question):
                return self.lines(self.question(question))
            case ConnectionChanged():
                state = "[connected again]" if event.connected else f"[{event.reason}; trying again]"
                return self.lines(state)
            case Gap():
                return self.lines("[some output was left out]")
            case _:
                return ""

    def came_out(self, last: AgentMessage | None) -> str:
        """How a turn came out whose end was missed, by the last message that there is."""
        if isinstance(last, AssistantMessage) and last.stop_reason == "stop":
            self.failed = False
            return text_of(last.content)
        self.failed = True
        return "[the turn was cut off]"

    def question(self, question: Question) -> str:
        """Why it is asked, and all of what would run. Not a line of its own yet."""
        args = sanitise(dumps(to_json(dict(question.args))).decode(), show_all=True)
        what = f"[{question.tool_name}] {args}"
        always = f"always: {', '.join(question.rules)}" if question.rules else ""
        return "\n".join(filter(None, [question.reason, what, question.preview, always]))

    def _piece(self, piece: StreamEvent) -> str:
        match piece:
            case TextDelta(_, delta) if delta:
                text = ("\n" if self.waiting else "") + sanitise(delta)
                self._last_line = "whole" if text.endswith("\n") else "streaming"
                return text
            case ThinkingStart():
                self._thinks_unseen = True
                return ""
            case ThinkingDelta(_, delta) if delta.strip() and self._thinks_unseen:
                self._thinks_unseen = False
                return self.lines("[thinking]")
            case _:
                return ""

    def _end(self, answer: AssistantMessage) -> str:
        self.failed = answer.stop_reason in ("error", "aborted", "length")
        match answer.stop_reason:
            case "error":
                return self.lines(f"[error] {answer.error_message or 'the request failed'}")
            case "aborted":
                return self.lines("[aborted]")
            case "length":
                return self.lines("[cut off: the model's output limit]")
            case _:
                return "" if self._last_line == "whole" else self.lines("")[:-1]

    def _result(self, event: ToolExecutionEnd) -> str:
        text = printed(event.tool_name, text_of(event.result.content))
        lines = text.strip("\n").split("\n") if text.strip() else []
        shown = [f"  {line}" for line in lines[:_MOST_LINES]]
        if len(lines) > _MOST_LINES:
            shown.append(f"  … {plural(len(lines) - _MOST_LINES, 'more line')}")
        if event.is_error:
            shown.insert(0, f"[{event.tool_name} failed]")
        return self.lines("\n".join(shown)) if shown else ""

    def _entry(self, entry: Mapping[str, Any]) -> str:
        """An extension's entry: by its template, or a message's own text if it is to be shown."""
        template = self.renderers.get(entry.get("customType", ""))
        message = entry.get("type") == "custom_message"
        if message and entry.get("display") is False:
            return ""
        if template is not None:
            return self.lines(render(template, entry.get("details" if message else "data")))
        return self.lines(_content(entry.get("content"))) if message else ""


def _summary(args: Mapping[str, Any]) -> str:
    """A call's arguments on one line: the command or path alone where there is one."""
    value = args.get("command") or args.get("path")
    text = value if isinstance(value, str) else json.dumps(args, ensure_ascii=False, default=str)
    line = sanitise(text, keep_newlines=False)
    return line if len(line) <= _MOST_CHARACTERS else f"{line[:_MOST_CHARACTERS]}…"


def _content(content: Any) -> str:
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    return "\n".join(block.get("text", "") for block in blocks if isinstance(block, dict))
