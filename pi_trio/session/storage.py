"""Where the lines of a session are kept: in memory, or in an append-only JSONL file.

A line once written is never changed. Each append is one `os.write` on a descriptor that is
kept, and it is there as a whole or not at all: after a short write the file is cut back to its
previous length, and after a torn tail (left by a crash) the next write starts with a line end.
"""

from __future__ import annotations

import fcntl
import os
import stat
from array import array
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol, TypeAlias

from pi_trio.errors import SessionError, SessionFormatError, SessionLockedError, StorageError

__all__ = ["JsonlStorage", "MemoryStorage", "SessionStorage", "Write", "make_private_directory"]

Write: TypeAlias = Callable[[int, bytes], int]
"""Writes to a descriptor and tells how many bytes went out, as `os.write` does."""


class SessionStorage(Protocol):
    """The entries' lines, without line ends and without the header, numbered from 0."""

    def append(self, line: bytes) -> None:
        """Add a line. Raises `StorageError`, and then nothing was added."""

    def line(self, index: int) -> bytes:
        """A line. Raises `StorageError` if the disk cannot give it."""

    def sync(self) -> None:
        """Wait until everything is on the disk; may be called in a thread. Raises `StorageError`."""

    def close(self) -> None:
        """Let go of the file. What was appended stays."""


class MemoryStorage:
    """Lines in a list: a session without a file, or one whose file is not made yet."""

    def __init__(self, lines: Iterable[bytes] = ()) -> None:
        self.lines = list(lines)

    def append(self, line: bytes) -> None:
        self.lines.append(line)

    def line(self, index: int) -> bytes:
        return self.lines[index]

    def sync(self) -> None:
        """Nothing to wait for."""

    def close(self) -> None:
        """Nothing to let go of."""


class LegacyStorage(MemoryStorage):
    """The upgraded lines of a file in an older version, which can only be read."""

    def __init__(self, path: Path, lines: Iterable[bytes]) -> None:
        super().__init__(lines)
        self._path = path

    def append(self, line: bytes) -> None:
        raise SessionError(
            f"{self._path} is in an older version of the format and can only be read", self._path
        )


class JsonlStorage:
    """Lines of a file. Only one storage at a time, in any process, may write to it.

    `offsets` and `lengths` (in bytes) say where the entries are; `torn` that the last line has
    no line end; `refusal` why nothing can be written, if so.
    """

    def __init__(
        self,
        path: Path,
        descriptor: int,
        offsets: array[int],
        lengths: array[int],
        *,
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

    @classmethod
    def create(
        cls, path: Path, header: bytes, lines: Iterable[bytes], *, write: Write = os.write
    ) -> JsonlStorage:
        """Make the file with these lines, all at once, readable by its owner alone.

        An empty file that is there already is used. Raises `SessionError` for any other, and
        `StorageError` if the disk refuses; then no file is left.
        """
        make_private_directory(path.parent)
        descriptor, made = _open_new(path)
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
        record = b"\n" * self._torn + line + b"\n"
        end = self._put(record)
        self._torn = False
        self._offsets.append(end - len(line) - 1)
        self._lengths.append(len(line))

    def line(self, index: int) -> bytes:
        length, offset = self._lengths[index], self._offsets[index]
        try:
            return os.pread(self._descriptor, length, offset)
        except OSError as error:
            raise StorageError(f"cannot read {self.path}: {error.strerror}", self.path) from error

    def sync(self) -> None:
        try:
            os.fsync(self._descriptor)
            if self._is_new:
                _sync_directory(self.path.parent)
                self._is_new = False
        except OSError as error:
            raise StorageError(f"cannot save {self.path}: {error.strerror}", self.path) from error

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _put_all(self, lines: list[bytes]) -> None:
        self._put(b"\n".join(lines) + b"\n")
        offset = len(lines[0]) + 1
        for line in lines[1:]:
            self._offsets.append(offset)
            self._lengths.append(len(line))
            offset += len(line) + 1

    def _put(self, record: bytes) -> int:
        """Write all of `record`, or nothing. Gives the place of its end in the file."""
        self._check_writable()
        try:
            written = self._write(self._descriptor, record)
        except OSError as error:
            raise StorageError(f"cannot write {self.path}: {error.strerror}", self.path) from error
        # Asked for, not counted: a program that does not lock may have appended since.
        end = os.lseek(self._descriptor, 0, os.SEEK_CUR)
        if written < len(record):
            self._cut_back(end - written)
            raise StorageError(f"cannot write {self.path}: the disk is full", self.path)
        return end

    def _check_writable(self) -> None:
        if self._descriptor < 0:
            raise StorageError(f"{self.path} is closed", self.path)
        if self._refusal is not None:
            raise StorageError(f"cannot write {self.path}: {self._refusal}", self.path)
        if os.fstat(self._descriptor).st_nlink == 0:
            raise StorageError(f"cannot write {self.path}: the file was removed", self.path)

    def _cut_back(self, length: int) -> None:
        try:
            os.ftruncate(self._descriptor, length)
        except OSError:  # then the half line stays, and the next one must not run into it
            self._torn = True


# ------------------------------------------------------------------ files


def open_existing(path: Path, *, writable: bool) -> tuple[int, str | None]:
    """A descriptor of a regular file, locked if `writable`, and why it cannot be written, if so.

    Never waits: a FIFO or a device is refused like a directory. Raises `SessionError`s.
    """
    refusal = None if writable else "it was opened for reading"
    try:
        try:
            descriptor = os.open(path, (os.O_RDWR | os.O_APPEND if writable else os.O_RDONLY) | _OPEN_FLAGS)
        except PermissionError as error:
            refusal = error.strerror
            descriptor = os.open(path, os.O_RDONLY | _OPEN_FLAGS)
    except IsADirectoryError:
        raise SessionFormatError(f"{path} is a directory, not a session", path) from None
    except FileNotFoundError:
        raise SessionError(f"there is no session {path}", path) from None
    except (OSError, ValueError) as error:
        raise SessionError(f"cannot open {path}: {error}", path) from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise SessionFormatError(f"{path} is not a regular file, and not a session", path)
        if refusal is None:
            lock(descriptor, path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor, refusal


_OPEN_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC


def lock(descriptor: int, path: Path) -> None:
    """Be the only writer until the descriptor is closed. Raises `SessionLockedError`."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        there, ours = path.stat(), os.fstat(descriptor)
    except BlockingIOError:
        raise SessionLockedError(f"{path} is open for writing elsewhere", path) from None
    except OSError as error:
        raise SessionError(f"cannot lock {path}: {error.strerror}", path) from error
    if (there.st_dev, there.st_ino) != (ours.st_dev, ours.st_ino):
        raise SessionError(f"{path} was replaced while it was being opened", path)


def make_private_directory(path: Path) -> None:
    """Make a directory, and those above it, for its owner alone. Raises `StorageError`."""
    missing = [each for each in (path, *path.parents) if not each.exists()]
    try:
        for each in reversed(missing):
            each.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise StorageError(f"cannot make {path}: {error.strerror}", path) from error


def _open_new(path: Path) -> tuple[int, bool]:
    flags = os.O_RDWR | os.O_APPEND | _OPEN_FLAGS
    try:
        try:
            return os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o600), True
        except FileExistsError:
            return open_existing(path, writable=True)[0], False
    except OSError as error:
        raise StorageError(f"cannot make {path}: {error.strerror}", path) from error


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
