"""Files of the agent directory that the program writes: whole or not at all, for their owner only."""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pi_trio.errors import StorageError

__all__ = ["locked", "make_private_folder", "write_new", "write_private"]


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
    """Keep other processes that change `path` waiting for the block. Raises `StorageError`."""
    make_private_folder(path.parent)
    lock = path.with_name(f".{path.name}.flock")
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise StorageError(f"{lock} cannot be written: {error.strerror}", lock) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _write(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(descriptor)
