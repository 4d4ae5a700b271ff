"""Who works off the tasks of a batch: this process, or the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

import trio

from pi_trio.cli.batch.tasks import Task
from pi_trio.cli.batch.work import Work, work_off, work_off_here
from pi_trio.cli.status import FAILED
from pi_trio.errors import UsageError
from pi_trio.nursery import plain_nursery

if TYPE_CHECKING:
    from distributed import Client, Future

__all__ = ["Deliver", "run_here", "run_on_cluster"]

Deliver: TypeAlias = Callable[[Mapping[str, Any]], Awaitable[None]]
"""Is given each result as soon as there is one."""

_CONNECT_SECONDS = 10
_LOOK_EVERY = 0.2
"""Seconds after which a batch on a cluster looks whether it is to stop."""


async def run_here(tasks: Iterable[Task], work: Work, jobs: int, deliver: Deliver) -> None:
    """Work off the tasks in this process, `jobs` at a time."""
    waiting = iter(tasks)

    async def work_on() -> None:
        for task in waiting:  # shared by all of them
            result = await work_off(task, work)
            with trio.CancelScope(shield=True):  # what was paid for is kept
                await deliver(result)

    async with plain_nursery() as nursery:
        for _ in range(jobs):
            nursery.start_soon(work_on)


async def run_on_cluster(
    tasks: Iterable[Task], work: Work, jobs: int | None, deliver: Deliver, *, scheduler: str
) -> None:
    """Spread the tasks over the workers of a cluster: `jobs` at a time, or as many as they take.

    A task whose worker dies runs again on another. Raises `UsageError` if there is no such cluster.
    Cancelling it withdraws what no worker has begun.
    """
    await trio.to_thread.run_sync(_on_cluster, tasks, work, jobs, deliver, scheduler)


def _on_cluster(
    tasks: Iterable[Task], work: Work, jobs: int | None, deliver: Deliver, scheduler: str
) -> None:
    """In a thread of its own, since the client of a cluster blocks."""
    waiting = iter(tasks)
    running: dict[Future[Any], Task] = {}
    with _client(scheduler) as client:
        try:
            while True:
                trio.from_thread.check_cancelled()
                for task in islice(waiting, None if jobs is None else jobs - len(running)):
                    running[client.submit(work_off_here, task, work, pure=False)] = task
                if not running:
                    return
                for future in _finished(running):
                    trio.from_thread.run(deliver, _result(future, running.pop(future)))
        finally:
            client.cancel(list(running))


def _client(address: str) -> Client:
    try:
        from distributed import Client
    except ImportError:
        raise UsageError("--engine dask needs Dask: pip install 'pi-trio[cluster]'") from None
    try:
        return Client(address, timeout=_CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise UsageError(f"there is no scheduler at {address}: {error}") from error


def _finished(running: Mapping[Future[Any], Task]) -> list[Future[Any]]:
    from distributed import wait

    try:
        wait(list(running), timeout=_LOOK_EVERY, return_when="FIRST_COMPLETED")
    except TimeoutError:
        return []
    return [future for future in running if future.done()]


def _result(future: Future[Any], task: Task) -> Mapping[str, Any]:
    """What a worker gave, or why none of them gave anything."""
    error = future.exception()
    if error is None:
        result: Mapping[str, Any] = future.result()
        return result
    problem = f"{type(error).__name__}: {error}"
    return {"id": task.id, "digest": task.digest, "status": FAILED, "error": problem, "cwd": task.cwd}
