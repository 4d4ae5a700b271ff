"""The tool calls of a session, from their events and from the entries that keep them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
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


class Calls:
    """All calls, in the order in which they were met. What changes one, changes its item.

    An id names one call of an answer, and no more: some providers count anew for each answer, and two
    branches count the same. An item therefore has its own calls, and events are about the latest with an id.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._all: list[Call] = []
        self._latest: dict[str, Call] = {}

    def __iter__(self) -> Iterator[Call]:
        return iter(self._all)

    def __getitem__(self, call_id: str) -> Call:
        """The latest with this id."""
        return self._latest[call_id]

    @property
    def running(self) -> list[Call]:
        """Those that run now."""
        return [call for call in self._all if call.state == "running"]

    def start(self, event: ToolExecutionStart) -> None:
        """A call begins."""
        call = self._latest.get(event.tool_call_id)
        if call is None or call.over:
            call = self._add(Call(event.tool_call_id, event.tool_name, event.args))
        call.state, call.started = "running", self._clock()
        _touch(call)

    def progress(self, event: ToolExecutionUpdate) -> None:
        """What a call has printed so far, or all of it when only its end is not told yet."""
        call = self._told(event.tool_call_id, event.tool_name, event.args)
        result, is_error = event.partial_result, event.is_error
        call.duration_ms = event.duration_ms
        _show(call, result, "running" if is_error is None else _outcome(is_error, result.details))

    def end(self, event: ToolExecutionEnd) -> None:
        """A call is over."""
        call = self._told(event.tool_call_id, event.tool_name, {})
        if not call.over:  # its entry, which says more, may have come before
            call.duration_ms = event.duration_ms
            _show(call, event.result, _outcome(event.is_error, event.result.details))

    def wanted(self, message: AssistantMessage, item: Item) -> None:
        """The calls of an answer, which `item` shows."""
        for each in message.tool_calls:
            call = item.calls.get(each.id) or self._latest.get(each.id)
            if call is None or call.item not in (None, item):
                call = self._add(Call(each.id, each.name, each.arguments))
            call.args = each.arguments
            _give(call, item)

    def drop(self, item: Item) -> None:
        """Let go of what the calls of an item printed; their entries keep it."""
        for call in item.calls.values():
            if call.result_id:
                call.output, call.details, call.dropped = "", None, True

    def settle(self, message: ToolResultMessage, item: Item | None, entry_id: str = "") -> None:
        """The result of a call, as it was kept; `item` shows the answer that wanted it."""
        id_ = message.tool_call_id
        call = (item.calls.get(id_) if item is not None else None) or self._latest.get(id_)
        if call is None or call.result_id not in ("", entry_id):
            call = self._add(Call(id_, message.tool_name, {}))
        call.result_id, call.dropped = entry_id, False
        call.state = _outcome(message.is_error, message.details)
        if call.state != "stopped" or not call.output:  # what a stopped call had printed is worth more
            _print(call, text_of(message.content))
        call.details, call.duration_ms = message.details, message.duration_ms
        if call.item is None and item is not None:
            _give(call, item)
        _touch(call)

    def _told(self, call_id: str, name: str, args: Mapping[str, Any]) -> Call:
        return self._latest.get(call_id) or self._add(Call(call_id, name, args))

    def _add(self, call: Call) -> Call:
        self._all.append(call)
        self._latest[call.id] = call
        return call


def _give(call: Call, item: Item) -> None:
    call.item = item
    item.calls[call.id] = call


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
