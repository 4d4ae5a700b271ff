"""Where the lines of a session are kept: in memory, or in an append-only JSONL file.

A line once written is never changed. Each append is one `os.write` on a descriptor that is
kept, and it is there as a whole or not at all: after a short write the file is cut back to its
previous length, and after a torn tail (left by a crash) the next write starts with a line end.
A line that could not be written may be kept: then it goes first at the next write.
"""

from __future__ import annotations

import io
import os
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol, TypeAlias

from pi_trio.errors import InternalError, SessionError, StorageError
from pi_trio.private_files import make_private_folder
from pi_trio.session.files import lock, open_new, sync_directory

__all__ = ["Claim", "JsonlStorage", "MemoryStorage", "SessionStorage", "StagedStorage", "Write"]

Write: TypeAlias = Callable[[int, bytes], int]
"""Writes to a descriptor and tells how many bytes went out, as `os.write` does."""

Claim: TypeAlias = Callable[[], AbstractContextManager[None]]
"""What a file is made within. Raises `StorageError` if it must not be made."""


class SessionStorage(Protocol):
    """The entries' lines, without line ends and without the header, numbered from 0."""

    def append(self, line: bytes) -> None:
        """Add a line, after those that were kept. Raises `StorageError`, and then it was not added."""

    def keep(self, line: bytes) -> None:
        """Add a line that could not be written: it is there, and goes first at the next write."""

    def flush(self) -> None:
        """Write what was kept. Raises `StorageError` if that still does not work."""

    @property
    def unsaved(self) -> int:
        """How many lines are kept and not written."""

    @property
    def is_writable(self) -> bool:
        """Whether anything can be added."""

    @property
    def was_overtaken(self) -> bool:
        """Whether another program has added something that `look` has not given yet, as far as is known."""

    def look(self) -> list[tuple[int, int, bytes]]:
        """Lines that another program has added since the last look, each with its place and length.

        They are lines of this storage only when they were adopted.
        """

    def adopt(self, place: int, length: int) -> None:
        """Number a line that `look` gave."""

    def line(self, index: int) -> bytes:
        """A line. Raises `StorageError` if the disk cannot give it."""

    def sync(self) -> None:
        """Wait until everything is on the disk; may be called in a thread. Raises `StorageError`."""

    def close(self) -> None:
        """Let go of the file. What was appended stays."""


class MemoryStorage:
    """Lines in a list, which no disk can refuse."""

    def __init__(self, lines: Iterable[bytes] = ()) -> None:
        self.lines: list[bytes] = list(lines)

    @property
    def unsaved(self) -> int:
        return 0

    def append(self, line: bytes) -> None:
        self.lines.append(line)

    def keep(self, line: bytes) -> None:
        self.lines.append(line)

    def flush(self) -> None:
        """Nothing is ever kept."""

    @property
    def is_writable(self) -> bool:
        return True

    @property
    def was_overtaken(self) -> bool:
        return False

    def look(self) -> list[tuple[int, int, bytes]]:
        return []

    def adopt(self, place: int, length: int) -> None:
        raise InternalError("lines in memory are nobody else's")

    def line(self, index: int) -> bytes:
        return self.lines[index]

    def sync(self) -> None:
        """Nothing to wait for."""

    def close(self) -> None:
        """Nothing to let go of."""


class StagedStorage(MemoryStorage):
    """Lines whose file is still to be made; `make` makes it.

    `older` is the storage over a file in an older version, which the new file replaces.
    """

    def __init__(
        self,
        lines: Iterable[bytes],
        make: Callable[[list[bytes]], JsonlStorage],
        *,
        older: JsonlStorage | None = None,
    ) -> None:
        super().__init__(lines)
        self.older = older
        self._make = make
        self._unsaved = 0

    @property
    def is_due(self) -> bool:
        """Whether the file is to be made with whatever comes next."""
        return self.older is not None or self._unsaved > 0

    @property
    def unsaved(self) -> int:
        return self._unsaved

    def keep(self, line: bytes) -> None:
        super().keep(line)
        self._unsaved += 1

    def made(self, *more: bytes) -> JsonlStorage:
        """The storage over the new file, of the lines so far and those. Raises `StorageError`."""
        return self._make([*self.lines, *more])

    @property
    def is_writable(self) -> bool:
        return self.older is None or self.older.is_writable

    def close(self) -> None:
        if self.older is not None:
            self.older.close()


