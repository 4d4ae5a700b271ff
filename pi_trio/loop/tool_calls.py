"""The calls of one answer: prepared in order, run in a bounded pool, settled in order.

A nursery of workers is fed by a zero-buffer channel, so that a call leaves the queue only
when a worker is free for it. Preparing happens one call at a time in the model's order; bodies
overlap; post hooks and results follow in the model's order again. A `sequential` call is a
barrier that nothing overlaps. Whatever happens, cancellation included, each call gets exactly
one result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import trio
from attrs import define, evolve, field, frozen

from pi_trio.loop.abandon import AbandonableTask
from pi_trio.loop.driver import Driver, Step
from pi_trio.loop.tool_call import CallExecution
from pi_trio.messages import AgentMessage, AssistantMessage, ToolResultMessage
from pi_trio.nursery import plain_nursery
from pi_trio.tool import ExecutionMode, Tool

__all__ = ["ToolBatch", "ToolOutcome"]

TRUNCATED = (
    "Not run: the answer hit the output limit, so the arguments may be cut off. "
    "Send the call again, with less text if need be."
)


@frozen
class ToolOutcome:
    """What a batch of calls came to. `terminate` asks that no request follow by itself."""

    results: tuple[ToolResultMessage, ...]
    terminate: bool
    added_tool_names: tuple[str, ...]
    context: tuple[AgentMessage, ...]


@define(eq=False)
class _Job:
    """A call that is offered to the workers. `taken` is set when it is prepared, or `refused`."""

    execution: CallExecution
    refused: bool = False
    taken: trio.Event = field(factory=trio.Event)


class ToolBatch:
    """The calls of one complete answer."""

    def __init__(self, driver: Driver, step: Step, answer: AssistantMessage, tools: Sequence[Tool]) -> None:
        self._driver = driver
        self._truncated = answer.stop_reason == "length"
        self._tools = {tool.name: tool for tool in tools}
        self._executions = [
            CallExecution(driver, step, answer, call, self._tools.get(call.name))
            for call in answer.tool_calls
        ]
        self._settled = 0  # how many, from the first on
        self._refuse_duplicates()

    async def run(self) -> ToolOutcome:
        """Run the calls. Cancelled, it first drains what runs and settles every call."""
        if self._truncated:
            for each in self._open:
                each.refuse(TRUNCATED, "truncated")
                each.finished.set()
        names = ", ".join(each.call.name for each in self._executions)
        tools = AbandonableTask(self._run_all, self._driver.lifetime, names)
        try:
            await self._settle_all(tools.cancel)
        finally:
            await tools.join()
        return self._outcome()

    async def skip(self) -> None:
        """Settle every call without running it: the run failed after the answer was complete."""
        self._stop_unstarted()
        await self._settle_all()

    @property
    def results(self) -> tuple[ToolResultMessage, ...]:
        """What has been settled so far; one for each call, once `run` is over."""
        return tuple(each.message for each in self._executions if each.message)

    def _outcome(self) -> ToolOutcome:
        results = [each.result for each in self._executions if each.result]
        return ToolOutcome(
            self.results,
            bool(results) and all(result.terminate for result in results),
            tuple(name for result in results for name in result.added_tool_names),
            tuple(message for result in results for message in result.context),
        )

    @property
    def _open(self) -> list[CallExecution]:
        return [each for each in self._executions if each.result is None]

    def _refuse_duplicates(self) -> None:
        """Of calls with the same id only the first can be answered by running it."""
        first: dict[str, CallExecution] = {}
        for each in self._executions:
            if first.setdefault(each.call.id, each) is not each:
                text = f"Not run: another call of this answer has the same id {each.call.id!r}."
                each.refuse(text, "duplicate_id")
                each.finished.set()

    def _stop_unstarted(self) -> None:
        for each in self._executions:
            if not each.recorded:
                each.stop()
                each.finished.set()

    # ------------------------------------------------------------------ dispatch, in model order

    async def _run_all(self) -> None:
        try:
            await self._dispatch()
        finally:
            self._stop_unstarted()

    async def _dispatch(self) -> None:
        waiting = self._open[::-1]
        last: CallExecution | None
        while waiting:
            if len(waiting) == 1 or self._mode(waiting[-1]) == "sequential":
                last = waiting.pop()
                await self._execute(_Job(last))
            else:
                last = await self._run_pool(waiting)
            if waiting and last is not None:  # the nursery waits for the very last one
                await last.settled.wait()

    async def _run_pool(self, waiting: list[CallExecution]) -> CallExecution | None:
        """Run calls from the end of `waiting` until a sequential one is next; gives the last that ran."""
        bound = max(1, self._driver.max_parallel_tool_calls)
        last = None
        async with plain_nursery() as workers:
            offers, jobs = trio.open_memory_channel[_Job](0)
            for _ in range(min(bound, len(waiting))):
                workers.start_soon(self._work, jobs.clone())
            with offers, jobs:
                while waiting and await _accepted(offers, waiting[-1]):
                    last = waiting.pop()
        return last

    async def _work(self, jobs: trio.MemoryReceiveChannel[_Job]) -> None:
        with jobs:
            async for job in jobs:
                if self._mode(job.execution) == "parallel":
                    await self._execute(job)
                else:  # it became a barrier while it waited for this worker
                    job.refused = True
                    job.taken.set()

    def _mode(self, execution: CallExecution) -> ExecutionMode:
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

    async def _execute(self, job: _Job) -> None:
        execution = job.execution
        try:
            try:
                await trio.lowlevel.checkpoint_if_cancelled()
                await execution.prepare(self._tools)
            finally:
                job.taken.set()
            if execution.result is None and execution.tool is not None:
                await trio.lowlevel.checkpoint_if_cancelled()  # nothing starts after an abort
                await execution.run_body(execution.tool)
                await self._show_early(execution)
        except Exception as error:
            execution.fail(error)
            raise
        except BaseException:
            execution.stop()
            raise
        finally:
            execution.finished.set()

    async def _show_early(self, execution: CallExecution) -> None:
        """A body that is done before the calls in front of it shows its result at once."""
        if execution.message is not None:
            return  # the run was stopped long ago, and did not wait for it
        ahead = self._executions[self._settled]
        if ahead is not execution and execution.result is not None:
            outcome = execution.outcome()
            update = execution.update(outcome)
            over = evolve(update, is_error=outcome.is_error, duration_ms=execution.duration_ms)
            await self._driver.hub.emit(over)

    # ------------------------------------------------------------------ settling, in model order

    async def _settle_all(self, stop: Callable[[], None] = lambda: None) -> None:
        """Settle every call; `stop` stops those that run.

        A failure on the way, and being cancelled, stop them and are raised when all are settled.
        """
        failure: BaseException | None = None
        for execution in self._executions:
            try:
                if not execution.finished.is_set():
                    await execution.finished.wait()
            except trio.Cancelled as cancelled:
                failure = failure or cancelled
                stop()
                with self._driver.lifetime.shelter():
                    await execution.finished.wait()
            try:
                await execution.apply_after_hook()
                self._settled += 1
                await execution.settle()
            except Exception as error:
                failure = failure or error
                stop()
            finally:
                execution.settled.set()
        if failure is not None:
            raise failure


async def _accepted(offers: trio.MemorySendChannel[_Job], execution: CallExecution) -> bool:
    """Wait for a worker, and until it has prepared the call. False if the call must run alone."""
    job = _Job(execution)
    await offers.send(job)
    await job.taken.wait()
    return not job.refused
