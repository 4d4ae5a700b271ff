"""auth.json: pi's file of credentials, changed under pi's lock and readable by its owner only."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pi_trio.errors import ConfigError, StorageError
from pi_trio.resources.jsonc import load_jsonc

__all__ = ["read_entries", "remove_entry", "store_entry"]

_STALE = 30.0  # seconds after which the holder of a lock is taken for dead, as pi does
_PATIENCE = 10.0
_POLL = 0.05


def read_entries(path: Path) -> dict[str, Any]:
    """The credentials by provider; none if there is no file. Raises `ConfigError` for a broken one."""
    try:
        entries = load_jsonc(path)
    except FileNotFoundError:
        return {}
    if not isinstance(entries, dict):
        raise ConfigError(f"{path}: must be a JSON object of credentials by provider")
    return entries


def store_entry(path: Path, provider: str, entry: Mapping[str, Any]) -> None:
    """Put a credential in the place of the provider's, if it has one. Blocks while the file is locked.

    Raises `ConfigError` for a file that cannot be read, which is left as it is, and
    `StorageError` if it cannot be written or stays locked.
    """
    with _changing(path) as entries:
        entries[provider] = dict(entry)


def remove_entry(path: Path, provider: str) -> bool:
    """Take the provider's credential out; whether there was one. Blocks and raises as `store_entry`."""
    if provider not in read_entries(path):
        return False
    with _changing(path) as entries:
        return entries.pop(provider, None) is not None


@contextmanager
def _changing(path: Path) -> Iterator[dict[str, Any]]:
    """The entries under the lock; what is changed in them is written at the end."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        target = path.resolve()
        with _locked(target):
            entries = read_entries(target)
            yield entries
            _replace(target, (json.dumps(entries, indent=2, ensure_ascii=False) + "\n").encode())
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror}", path) from error


def _replace(path: Path, data: bytes) -> None:
    """Write all of the file or nothing; nobody but its owner ever reads it."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # made with mode 0600
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock that pi takes too: a folder beside the file."""
    lock = path.with_name(f"{path.name}.lock")
    deadline = time.monotonic() + _PATIENCE
    while not _acquired(lock):
        if time.monotonic() > deadline:
            raise StorageError(f"{path} is being changed by another program.", path)
        time.sleep(_POLL)
    try:
        yield
    finally:
        lock.rmdir()


def _acquired(lock: Path) -> bool:
    try:
        lock.mkdir()
    except FileExistsError:
        _break_if_stale(lock)
        return False
    return True


def _break_if_stale(lock: Path) -> None:
    try:
        if time.time() - lock.stat().st_mtime > _STALE:
            lock.rmdir()
    except FileNotFoundError:
        pass  # released meanwhile
