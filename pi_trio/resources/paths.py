"""Where things live: the agent directory, the working directory, and paths that people write."""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from pi_trio.errors import ConfigError
from pi_trio.written_path import checked_path

__all__ = [
    "absolute",
    "files_below",
    "find_agent_dir",
    "find_pi_dir",
    "folder_to_be",
    "home_directory",
    "is_file",
    "is_folder",
    "working_directory",
]


def find_agent_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """`$PI_TRIO_DIR`, or `.pi-trio` in the home directory.

    Raises `ConfigError` without a home, and as `folder_to_be`.
    """
    named = environ.get("PI_TRIO_DIR")
    folder = absolute(named, environ) if named else home_directory(environ) / ".pi-trio"
    return folder_to_be(folder, "be the agent directory")


def folder_to_be(path: Path, what: str) -> Path:
    """The path of a folder that need not be there yet.

    Raises `ConfigError` if something there keeps it from being one: it then cannot do `what`.
    """
    problem = "it is no folder"
    try:
        if stat.S_ISDIR(path.stat().st_mode):
            return path
    except FileNotFoundError:
        if not path.is_symlink():
            return path
        problem = "it is a link to nothing"
    except OSError as error:
        problem = error.strerror or str(error)
    raise ConfigError(f"{path} cannot {what}: {problem}")


def find_pi_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """Where pi keeps its things: `$PI_CODING_AGENT_DIR`, or `.pi/agent` in the home directory."""
    named = environ.get("PI_CODING_AGENT_DIR")
    return absolute(named, environ) if named else home_directory(environ) / ".pi" / "agent"


def absolute(text: str, environ: Mapping[str, str] = os.environ) -> Path:
    """A path as a person wrote it: `~/` is the home, a relative one starts in the working directory.

    Raises `UsageError` for what cannot be one, and `ConfigError` where home or directory are needed and gone.
    """
    path = Path(checked_path(text))
    if path.parts[:1] == ("~",):
        path = home_directory(environ).joinpath(*path.parts[1:])
    return path if path.is_absolute() else working_directory() / path


def working_directory() -> Path:
    """The working directory. Raises `ConfigError` if it was deleted or cannot be found out."""
    try:
        return Path.cwd()
    except OSError as error:
        raise ConfigError(f"the working directory cannot be used: {error.strerror}") from error


def home_directory(environ: Mapping[str, str] = os.environ) -> Path:
    """The home of the environment, else of the password file. Raises `ConfigError` without one."""
    named = environ.get("HOME")
    if named and named.startswith("/"):
        return Path(named)
    try:
        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError as error:
        raise ConfigError("there is no home directory: set HOME or PI_TRIO_DIR") from error


def is_file(path: Path) -> bool:
    """Whether there is a file that can be seen; a folder that cannot be entered has none."""
    try:
        return path.is_file()
    except OSError:
        return False


def is_folder(path: Path) -> bool:
    """Whether there is a folder that can be seen."""
    try:
        return path.is_dir()
    except OSError:
        return False


def files_below(path: Path, above: frozenset[Path] = frozenset()) -> Iterator[Path]:
    """The files in a folder and all folders in it, in order, links followed; a file is itself.

    `above` are the folders that it was reached through: a ring of links has an end.
    """
    if not is_folder(path):
        yield path
        return
    real = path.resolve()
    try:
        inside = sorted(path.iterdir()) if real not in above else []
    except OSError:  # a folder that cannot be read shows nothing to anybody
        inside = []
    for each in inside:
        yield from files_below(each, above | {real})
