"""One run: the only place where a step is run.

A run has turns, a turn has steps. Inside a step: claim, pre-step decision, `step/start`,
request preparation, admission, the answer, its tool calls, `step/end`. After it:
`finish_turn`, `turn_end`, `prepare_next_turn`, `should_stop_after_turn`, steering. Brackets
are closed in every case, so that a run that was cancelled or that crashed leaves a legal log.
"""

from __future__ import annotations

from collections.abc import Sequence

import trio
from attrs import define

from pi_trio.errors import LimitError, StorageError, UsageError
from pi_trio.events import (
    AgentEnd,
    AgentStart,
    MessageEnd,
    MessageStart,
    TurnEnd,
    TurnStart,
)
from pi_trio.loop.answer import Answer, describe
from pi_trio.loop.driver import Driver, RejectStep, Step, Turn, TurnEndReason, tell
from pi_trio.loop.hooks import FinishTurnResult, TurnContext
from pi_trio.loop.repetition import RepeatedRefusal, Repetition
from pi_trio.loop.tool_calls import ToolBatch
from pi_trio.messages import AgentMessage, AssistantMessage, ToolResultMessage

__all__ = ["last_message", "run_agent_loop", "run_agent_loop_continue"]


async def run_agent_loop(driver: Driver) -> None:
    """Run until nothing is owed and nothing waits that may run.

    Raises what a hook, a listener or the disk raised, after the run has been closed in an
    orderly way. A cancel by the driver's lifetime ends here; one from outside passes through.
    """
    await _Run(driver).run()


async def run_agent_loop_continue(driver: Driver) -> None:
    """As `run_agent_loop`, for a driver whose first turn owes an answer to the transcript as it is.

    Raises `UsageError`, before anything happens, if there is nothing to answer.
    """
    if isinstance(last_message(driver.snapshot().messages), AssistantMessage):
        raise UsageError("Cannot continue from an assistant message.")
    await run_agent_loop(driver)


def last_message(messages: Sequence[AgentMessage]) -> AgentMessage:
    """What a run would go on from. Raises `UsageError` if there is only a system message, or nothing."""
    last = messages[-1] if messages else None
    if last is None or last.role == "system":
        raise UsageError("No messages to continue from.")
    return last


@define
class _Outcome:
    """What a step came to."""

    message: AssistantMessage
    tool_results: tuple[ToolResultMessage, ...] = ()
    owed: bool = False
    finish: FinishTurnResult | None = None


