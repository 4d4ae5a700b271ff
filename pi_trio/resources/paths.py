"""Where things live: the agent directory, the working directory, and paths that people write."""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping
from pathlib import Path

from pi_trio.errors import ConfigError

__all__ = ["absolute", "find_agent_dir", "working_directory"]


def find_agent_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """`$PI_TRIO_DIR`, or `.pi-trio` in the home directory. Raises `ConfigError` without a home."""
    named = environ.get("PI_TRIO_DIR")
    return absolute(named, environ) if named else _home(environ) / ".pi-trio"


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


def _home(environ: Mapping[str, str]) -> Path:
    """The home directory of the environment, else that of the password file."""
    named = environ.get("HOME")
    if named and named.startswith("/"):
        return Path(named)
    try:
        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError as error:
        raise ConfigError("there is no home directory: set HOME or PI_TRIO_DIR") from error
