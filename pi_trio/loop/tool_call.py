"""One call of an answer: prepared, run, and settled with exactly one result.

The steps are in order: `prepare` (the `tool/call` fact, lookup, validation, the pre hook), then
`run_body`, then `apply_after_hook`, then `settle`. When each of them happens relative to the other
calls of the answer is decided in `pi_trio.loop.tool_calls`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs
import trio
from attrs import define, field

from pi_trio.events import (
    AgentEvent,
    MessageEnd,
    MessageStart,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
)
from pi_trio.loop.arguments import validated
from pi_trio.loop.driver import Driver, Step, tell
from pi_trio.loop.hooks import (
    AfterToolCallContext,
    AfterToolCallResult,
    BeforeToolCallContext,
    BeforeToolCallResult,
)
from pi_trio.messages import AssistantMessage, TextContent, ToolCall, ToolResultMessage
from pi_trio.text import plural
from pi_trio.tool import Tool, ToolResult

__all__ = ["CallExecution"]

ABORTED = "Stopped by the user while it was running. What it had done by then stays done."
LEFT_BEHIND = (
    "Stopped by the user, but it did not stop in time and was left behind: what it still does is not known."
)
NOT_STARTED = "Stopped by the user before it started. Nothing was done."

NO_PROGRESS = ToolResult()


@define(eq=False)
class CallExecution:
    """A call on its way. `result` is set when it is known, `message` when it is committed.

    `recorded` says that the log knows of its start, `ran` that its body has begun. `finished` is
    set when there is a result to settle, `settled` when that has been told.
    """

    _driver: Driver
    _step: Step
    _answer: AssistantMessage
    call: ToolCall
    tool: Tool | None
    args: Mapping[str, Any] = field(factory=dict, init=False)
    recorded: bool = field(default=False, init=False)
    ran: bool = field(default=False, init=False)
    code: str | None = field(default=None, init=False)
    duration_ms: int | None = field(default=None, init=False)
    progress: ToolResult = field(default=NO_PROGRESS, init=False)
    result: ToolResult | None = field(default=None, init=False)
    message: ToolResultMessage | None = field(default=None, init=False)
    finished: trio.Event = field(factory=trio.Event, init=False)
    settled: trio.Event = field(factory=trio.Event, init=False)

    # ------------------------------------------------------------------ the result

    def finish(self, result: ToolResult, code: str | None = None) -> None:
        """Set the result, once."""
        if self.result is None:
            self.result, self.code = result, code

    def refuse(self, text: str, code: str) -> None:
        """Set the result of a call whose body does not run."""
        self.finish(ToolResult(text, is_error=True), code)

    def fail(self, error: Exception, code: str | None = None) -> None:
        """Set the result of a call that raised."""
        self.finish(_error_result(error), code)

    def stop(self, text: str = ABORTED) -> None:
        """Set the result of a call that the user stopped. `text` is for a body that had begun."""
        if self.ran:
            self._cut_off(text, "aborted")
        else:
            self.refuse(NOT_STARTED, "aborted_before_start")

    def _cut_off(self, text: str, code: str) -> None:
        """Set the result of a body that was stopped: what it had reported, and `text`."""
        content = (*self.progress.content, TextContent(text))
        self.finish(ToolResult(content, self.progress.details, is_error=True), code)

    # ------------------------------------------------------------------ before the body

    async def prepare(self, offered: Iterable[str]) -> None:
        """Tell of the start, check the arguments, ask the hook. `offered` are the tools there are."""
        self._record()
        await self._driver.hub.emit(self._start())
        if self.tool is None:
            names = ", ".join(offered) or "none"
            self.refuse(f"There is no tool {self.call.name!r}. Tools: {names}.", "unknown_tool")
        elif self.call.arguments_error is not None:
            self.refuse(self.call.arguments_error, "invalid_arguments")
        else:
            await self._check(self.tool)

    async def _check(self, tool: Tool) -> None:
        try:
            self.args = validated(tool, self.call.arguments)
        except Exception as error:  # the arguments, what prepares them, or the tool's schema
            self.fail(error, "invalid_arguments")
            return
        hook = self._driver.hooks.before_tool_call
        if hook is None:
            return
        try:
            decision = await hook(
                BeforeToolCallContext(self._answer, self.call, self.args, self._driver.snapshot())
            )
        except Exception as error:
            self.fail(error, "blocked")
            return
        decision = decision or BeforeToolCallResult()
        if decision.block:
            text = decision.reason or "The call was blocked."
            self.finish(ToolResult(text, is_error=True, terminate=decision.terminate), "blocked")

    # ------------------------------------------------------------------ the body

    async def run_body(self, tool: Tool) -> None:
        """Run the tool within its time limit. Raises only what a listener raised on its progress."""
        began = trio.current_time()
        self.ran = True
        with self._driver.lifetime.call(self.call.id) as scope:
            progress = _Progress(self._driver, self, scope)
            if tool.timeout is not None:
                scope.deadline = began + tool.timeout
            try:
                self.finish(_checked(await tool.execute(self.call.id, self.args, progress)))
            except* Exception as errors:  # perhaps of a nursery that is being cancelled
                self.fail(errors)
            finally:
                self.duration_ms = round((trio.current_time() - began) * 1000)
        if progress.failure is not None:
            raise progress.failure
        if scope.cancelled_caught:
            if tool.timeout is not None and trio.current_time() >= scope.deadline:
                self._cut_off(f"The tool took longer than {plural(tool.timeout, 'second')}.", "timeout")
            else:
                self._cut_off(ABORTED, "aborted")

    def update(self, partial: ToolResult) -> ToolExecutionUpdate:
        """The event that shows `partial`."""
        return ToolExecutionUpdate(self.call.id, self.call.name, self.call.arguments, partial)

    # ------------------------------------------------------------------ after the body

    async def apply_after_hook(self) -> None:
        """Let the hook change the result of a body that ran; its exception becomes the result.

        Sheltered: a call that was stopped has its hook too.
        """
        hook, result = self._driver.hooks.after_tool_call, self.result
        if hook is None or not self.ran or result is None:
            return
        snapshot = self._driver.snapshot()
        context = AfterToolCallContext(self._answer, self.call, self.args, result, result.is_error, snapshot)
        with self._driver.lifetime.shelter():
            try:
                change = await hook(context)
            except Exception as error:
                self.result = _error_result(error)
                return
            if change is not None:
                self.result = _changed(result, change)

    async def settle(self) -> None:
        """Commit the result and tell of it, even if the disk refused it: each call that began must end."""
        call = self.call
        if self.result is None:
            self.stop(LEFT_BEHIND)
        result = self.outcome()
        message = self.message = self._message(result)
        events: list[AgentEvent] = [
            ToolExecutionEnd(call.id, call.name, result, result.is_error, self.duration_ms),
            MessageStart(message),
            MessageEnd(message),
        ]
        if not self.recorded:
            events.insert(0, self._start())
        try:
            if not self.recorded:
                self._record()
            self._driver.commit(message)
        finally:
            await tell(self._driver, *events)

    def _start(self) -> ToolExecutionStart:
        return ToolExecutionStart(self.call.id, self.call.name, self.call.arguments)

    def _record(self) -> None:
        self._driver.commit(self._step.fact("tool/call", callId=self.call.id, name=self.call.name))
        self.recorded = True

    def outcome(self) -> ToolResult:
        """The result as it is told and kept: a code in its details says if it is not the tool's own."""
        result = self.result or ToolResult()
        details = result.details
        if self.code is None or not (details is None or isinstance(details, Mapping)):
            return result
        return attrs.evolve(result, details={**(details or {}), "code": self.code})

    def _message(self, result: ToolResult) -> ToolResultMessage:
        return ToolResultMessage(
            self.call.id,
            self.call.name,
            result.content,
            result.details,
            result.usage,
            result.is_error,
            self.duration_ms,
        )


