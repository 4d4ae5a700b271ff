"""The calls of one answer: prepared in order, run in a bounded pool, settled in order.

A nursery of workers is fed by a zero-buffer channel, so that a call leaves the queue only
when a worker is free for it. Preparing (the `tool/call` fact, lookup, validation, the pre
hook) happens one call at a time in the model's order; bodies overlap; post hooks and
results follow in the model's order again. A `sequential` call is a barrier that nothing
overlaps. Whatever happens, cancellation included, each call gets exactly one result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import trio
from attrs import define, field, frozen

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
from pi_trio.messages import AgentMessage, AssistantMessage, TextContent, ToolCall, ToolResultMessage
from pi_trio.nursery import plain_nursery
from pi_trio.tool import ExecutionMode, Tool, ToolResult

__all__ = ["ToolBatch", "ToolOutcome"]

ABORTED = "Stopped by the user while it was running. What it had done by then stays done."
NOT_STARTED = "Stopped by the user before it started. Nothing was done."
TRUNCATED = (
    "Not run: the answer hit the output limit, so the arguments may be cut off. "
    "Send the call again, with less text if need be."
)

NO_PROGRESS = ToolResult()


@frozen
class ToolOutcome:
    """What a batch of calls came to. `terminate` asks that no request follow by itself."""

    results: tuple[ToolResultMessage, ...]
    terminate: bool
    added_tool_names: tuple[str, ...]
    context: tuple[AgentMessage, ...]


@define(eq=False)
class _Execution:
    """One call on its way. `result` is set when it is known, `message` when it is committed."""

    call: ToolCall
    tool: Tool | None
    args: Mapping[str, Any] = field(factory=dict)
    refused: bool = False
    recorded: bool = False
    ran: bool = False
    code: str | None = None
    duration_ms: int | None = None
    progress: ToolResult = NO_PROGRESS
    result: ToolResult | None = None
    message: ToolResultMessage | None = None
    dispatched: trio.Event = field(factory=trio.Event)
    finished: trio.Event = field(factory=trio.Event)
    settled: trio.Event = field(factory=trio.Event)

    def finish(self, result: ToolResult, code: str | None = None) -> None:
        """Set the result, once."""
        if self.result is None:
            self.result, self.code = result, code

    def update(self, partial: ToolResult) -> ToolExecutionUpdate:
        """The event that shows `partial`."""
        return ToolExecutionUpdate(self.call.id, self.call.name, self.call.arguments, partial)

    def stop(self) -> None:
        """Set the result of a call that the user stopped."""
        if self.ran:
            self.cut_off(ABORTED, "aborted")
        else:
            self.finish(ToolResult(NOT_STARTED, is_error=True), "aborted_before_start")

    def cut_off(self, text: str, code: str) -> None:
        """Set the result of a body that was stopped: what it had reported, and `text`."""
        content = (*self.progress.content, TextContent(text))
        self.finish(ToolResult(content, self.progress.details, is_error=True), code)


class _Progress:
    """The `on_update` of one body. A listener that fails on it stops the body, and then the run."""

    def __init__(self, driver: Driver, execution: _Execution, scope: trio.CancelScope) -> None:
        self.failure: Exception | None = None
        self._driver = driver
        self._execution = execution
        self._scope = scope

    async def __call__(self, partial: ToolResult) -> None:
        if self._execution.result is not None or self.failure is not None:
            return
        self._execution.progress = partial
        try:
            await self._driver.emit(self._execution.update(partial))
        except Exception as error:  # not the tool's to see, or it would become its result
            self.failure = error
            self._scope.cancel()


class ToolBatch:
    """The calls of one complete answer."""

    def __init__(self, driver: Driver, step: Step, answer: AssistantMessage, tools: Sequence[Tool]) -> None:
        self._driver = driver
        self._step = step
        self._answer = answer
        self._tools = {tool.name: tool for tool in tools}
        self._executions = self._plan()

    async def run(self) -> ToolOutcome:
        """Run the calls. Cancelled, it first drains what runs and settles every call."""
        if self._answer.stop_reason == "length":
            self._finish_all(ToolResult(TRUNCATED, is_error=True), "truncated")
        async with plain_nursery() as nursery:
            nursery.start_soon(self._settle_all, nursery.cancel_scope)
            try:
                await self._dispatch()
            finally:
                self._finish_all(ToolResult(NOT_STARTED, is_error=True), "aborted_before_start")
        return self.outcome()

    async def skip(self) -> None:
        """Settle every call without running it: the run failed after the answer was complete."""
        self._finish_all(ToolResult(NOT_STARTED, is_error=True), "aborted_before_start")
        await self._settle_all(trio.CancelScope())

    def outcome(self) -> ToolOutcome:
        """What has been settled so far; everything, once `run` is over."""
        results = [each.result for each in self._executions if each.message and each.result]
        return ToolOutcome(
            tuple(each.message for each in self._executions if each.message),
            bool(results) and all(result.terminate for result in results),
            tuple(name for result in results for name in result.added_tool_names),
            tuple(message for result in results for message in result.context),
        )

    def _plan(self) -> list[_Execution]:
        """The calls in order. Of calls with the same id only the first can be answered by running it."""
        plan: dict[str, _Execution] = {}
        executions = [_Execution(call, self._tools.get(call.name)) for call in self._answer.tool_calls]
        for each in executions:
            if plan.setdefault(each.call.id, each) is not each:
                text = f"Not run: another call of this answer has the same id {each.call.id!r}."
                each.finish(ToolResult(text, is_error=True), "duplicate_id")
                each.finished.set()
        return executions

    def _finish_all(self, result: ToolResult, code: str) -> None:
        for each in self._executions:
            if not each.recorded:
                each.finish(result, code)
                each.finished.set()

    # ------------------------------------------------------------------ dispatch, in model order

    async def _dispatch(self) -> None:
        waiting = [each for each in reversed(self._executions) if each.result is None]
        while waiting:
            if len(waiting) == 1 or self._mode(waiting[-1]) == "sequential":
                execution = waiting.pop()
                await self._execute(execution)
                await execution.settled.wait()
            else:
                await self._run_pool(waiting)

    async def _run_pool(self, waiting: list[_Execution]) -> None:
        """Run calls from the end of `waiting` until a sequential one is next; drains the pool."""
        bound = max(1, self._driver.max_parallel_tool_calls)
        last = None
        async with plain_nursery() as workers:
            jobs, inlet = trio.open_memory_channel[_Execution](0)
            for _ in range(min(bound, len(waiting))):
                workers.start_soon(self._work, inlet.clone())
            with inlet, jobs:
                while waiting:
                    execution = waiting[-1]
                    execution.dispatched, execution.refused = trio.Event(), False
                    await jobs.send(execution)
                    await execution.dispatched.wait()
                    if execution.refused:
                        break
                    last = waiting.pop()
        if last is not None:
            await last.settled.wait()

    async def _work(self, jobs: trio.MemoryReceiveChannel[_Execution]) -> None:
        with jobs:
            async for execution in jobs:
                if self._mode(execution) == "parallel":
                    await self._execute(execution)
                else:  # it became a barrier while it waited for this worker
                    execution.refused = True
                    execution.dispatched.set()

    def _mode(self, execution: _Execution) -> ExecutionMode:
        """How the call may run, decided just before it starts; in doubt alone."""
        if self._driver.tool_execution == "sequential" or execution.tool is None:
            return "sequential"
        mode = execution.tool.execution_mode
        if callable(mode):
            try:
                mode = mode(execution.call.arguments)
            except Exception:  # a classifier that cannot tell must not let the call overlap others
                return "sequential"
        return "parallel" if mode == "parallel" else "sequential"

    # ------------------------------------------------------------------ one call

    async def _execute(self, execution: _Execution) -> None:
        try:
            try:
                await trio.lowlevel.checkpoint_if_cancelled()
                await self._prepare(execution)
            finally:
                execution.dispatched.set()
            if execution.result is None and execution.tool is not None:
                await trio.lowlevel.checkpoint_if_cancelled()  # nothing starts after an abort
                await self._run_body(execution, execution.tool)
        except Exception as error:
            execution.finish(_error_result(error))
            raise
        except BaseException:
            execution.stop()
            raise
        finally:
            execution.finished.set()

    async def _prepare(self, execution: _Execution) -> None:
        call = execution.call
        self._record(execution)
        await self._driver.emit(ToolExecutionStart(call.id, call.name, call.arguments))
        if execution.tool is None:
            names = ", ".join(self._tools) or "none"
            execution.finish(
                ToolResult(f"There is no tool {call.name!r}. Tools: {names}.", is_error=True), "unknown_tool"
            )
            return
        if call.arguments_error is not None:
            execution.finish(ToolResult(call.arguments_error, is_error=True), "invalid_arguments")
            return
        try:
            execution.args = validated(execution.tool, call.arguments)
        except Exception as error:  # the arguments, what prepares them, or the tool's schema
            execution.finish(_error_result(error), "invalid_arguments")
            return
        await self._before(execution)

    async def _before(self, execution: _Execution) -> None:
        hook = self._driver.hooks.before_tool_call
        if hook is None:
            return
        try:
            decision = await hook(
                BeforeToolCallContext(self._answer, execution.call, execution.args, self._driver.snapshot())
            )
        except Exception as error:
            execution.finish(_error_result(error), "blocked")
            return
        decision = decision or BeforeToolCallResult()
        if decision.block:
            text = decision.reason or "The call was blocked."
            execution.finish(ToolResult(text, is_error=True, terminate=decision.terminate), "blocked")

    async def _run_body(self, execution: _Execution, tool: Tool) -> None:
        call = execution.call
        began = trio.current_time()
        execution.ran = True
        with trio.CancelScope() as scope:
            progress = _Progress(self._driver, execution, scope)
            if tool.timeout is not None:
                scope.deadline = began + tool.timeout
            self._driver.track_call(call.id, scope)
            try:
                execution.finish(_checked(await tool.execute(call.id, execution.args, progress)))
            except* Exception as errors:  # perhaps of a nursery that is being cancelled
                execution.finish(_error_result(errors))
            finally:
                self._driver.track_call(call.id, None)
                execution.duration_ms = round((trio.current_time() - began) * 1000)
        if progress.failure is not None:
            raise progress.failure
        if scope.cancelled_caught:
            timed_out = trio.current_time() >= scope.deadline
            text = f"The tool took longer than {tool.timeout:g} seconds." if timed_out else ABORTED
            execution.cut_off(text, "timeout" if timed_out else "aborted")
        await self._show_early(execution)

    async def _show_early(self, execution: _Execution) -> None:
        """A body that is done before the calls in front of it shows its result at once."""
        if execution.message is not None:
            return  # the run was stopped long ago, and did not wait for it
        ahead = next(each for each in self._executions if each.message is None)
        if ahead is not execution and execution.result is not None:
            await self._driver.emit(execution.update(execution.result))

    # ------------------------------------------------------------------ settling, in model order

    async def _settle_all(self, batch: trio.CancelScope) -> None:
        """Settle every call. A failure on the way stops the batch and is raised when all are settled."""
        failure: Exception | None = None
        for execution in self._executions:
            try:
                with self._driver.lifetime.shelter():
                    await execution.finished.wait()
                    await self._after(execution)
                await self._settle(execution)
            except Exception as error:
                failure = failure or error
                batch.cancel()
            finally:
                execution.settled.set()
        if failure is not None:
            raise failure

    async def _settle(self, execution: _Execution) -> None:
        """Commit the result and tell of it, even if the disk refused it: each call that began must end."""
        call = execution.call
        if execution.result is None:  # the body goes on although the run was stopped long ago
            execution.stop()
        result = execution.result or ToolResult()
        message = execution.message = self._message(execution)
        events: list[AgentEvent] = [
            ToolExecutionEnd(call.id, call.name, result, result.is_error, execution.duration_ms),
            MessageStart(message),
            MessageEnd(message),
        ]
        if not execution.recorded:
            events.insert(0, ToolExecutionStart(call.id, call.name, call.arguments))
        try:
            if not execution.recorded:
                self._record(execution)
            self._driver.commit(message)
        finally:
            await tell(self._driver, *events)

    async def _after(self, execution: _Execution) -> None:
        hook = self._driver.hooks.after_tool_call
        result = execution.result
        if hook is None or not execution.ran or result is None:
            return
        try:
            change = await hook(
                AfterToolCallContext(
                    self._answer,
                    execution.call,
                    execution.args,
                    result,
                    result.is_error,
                    self._driver.snapshot(),
                )
            )
        except Exception as error:
            execution.result = _error_result(error)
            return
        if change is not None:
            execution.result = _changed(result, change)

    def _record(self, execution: _Execution) -> None:
        call = execution.call
        self._driver.commit(self._step.fact("tool/call", callId=call.id, name=call.name))
        execution.recorded = True

    def _message(self, execution: _Execution) -> ToolResultMessage:
        result = execution.result or ToolResult()
        details = result.details
        if execution.code is not None and (details is None or isinstance(details, Mapping)):
            details = {**(details or {}), "code": execution.code}
        return ToolResultMessage(
            execution.call.id,
            execution.call.name,
            result.content,
            details,
            result.usage,
            result.is_error,
            execution.duration_ms,
        )


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
