"""Writing an export to a file: private, whole or not at all, and never over something by accident."""

from __future__ import annotations

import os
from pathlib import Path

from pi_trio.errors import StorageError

__all__ = ["write_export"]


def write_export(path: Path, data: bytes, *, replace: bool = False) -> None:
    """Make the file, readable by its owner alone. A link in its place is replaced, not followed.

    Raises `StorageError` if it is there already, unless `replace` says so, or if the disk refuses.
    """
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
            if replace:
                unfinished.replace(path)
            else:
                os.link(unfinished, path)
        finally:
            unfinished.unlink(missing_ok=True)
    except FileExistsError:
        raise StorageError(f"{path} is there already", path) from None
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror}", path) from error
