"""Files of the agent directory that the program writes: whole or not at all, for their owner only."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pi_trio.errors import StorageError

__all__ = ["locked", "make_private_folder", "write_new", "write_private"]

_STALE = 30.0  # seconds after which the holder of a lock is taken for dead, as pi does
_PATIENCE = 10.0
_POLL = 0.02


def make_private_folder(path: Path) -> None:
    """Make a folder, and those above it, with mode 0700. Raises `StorageError`."""
    try:
        for folder in (*reversed(path.parents), path):
            if not folder.is_dir():
                folder.mkdir(0o700, exist_ok=True)
    except OSError as error:
        raise StorageError(f"{path} cannot be made: {error.strerror}", path) from error


def write_private(path: Path, data: bytes) -> None:
    """Make `data` the whole content of a file of mode 0600. A link stays, its target is replaced.

    Raises `StorageError`, and then the file is as it was.
    """
    make_private_folder(path.parent)
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        _write(temporary, data)
        temporary.replace(target)
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror}", path) from error
    finally:
        temporary.unlink(missing_ok=True)


def write_new(path: Path, data: bytes) -> bool:
    """Make a file of mode 0600, unless there is something of that name; says whether it was made.

    Raises `StorageError`, and then nothing was made.
    """
    make_private_folder(path.parent)
    temporary = path.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        _write(temporary, data)
        path.hardlink_to(temporary)  # unlike a rename, this never replaces
    except FileExistsError:
        return False
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror}", path) from error
    finally:
        temporary.unlink(missing_ok=True)
    return True


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep others that change `path`, pi among them, waiting for the block: a folder beside the file.

    Blocks while another holds it. Raises `StorageError` if that takes too long.
    """
    make_private_folder(path.parent)
    target = Path(os.path.realpath(path))
    lock = target.with_name(f"{target.name}.lock")
    deadline = time.monotonic() + _PATIENCE
    while not _acquired(lock):
        if time.monotonic() > deadline:
            raise StorageError(f"{path} is being changed by another program", path)
        time.sleep(_POLL)
    try:
        yield
    finally:
        lock.rmdir()


def _acquired(lock: Path) -> bool:
    try:
        lock.mkdir(0o700)
    except FileExistsError:
        with suppress(FileNotFoundError):  # it was let go meanwhile
            if time.time() - lock.stat().st_mtime > _STALE:
                lock.rmdir()
        return False
    except OSError as error:
        raise StorageError(f"{lock} cannot be made: {error.strerror}", lock) from error
    return True


def _write(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(descriptor)
