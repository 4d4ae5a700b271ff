"""The results of a batch: a file that only grows, by one line for each task, exactly once."""

from __future__ import annotations

import fcntl
import os
import stat
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pi_trio import codec
from pi_trio.cli.batch.tasks import Task
from pi_trio.errors import StorageError, UsageError

__all__ = ["Results"]


class Results:
    """The file at `path`, made if it is not there, and locked. `statuses` are those of the tasks done.

    A last line that was cut off by a crash is taken away: its task was not done. Raises
    `UsageError` if somebody else writes the file, or if it has results of other tasks.
    """

    def __init__(self, path: Path, tasks: Iterable[Task]) -> None:
        self.path = path
        self.statuses: dict[str, int] = {}
        self._adding = threading.Lock()
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise UsageError(f"{path} cannot be opened: {error.strerror}") from error
        try:
            if not stat.S_ISREG(os.fstat(self._descriptor).st_mode):  # a device could be read for ever
                raise UsageError(f"{path} cannot be opened: it is not a regular file")
            self._lock()
            self._read({task.id: task.digest for task in tasks})
        except UsageError:
            os.close(self._descriptor)
            raise

    def add(self, result: Mapping[str, Any]) -> None:
        """Keep a result; it is on the disk when this returns. For any thread.

        Raises `StorageError`, and then nothing was added.
        """
        line = codec.dumps(result) + b"\n"
        with self._adding:
            end = os.fstat(self._descriptor).st_size
            try:
                written = os.write(self._descriptor, line)
                if written == len(line):
                    os.fsync(self._descriptor)
                    self.statuses[result["id"]] = result["status"]
                    return
                problem = "no space is left"
            except OSError as error:
                problem = error.strerror or str(error)
            os.ftruncate(self._descriptor, end)
        raise StorageError(f"{self.path} cannot be written: {problem}", self.path)

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._descriptor)

    def _lock(self) -> None:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"another batch is writing {self.path}") from None

    def _read(self, digests: Mapping[str, str]) -> None:
        data = self.path.read_bytes()
        whole = data.rfind(b"\n") + 1
        for number, line in enumerate(data[:whole].split(b"\n")[:-1], 1):
            task_id, digest, status = _parts(line, f"{self.path}:{number}")
            if digests.get(task_id) != digest:
                raise UsageError(
                    f"{self.path}:{number} is of a task {task_id!r} that is another now, or gone; "
                    "name another file with --results"
                )
            self.statuses[task_id] = status
        if whole < len(data):
            os.ftruncate(self._descriptor, whole)


def _parts(line: bytes, place: str) -> tuple[str, str, int]:
    try:
        result = codec.loads(line)
        return str(result["id"]), str(result["digest"]), int(result["status"])
    except (ValueError, TypeError, KeyError):
        raise UsageError(f"{place} is no result of a batch; name another file with --results") from None
