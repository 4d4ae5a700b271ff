"""Which files and variables are known to keep secrets, by their names."""

from __future__ import annotations

import re
from collections.abc import Collection
from fnmatch import fnmatchcase
from pathlib import Path, PurePath

__all__ = ["could_be_secret", "is_secret", "is_secret_variable", "leave_secrets_out", "secret_folders"]

_VARIABLES = re.compile(r"(_API_KEY|_AUTH_TOKEN|_OAUTH_TOKEN|_BEARER_TOKEN\w*)$|^PI_TRIO_TOKEN$")

_FOLDERS = (".ssh", ".gnupg", ".aws")
_FILES = (
    ".env",
    ".env.*",
    ".netrc",
    ".pgpass",
    ".pypirc",
    ".git-credentials",
    "auth.json",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
)
_OF_PROCESSES = re.compile(r"/proc/(.*/)?(environ|mem)")
"""The environments and the memory of processes, our own among them."""

_HARMLESS = (".env.example", ".env.sample", ".env.template", ".env.dist")
"""Templates, made to be shown."""


def is_secret(path: PurePath) -> bool:
    """Whether this file, or a folder that it is in, is known to keep secrets."""
    name = path.name.lower()
    kept = any(fnmatchcase(name, each) for each in _FILES) and name not in _HARMLESS
    within = not {part.lower() for part in path.parts}.isdisjoint(_FOLDERS)
    return kept or within or _OF_PROCESSES.fullmatch(str(path)) is not None


def could_be_secret(pattern: str, names: Collection[str] = ()) -> bool:
    """Whether a path with `*` in it, each standing for anything, may be that of a secret file.

    `names` are those of further secret files. A name of which next to nothing is written
    could be any, and does not count.
    """
    if is_secret(PurePath(pattern)):
        return True
    *folders, name = pattern.split("/")
    files = [each.replace("*", "local") for each in _FILES]
    return _fits(name, [*files, *_FOLDERS, *names]) or any(_fits(each, _FOLDERS) for each in folders)


def _fits(pattern: str, names: Collection[str]) -> bool:
    is_written = len(pattern) - sum(map(pattern.count, "*?[]")) >= 2
    return is_written and any(fnmatchcase(each, pattern.lower()) for each in names)


def secret_folders(home: Path) -> list[Path]:
    """Where the secrets of a person are, as a rule."""
    return [home, *(home / each for each in _FOLDERS)]


def is_secret_variable(name: str) -> bool:
    """Whether a variable of this name holds the key of a model provider, or our own."""
    return _VARIABLES.search(name) is not None


def leave_secrets_out() -> list[str]:
    """Arguments for ripgrep. The last glob that fits a file decides, so these come after all others."""
    # A glob that lets something in would make ripgrep leave all else out: so no exceptions here.
    return [f"--iglob=!{each}" for each in (*_FOLDERS, *_FILES)]