class _Progress:
    """The `on_update` of one body. A listener that fails on it stops the body, and then the run."""

    def __init__(self, driver: Driver, execution: CallExecution, scope: trio.CancelScope) -> None:
        self.failure: Exception | None = None
        self._driver = driver
        self._execution = execution
        self._scope = scope

    async def __call__(self, partial: ToolResult) -> None:
        if self._execution.result is not None or self.failure is not None:
            return
        self._execution.progress = partial
        try:
            await self._driver.hub.emit(self._execution.update(partial))
        except Exception as error:  # not the tool's to see, or it would become its result
            self.failure = error
            self._scope.cancel()


def _checked(result: object) -> ToolResult:
    """What a body returned. Raises `TypeError` if it is no result: not every tool is type-checked."""
    if not isinstance(result, ToolResult):
        raise TypeError(f"The tool returned {type(result).__name__}, not a ToolResult.")
    return result


def _error_result(error: Exception) -> ToolResult:
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return ToolResult(str(error) or type(error).__name__, is_error=True)


def _changed(result: ToolResult, change: AfterToolCallResult) -> ToolResult:
    """The result with the fields replaced that the hook names; new content drops the structured one."""
    given: dict[str, Any] = {
        name: value
        for name in ("content", "details", "is_error", "usage", "terminate")
        if (value := getattr(change, name)) is not None
    }
    if "content" in given:
        given["structured_content"] = None
    return attrs.evolve(result, **given)
