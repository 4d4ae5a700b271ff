"""`pi-trio batch`: works off many tasks, each in a session and a directory of its own."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Awaitable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import trio

from pi_trio.cli.answer_schema import AnswerSchema
from pi_trio.cli.arguments import add_run_arguments, positive
from pi_trio.cli.batch.engines import Deliver, run_here, run_on_cluster
from pi_trio.cli.batch.results import Results
from pi_trio.cli.batch.tasks import Task, piped_tasks, read_tasks
from pi_trio.cli.batch.work import Work
from pi_trio.cli.options import make_parser, runtime_config
from pi_trio.cli.signals import until_signal
from pi_trio.cli.status import FAILED, OK, ended_by
from pi_trio.cli.words import say, tell
from pi_trio.errors import PiError, UsageError
from pi_trio.llm.registry import Models
from pi_trio.resources.paths import absolute
from pi_trio.text import plural

__all__ = ["run"]

_DESCRIPTION = """\
Work off the tasks in a file, each in a session and a working directory of its own. Results are kept
as they come; the same command goes on where it was stopped."""

_JOBS = 4


class Engine(Protocol):
    """Works off tasks, delivering the result of each."""

    def __call__(self, tasks: Sequence[Task], /, *, deliver: Deliver) -> Awaitable[None]: ...


def run(argv: Sequence[str]) -> int:
    """Run the subcommand. Returns the exit status."""
    namespace = _parser().parse_args(argv)
    try:
        engine = _engine(namespace)
        tasks, path = _tasks(namespace)
        results = Results(path, tasks)
        try:
            return trio.run(until_signal, partial(_batch, tasks, results, engine))
        finally:
            results.close()
    except PiError as error:
        return ended_by(error)


def _parser() -> argparse.ArgumentParser:
    parser = make_parser("pi-trio batch", _DESCRIPTION)
    parser.add_argument(
        "tasks",
        metavar="TASKS",
        help="a file with one JSON object a line; - reads standard input, and needs --results",
    )
    batch = parser.add_argument_group("batch")
    batch.add_argument(
        "--results", metavar="FILE", help="add results to this file (default: TASKS with .results.jsonl)"
    )
    batch.add_argument(
        "--work-dir",
        metavar="DIR",
        help="where tasks without a cwd have theirs (default: TASKS, or for - the results, with .work)",
    )
    batch.add_argument(
        "--jobs", metavar="N", type=positive(int), help=f"how many tasks at a time (default: {_JOBS})"
    )
    batch.add_argument(
        "--engine", choices=("local", "dask"), default="local", help="this process, or a Dask cluster"
    )
    batch.add_argument("--scheduler", metavar="ADDRESS", help="the scheduler of the cluster")
    batch.add_argument("--output-schema", metavar="FILE", help="answers are JSON that matches this schema")
    batch.add_argument(
        "--timeout", metavar="SECONDS", type=positive(float), help="stop a task after this time"
    )
    batch.add_argument("--no-session", action="store_true", help="keep the sessions in memory only")
    batch.add_argument("--session-dir", metavar="DIR", help="keep the sessions in this one folder")
    add_run_arguments(parser)
    return parser


def _engine(namespace: argparse.Namespace) -> Engine:
    """Who works off the tasks, and how. Raises `PiError`s for options that do not fit."""
    if (namespace.engine == "dask") != (namespace.scheduler is not None):
        raise UsageError("--engine dask and --scheduler ADDRESS go together")
    schema = AnswerSchema.load(absolute(namespace.output_schema)) if namespace.output_schema else None
    config = runtime_config(namespace)
    for finding in (*config.findings, *map(str, Models(config.agent_dir).findings)):
        tell(finding)
    work = Work(
        config=config,
        schema=None if schema is None else schema.document,
        timeout=namespace.timeout,
    )
    if namespace.scheduler is None:
        return partial(run_here, work=work, jobs=namespace.jobs or _JOBS)
    return partial(run_on_cluster, work=work, jobs=namespace.jobs, scheduler=namespace.scheduler)


def _tasks(namespace: argparse.Namespace) -> tuple[list[Task], Path]:
    """The tasks, and the file of their results. Raises `UsageError`."""
    if namespace.tasks != "-":
        file = absolute(namespace.tasks)
        tasks = read_tasks(file, _beside(namespace.work_dir, file, ".work"))
        return tasks, _beside(namespace.results, file, ".results.jsonl")
    if not namespace.results:
        raise UsageError("tasks on standard input need --results FILE, from which a stopped batch goes on")
    results = absolute(namespace.results)
    return piped_tasks(_beside(namespace.work_dir, results, ".work")), results


def _beside(named: str | None, file: Path, suffix: str) -> Path:
    if named:
        return absolute(named)
    if not file.name:
        raise UsageError(f"{file} is a folder")
    return file.with_suffix(suffix)


async def _batch(tasks: Sequence[Task], results: Results, engine: Engine) -> int:
    bar, before = _Bar(len(tasks)), len(results.statuses)

    async def deliver(result: Mapping[str, Any]) -> None:
        await trio.to_thread.run_sync(results.add, result)
        bar.show(results.statuses)

    bar.show(results.statuses)
    try:
        await engine([task for task in tasks if task.id not in results.statuses], deliver=deliver)
    except PiError as error:
        bar.end()
        return ended_by(error)
    except trio.Cancelled:  # by a signal
        bar.end()
        tell(f"stopped: {len(results.statuses)} of {len(tasks)} are done, the same command goes on")
        raise
    finally:
        bar.end()
    failed = sum(status != OK for status in results.statuses.values())
    done = ", all done already" if before == len(tasks) else ""
    say(f"{plural(len(tasks), 'task')}{done}, {failed} of them failed: {results.path}")
    return FAILED if failed else OK


class _Bar:
    """How far it has come, on one line of a terminal's standard error."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._shown = sys.stderr is not None and sys.stderr.isatty()

    def show(self, statuses: Mapping[str, int]) -> None:
        """Draw it anew."""
        if self._shown:
            failed = sum(status != OK for status in statuses.values())
            told = f" {len(statuses)}/{self._count}" + (f", {failed} failed" if failed else "")
            width = max(10, min(shutil.get_terminal_size().columns - len(told) - 3, 60))
            full = width * len(statuses) // self._count
            self._write(f"\r[{'#' * full}{'.' * (width - full)}]{told}\x1b[K")

    def end(self) -> None:
        """What comes now stands below it."""
        if self._shown:
            self._shown = False
            self._write("\n")

    def _write(self, text: str) -> None:
        try:
            os.write(sys.stderr.fileno(), text.encode())
        except OSError:  # the terminal is gone, and nobody sees it
            self._shown = False
