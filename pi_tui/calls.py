"""The tool calls of a session, from their events and from the entries that keep them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pi_trio.events import ToolExecutionEnd, ToolExecutionStart, ToolExecutionUpdate
from pi_trio.messages import AssistantMessage, ToolResultMessage, text_of
from pi_trio.tool import ToolResult
from pi_tui.bodies import OUTPUT_CHARACTERS
from pi_tui.shown import Call, CallState, Item

__all__ = ["Calls"]

_STOPPED: dict[str, CallState] = {
    "aborted": "stopped",
    "outcome_unknown": "stopped",
    "aborted_before_start": "not_started",
    "not_started": "not_started",
}


class Calls(dict[str, Call]):
    """Calls by their ids, in the order in which they were met. What changes one, changes its item."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__()
        self._clock = clock

    @property
    def running(self) -> list[Call]:
        """Those that run now."""
        return [call for call in self.values() if call.state == "running"]

    def start(self, event: ToolExecutionStart) -> None:
        """A call begins."""
        call = self._call(event.tool_call_id, event.tool_name, event.args)
        call.state, call.started = "running", self._clock()
        _touch(call)

    def progress(self, event: ToolExecutionUpdate) -> None:
        """What a call has printed so far, or all of it when only its end is not told yet."""
        call = self._call(event.tool_call_id, event.tool_name, event.args)
        result, is_error = event.partial_result, event.is_error
        call.duration_ms = event.duration_ms
        _show(call, result, "running" if is_error is None else _outcome(is_error, result.details))

    def end(self, event: ToolExecutionEnd) -> None:
        """A call is over."""
        call = self._call(event.tool_call_id, event.tool_name, {})
        if not call.over:  # its entry, which says more, may have come before
            call.duration_ms = event.duration_ms
            _show(call, event.result, _outcome(event.is_error, event.result.details))

    def wanted(self, message: AssistantMessage, item: Item | None) -> None:
        """The calls of an answer, which `item` shows."""
        for each in message.tool_calls:
            call = self._call(each.id, each.name, each.arguments)
            call.args, call.item = each.arguments, item

    def drop(self, item: Item) -> None:
        """Let go of what the calls of an item printed; their entries keep it."""
        for call in self.values():
            if call.item is item and call.result_id:
                call.output, call.details, call.dropped = "", None, True

    def settle(self, message: ToolResultMessage, item: Item | None, entry_id: str = "") -> None:
        """The result of a call, as it was kept."""
        call = self._call(message.tool_call_id, message.tool_name, {})
        call.result_id, call.dropped = entry_id, False
        call.state = _outcome(message.is_error, message.details)
        if call.state != "stopped" or not call.output:  # what a stopped call had printed is worth more
            _print(call, text_of(message.content))
        call.details, call.duration_ms = message.details, message.duration_ms
        call.item = call.item or item
        _touch(call)

    def _call(self, call_id: str, name: str, args: Mapping[str, Any]) -> Call:
        return self.setdefault(call_id, Call(call_id, name, args))


def _show(call: Call, result: ToolResult, state: CallState) -> None:
    call.state, call.details = state, result.details
    _print(call, text_of(result.content))
    _touch(call)


def _print(call: Call, output: str) -> None:
    call.cut = max(len(output) - OUTPUT_CHARACTERS, 0)
    call.output = output[call.cut :]


def _touch(call: Call) -> None:
    if call.item is not None:
        call.item.version += 1


def _outcome(is_error: bool, details: Any) -> CallState:
    code = details.get("code") if isinstance(details, Mapping) else None
    return _STOPPED.get(str(code)) or ("failed" if is_error else "done")
