"""Getting rid of a file: into the desktop's trash, where a program for that is installed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from pi_trio.errors import StorageError

__all__ = ["discard"]

_PROGRAMS = (("trash",), ("trash-put",), ("gio", "trash"))


def discard(path: Path) -> bool:
    """Put the file into the trash, or delete it where there is none; whether it is in the trash.

    Raises `StorageError`; then the file is where it was.
    """
    program = next((each for each in _PROGRAMS if shutil.which(each[0])), None)
    try:
        if program is None:
            path.unlink()
            return False
        done = subprocess.run([*program, str(path)], capture_output=True, check=False, text=True)
    except OSError as error:
        raise StorageError(f"cannot delete {path}: {error.strerror}", path) from error
    if path.exists():
        raise StorageError(f"cannot delete {path}: {program[0]} says {done.stderr.strip()!r}", path)
    return True