class JsonlStorage:
    """Lines of a file. Only one storage at a time, in any process, may write to it.

    `offsets` and `lengths` (in bytes) say where the entries are; `end` up to where the file was
    read; `torn` that the last line has no line end; `refusal` why nothing
    can be written, if so.
    """

    def __init__(
        self,
        path: Path,
        descriptor: int,
        offsets: array[int],
        lengths: array[int],
        *,
        end: int = 0,
        torn: bool = False,
        refusal: str | None = None,
        write: Write = os.write,
    ) -> None:
        self.path = path
        self._descriptor = descriptor
        self._offsets = offsets
        self._lengths = lengths
        self._torn = torn
        self._refusal = refusal
        self._write = write
        self._is_new = False
        self._kept: list[bytes] = []
        self._end = end
        self._foreign: list[tuple[int, int]] = []  # where other programs have written meanwhile

    @classmethod
    def create(
        cls, path: Path, header: bytes, lines: Iterable[bytes], *, write: Write = os.write
    ) -> JsonlStorage:
        """Make the file with these lines, all at once, readable by its owner alone.

        An empty file that is there already is used. Raises `SessionError` for any other, and
        `StorageError` if the disk refuses; then no file is left.
        """
        make_private_folder(path.parent)
        descriptor, made = open_new(path)
        storage = cls(path, descriptor, array("q"), array("q"), write=write)
        try:
            lock(descriptor, path)
            if os.fstat(descriptor).st_size:
                raise SessionError(f"{path} exists already", path)
            storage._put_all([header, *lines])
        except BaseException:
            storage.close()
            if made:
                path.unlink(missing_ok=True)
            raise
        storage._is_new = made
        return storage

    def append(self, line: bytes) -> None:
        self.flush()
        self._append(line)

    def keep(self, line: bytes) -> None:
        self._kept.append(line)

    def flush(self) -> None:
        while self._kept:
            self._append(self._kept[0])
            del self._kept[0]

    @property
    def unsaved(self) -> int:
        return len(self._kept)

    @property
    def is_writable(self) -> bool:
        return self._refusal is None

    @property
    def was_overtaken(self) -> bool:
        return bool(self._foreign) and not self._kept

    def look(self) -> list[tuple[int, int, bytes]]:
        if self._kept:  # those have their numbers already, and come first
            return []
        self._foreign.append((self._end, self._whole_lines_end()))
        self._end = max(self._end, self._foreign[-1][1])
        found = [each for start, end in self._foreign for each in self._lines_between(start, end)]
        self._foreign.clear()
        return found

    def adopt(self, place: int, length: int) -> None:
        self._offsets.append(place)
        self._lengths.append(length)

    def line(self, index: int) -> bytes:
        if index >= len(self._offsets):
            return self._kept[index - len(self._offsets)]
        return self._read(self._lengths[index], self._offsets[index])

    def sync(self) -> None:
        try:
            os.fsync(self._descriptor)
            if self._is_new:
                sync_directory(self.path.parent)
                self._is_new = False
        except OSError as error:
            raise StorageError(f"cannot save {self.path}: {error.strerror}", self.path) from error

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _append(self, line: bytes) -> None:
        end = self._put(b"\n" * self._torn + line + b"\n")
        self._torn = False
        self.adopt(end - len(line) - 1, len(line))

    def _read(self, length: int, offset: int) -> bytes:
        try:
            return os.pread(self._descriptor, length, offset)
        except OSError as error:
            raise StorageError(f"cannot read {self.path}: {error.strerror}", self.path) from error

    def _whole_lines_end(self) -> int:
        """Where the last whole line after `_end` ends. A writer finds whatever else is there torn."""
        grown = self._read(os.fstat(self._descriptor).st_size - self._end, self._end)
        return self._end + grown.rfind(b"\n") + 1

    def _lines_between(self, start: int, end: int) -> Iterator[tuple[int, int, bytes]]:
        for line in io.BytesIO(self._read(end - start, start)):
            yield start, len(line), line
            start += len(line)

    def _put_all(self, lines: list[bytes]) -> None:
        self._put(b"\n".join(lines) + b"\n")
        offset = len(lines[0]) + 1
        for line in lines[1:]:
            self.adopt(offset, len(line))
            offset += len(line) + 1

    def _put(self, record: bytes) -> int:
        """Write all of `record`, or nothing. Gives the place of its end in the file."""
        self.check_writable()
        try:
            written = self._write(self._descriptor, record)
        except OSError as error:
            raise StorageError(f"cannot write {self.path}: {error.strerror}", self.path) from error
        # Asked for, not counted: a program that does not lock may have appended since.
        end = os.lseek(self._descriptor, 0, os.SEEK_CUR)
        if written < len(record):
            self._cut_back(end - written, end)
            raise StorageError(f"cannot write {self.path}: the disk is full", self.path)
        if end - written > self._end:
            self._foreign.append((self._end, end - written))
        self._end = end
        return end

    def check_writable(self) -> None:
        """Raises `StorageError` if nothing can be written to this file."""
        if self._descriptor < 0:
            raise StorageError(f"{self.path} is closed", self.path)
        if self._refusal is not None:
            raise StorageError(f"cannot write {self.path}: {self._refusal}", self.path)
        if os.fstat(self._descriptor).st_nlink == 0:
            raise StorageError(f"cannot write {self.path}: the file was removed", self.path)

    def _cut_back(self, start: int, end: int) -> None:
        try:
            os.ftruncate(self._descriptor, start)
        except OSError:  # then the half line stays, and the next one must not run into it
            self._torn = True
            self._end = end
