"""The files of sessions: opened without waiting, locked by their one writer, private to their owner."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pi_trio.errors import SessionError, SessionFormatError, SessionLockedError, StorageError

__all__ = ["lock", "locked_folder", "open_existing", "open_new", "sync_directory"]


def _reason(error: OSError | ValueError) -> str:
    """Without the path, which `str()` of an `OSError` repeats."""
    return (isinstance(error, OSError) and error.strerror) or str(error)


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
        raise SessionError(f"cannot open {path}: {_reason(error)}", path) from error
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


def open_new(path: Path) -> tuple[int, bool]:
    """A descriptor of a file that is to be made, and whether it was not there before."""
    flags = os.O_RDWR | os.O_APPEND | _OPEN_FLAGS
    try:
        try:
            return os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o600), True
        except FileExistsError:
            return open_existing(path, writable=True)[0], False
    except OSError as error:
        raise StorageError(f"cannot make {path}: {error.strerror}", path) from error


@contextmanager
def locked_folder(path: Path) -> Iterator[None]:
    """Let no other program of ours into the block at the same time. Raises `OSError`.

    Where a file system can lock no folders (NFS) the block runs all the same.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def sync_directory(path: Path) -> None:
    """Wait until the names in a directory are on the disk. Raises `OSError`."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