class _Run:
    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._told = False

    async def run(self) -> None:
        failure: Exception | None = None
        async with self._driver.lifetime.running():
            try:
                await self._driver.hub.emit(AgentStart())
                await self._turns()
            except (RepeatedRefusal, LimitError) as error:  # which nobody has to mend
                if not self._told:
                    await self._report(str(error))
            except Exception as error:
                failure = error
                if not self._told:
                    await self._report(describe(error))
            finally:
                await tell(self._driver, AgentEnd(tuple(self._driver.new_messages)))
        if failure is not None:
            raise failure

    # ------------------------------------------------------------------ turns

    async def _turns(self) -> None:
        while (turn := await self._open_turn()) is not None:
            reason: TurnEndReason = "aborted"
            try:
                reason = await self._steps(turn)
            except LimitError:
                reason = "limit"
                raise
            except Exception:
                reason = "error"
                raise
            finally:
                self._driver.close_turn(turn, reason)

    async def _open_turn(self) -> Turn | None:
        await trio.lowlevel.checkpoint_if_cancelled()  # an abort leaves the queues alone
        return await self._driver.open_turn()

    async def _steps(self, turn: Turn) -> TurnEndReason:
        batch, number, owed = turn.batch, 0, turn.owed
        reason: TurnEndReason = "completed"
        repetition = Repetition()
        while True:
            step = Step(turn.number, number + 1)
            entering = await self._pre_step(step, batch)
            if entering is None:
                return "blocked"
            if not entering and not owed:
                return reason
            if entering:
                repetition = Repetition()  # the model has heard something new
            number += 1
            outcome = await self._step(step, entering)
            if outcome.message.stop_reason == "error":
                return "error"
            if outcome.message.stop_reason == "length":
                reason = "max_tokens"
            if await self._stops_after(outcome):
                return "stopped"
            owed = outcome.owed
            batch = await self._claim(turn, owed)
            if not batch and not owed:
                return reason
            if not batch:
                repetition.check(outcome.message, outcome.tool_results)

    async def _claim(self, turn: Turn, owed: bool) -> Sequence[AgentMessage]:
        """The next step's input. When the turn would stop, who objects may steer first."""
        batch = await self._claim_steering()
        if not batch and not owed:
            await self._driver.turn_stopping(turn)
            batch = await self._claim_steering()
        return batch

    async def _claim_steering(self) -> Sequence[AgentMessage]:
        await trio.lowlevel.checkpoint_if_cancelled()  # as for a turn
        return await self._driver.claim_steering()

    async def _pre_step(self, step: Step, batch: Sequence[AgentMessage]) -> Sequence[AgentMessage] | None:
        """What enters the step; None if the input was rejected. Failing hands the batch back."""
        try:
            decision = await self._driver.pre_step(step, batch)
        except BaseException:
            self._driver.hand_back(batch)
            raise
        if isinstance(decision, RejectStep):
            self._driver.hand_back(batch)
            return None
        return decision.messages

    # ------------------------------------------------------------------ one step

    async def _step(self, step: Step, entering: Sequence[AgentMessage]) -> _Outcome:
        driver = self._driver
        answer = Answer(driver, step)
        tools: ToolBatch | None = None
        admitted = False
        self._open(step, entering)
        try:
            await driver.hub.emit(TurnStart())
            request = await driver.prepare_request(step)
            await trio.lowlevel.checkpoint_if_cancelled()  # from here on the input counts as used
            admission = driver.admit(step, request, entering)
            admitted = True
            await self._announce(admission.committed)
            message = await answer.ask(request, admission)
            outcome = _Outcome(message)
            if _owes_results(message):
                tools = ToolBatch(driver, step, message, admission.tools)
                ran = await tools.run()
                outcome.tool_results = ran.results
                outcome.owed = not ran.terminate
                driver.add_tools(ran.added_tool_names)
                driver.park(ran.context)
            outcome.finish = await self._finish_turn(outcome)
            return outcome
        except Exception as error:
            if answer.message is None:
                self._told = True
                await answer.fail(error)
            raise
        finally:
            if not admitted:
                driver.hand_back(entering)
            if answer.message is None:
                await answer.stop()
            await self._close(step, answer, tools)

    def _open(self, step: Step, entering: Sequence[AgentMessage]) -> None:
        try:
            self._driver.commit(step.fact("step/start"))
        except StorageError:
            self._driver.hand_back(entering)
            raise

    async def _close(self, step: Step, answer: Answer, tools: ToolBatch | None) -> None:
        message = answer.message
        try:
            if message is not None and tools is None and _owes_results(message):
                tools = ToolBatch(self._driver, step, message, ())
                await tools.skip()
        finally:
            try:
                self._driver.commit(step.fact("step/end"))
            finally:
                if message is not None:
                    results = tools.results if tools is not None else ()
                    await tell(self._driver, TurnEnd(message, results))

    async def _announce(self, messages: Sequence[AgentMessage]) -> None:
        """Tell of what was admitted; it is committed, so nothing may come between."""
        if messages:
            both = (MessageStart, MessageEnd)
            await tell(self._driver, *(kind(each) for each in messages for kind in both))

    async def _finish_turn(self, outcome: _Outcome) -> FinishTurnResult | None:
        hook = self._driver.hooks.finish_turn
        if hook is None:
            return None
        decision = await hook(self._turn_context(outcome))
        if decision is not None and decision.action == "continue":
            outcome.owed = True
        return decision

    async def _stops_after(self, outcome: _Outcome) -> bool:
        """The hooks between `turn_end` and the next claim."""
        if outcome.finish is not None and outcome.finish.action == "end":
            return True
        hooks = self._driver.hooks
        if hooks.prepare_next_turn_with_context is not None:
            update = await hooks.prepare_next_turn_with_context(self._turn_context(outcome))
        elif hooks.prepare_next_turn is not None:
            update = await hooks.prepare_next_turn()
        else:
            update = None
        if update is not None:
            self._driver.update(update)
        if hooks.should_stop_after_turn is None:
            return False
        return await hooks.should_stop_after_turn(self._turn_context(outcome))

    def _turn_context(self, outcome: _Outcome) -> TurnContext:
        new = tuple(self._driver.new_messages)
        return TurnContext(outcome.message, outcome.tool_results, self._driver.snapshot(), new)

    # ------------------------------------------------------------------ closing

    async def _report(self, problem: str) -> None:
        """A run that failed between steps says so in a step of its own."""
        message = Answer(self._driver, Step(0, 0)).failed(problem)
        await tell(self._driver, TurnStart(), MessageStart(message), MessageEnd(message), TurnEnd(message))


def _owes_results(message: AssistantMessage) -> bool:
    return bool(message.tool_calls) and message.stop_reason not in ("error", "aborted")
