"""Working off one task, here or on another machine: everything that is needed travels as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import trio
from attrs import evolve, frozen

from pi_trio.cli.answer_schema import AnswerSchema
from pi_trio.cli.batch.tasks import Task
from pi_trio.cli.conversation import Conversation, Outcome
from pi_trio.cli.prompts import Prompt
from pi_trio.cli.status import FAILED, status_of
from pi_trio.errors import PiError, StorageError
from pi_trio.events import AgentEvent
from pi_trio.harness.runtime import open_runtime
from pi_trio.resources.config import RuntimeConfig
from pi_trio.resources.paths import find_agent_dir

__all__ = ["Work", "work_off", "work_off_here"]


@frozen(kw_only=True)
class Work:
    """How all tasks of a batch are worked on. `schema` is a JSON Schema for their answers; None: any.

    `timeout` is for one task, in seconds.
    """

    config: RuntimeConfig
    schema: Any = None
    timeout: float | None = None


def work_off_here(task: Task, work: Work) -> dict[str, Any]:
    """As `work_off`, in a trio run of its own, with the agent directory of this machine."""
    config = evolve(work.config, agent_dir=find_agent_dir())
    return trio.run(work_off, task, evolve(work, config=config))


async def work_off(task: Task, work: Work) -> dict[str, Any]:
    """The result of a task. Whatever fails is one, too: it is told in it, and stops no other task.

    Cancelling it stops the run and leaves no result.
    """
    began = trio.current_time()
    told: dict[str, Any] = {}
    try:
        outcome = await _outcome(task, work, told)
    except PiError as error:
        outcome = Outcome(None, str(error), status_of(error))
    except Exception as error:  # an extension's, or ours: the others go on, and it is told in the result
        outcome = Outcome(None, f"{type(error).__name__}: {error}", FAILED)
    return {
        "id": task.id,
        "digest": task.digest,
        "status": outcome.status,
        **_said(outcome, as_value=work.schema is not None),
        "cwd": task.cwd,
        **told,
        "seconds": round(trio.current_time() - began, 3),
    }


def _said(outcome: Outcome, *, as_value: bool) -> dict[str, Any]:
    answer = {"answer": outcome.text.removesuffix("\n")}
    if outcome.problem is not None:
        return {"error": outcome.problem, **answer}
    return {"value": outcome.value} if as_value else answer


async def _outcome(task: Task, work: Work, told: dict[str, Any]) -> Outcome:
    schema = None if work.schema is None else AnswerSchema(work.schema)
    async with open_runtime(_config(task, work.config)) as runtime:
        snapshot = await runtime.new_session()
        session, harness = snapshot.session, runtime.harness(snapshot.session.id)
        told |= {"session": session.id, "path": session.path, "model": snapshot.model.reference}
        try:
            conversation = Conversation(runtime, session.id, _ignore)
            return await conversation.hold([Prompt(task.prompt)], schema=schema, timeout=work.timeout)
        finally:
            told["cost"] = harness.spending.cost


def _config(task: Task, config: RuntimeConfig) -> RuntimeConfig:
    """What the command line says, in the task's folder and with its model."""
    cwd = Path(task.cwd)
    try:
        cwd.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"{cwd} cannot be made: {error.strerror}", cwd) from error
    return evolve(config, cwd=cwd, model=task.model or config.model).at(cwd)


async def _ignore(_events: Sequence[AgentEvent]) -> None:
    """Nobody watches."""
