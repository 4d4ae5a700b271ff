"""The tasks of a batch: one JSON object a line, in a file or on standard input."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

from pi_trio import codec
from pi_trio.errors import UsageError
from pi_trio.resources.paths import working_directory
from pi_trio.written_path import written_path

__all__ = ["Task", "piped_tasks", "read_tasks"]

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_FIELDS = {"id": str, "prompt": str, "cwd": str, "model": str}


@frozen(kw_only=True)
class Task:
    """One prompt, in a session and a working directory (absolute) of its own.

    `digest` tells whether a task of this `id` is still the same.
    """

    id: str
    prompt: str
    cwd: str
    model: str | None
    digest: str


def read_tasks(path: Path, work_dir: Path) -> list[Task]:
    """The tasks of a file. One without an id has the number of its line, one without a directory
    has a folder of its id in `work_dir`.

    Raises `UsageError`, which names the line, for anything that is not as it should be.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    return _tasks(data, str(path), path.parent, work_dir)


def piped_tasks(work_dir: Path) -> list[Task]:
    """The tasks on standard input, to its end; their directories start in the working directory.

    Raises like `read_tasks`.
    """
    try:
        with open(0, "rb", closefd=False) as standard_input:
            data = standard_input.read()
    except OSError as error:
        raise UsageError(f"standard input cannot be read: {error.strerror}") from error
    return _tasks(data, "standard input", working_directory(), work_dir)


def _tasks(data: bytes, source: str, folder: Path, work_dir: Path) -> list[Task]:
    tasks: dict[str, Task] = {}
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.strip():
            try:
                task = _task(line, number, folder, work_dir)
                if task.id in tasks:
                    raise UsageError(f"another task has the id {task.id!r}")
            except UsageError as error:
                raise UsageError(f"{source}:{number}: {error}") from None
            tasks[task.id] = task
    if not tasks:
        raise UsageError(f"there is no task in {source}")
    return list(tasks.values())


def _task(line: bytes, number: int, folder: Path, work_dir: Path) -> Task:
    fields = _fields(line)
    task_id = fields.get("id", str(number))
    if not _ID.fullmatch(task_id):
        raise UsageError(f"the id {task_id!r} may have letters, digits, . _ and - only")
    if not fields.get("prompt", "").strip():
        raise UsageError("the task has no prompt")
    cwd = folder / written_path(fields["cwd"]) if "cwd" in fields else work_dir / task_id
    return Task(
        id=task_id,
        prompt=fields["prompt"],
        cwd=str(cwd.absolute()),
        model=fields.get("model"),
        digest=hashlib.sha256(codec.dumps(sorted(fields.items()))).hexdigest()[:16],
    )


def _fields(line: bytes) -> Mapping[str, Any]:
    try:
        value = codec.loads(line)
    except ValueError as error:
        raise UsageError(f"the line is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise UsageError("a task is a JSON object")
    for name, each in value.items():
        if name not in _FIELDS:
            raise UsageError(f"{name!r} is no field of a task; there are {', '.join(_FIELDS)}")
        if not isinstance(each, str):
            raise UsageError(f"{name} must be a text")
    return value
