"""Where things live: the agent directory, its sessions, and the working directory.

Directories of the agent are private (0700), and so are its
files (0600): both hold conversations and credentials.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping
from pathlib import Path

from pi_trio.errors import ConfigError, StorageError

__all__ = [
    "absolute",
    "find_agent_dir",
    "make_private_dir",
    "private_opener",
    "project_session_dir",
    "working_directory",
]


def find_agent_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """`$PI_TRIO_DIR`, or `.pi-trio` in the home directory. Raises `ConfigError` without a home."""
    named = environ.get("PI_TRIO_DIR")
    return absolute(named, environ) if named else _home(environ) / ".pi-trio"


def project_session_dir(agent_dir: Path, cwd: Path) -> Path:
    """The folder of a project's sessions. The name is pi's: readable, not reversible."""
    name = str(cwd).removeprefix("/").translate(str.maketrans("/\\:", "---"))
    return agent_dir / "sessions" / f"--{name}--"


def absolute(text: str, environ: Mapping[str, str] = os.environ) -> Path:
    """A path as a person wrote it: `~/` is the home, a relative one starts in the working directory."""
    path = Path(text)
    if path.parts[:1] == ("~",):
        path = _home(environ).joinpath(*path.parts[1:])
    return path if path.is_absolute() else working_directory() / path


def working_directory() -> Path:
    """The working directory. Raises `ConfigError` if it was deleted or cannot be found out."""
    try:
        return Path.cwd()
    except OSError as error:
        raise ConfigError(f"the working directory cannot be used: {error.strerror}") from error


def make_private_dir(path: Path) -> None:
    """Make a directory and those above it, each 0700 when it is new. Raises `StorageError`."""
    try:
        for each in reversed([path, *path.parents]):
            each.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise StorageError(f"{path} cannot be made: {error.strerror}", path) from error


def private_opener(path: str, flags: int) -> int:
    """For `open(…, opener=private_opener)`: a new file is 0600."""
    return os.open(path, flags, 0o600)


def _home(environ: Mapping[str, str]) -> Path:
    """The home directory of the environment, else that of the password file."""
    named = environ.get("HOME")
    if named and named.startswith("/"):
        return Path(named)
    try:
        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError as error:
        raise ConfigError("there is no home directory: set HOME or PI_TRIO_DIR") from error
