"""Which files and variables are known to keep secrets, by their names."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import PurePath

__all__ = ["is_secret", "is_secret_variable", "leave_secrets_out"]

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
_HARMLESS = (".env.example", ".env.sample", ".env.template", ".env.dist")
"""Templates, made to be shown."""


def is_secret(path: PurePath) -> bool:
    """Whether this file, or a folder that it is in, is known to keep secrets."""
    name = path.name.lower()
    kept = any(fnmatchcase(name, each) for each in _FILES) and name not in _HARMLESS
    return kept or not {part.lower() for part in path.parts}.isdisjoint(_FOLDERS)


def is_secret_variable(name: str) -> bool:
    """Whether a variable of this name holds the key of a model provider, or our own."""
    return _VARIABLES.search(name) is not None


def leave_secrets_out() -> list[str]:
    """Arguments for ripgrep. The last glob that fits a file decides, so these come after all others."""
    # A glob that lets something in would make ripgrep leave all else out: so no exceptions here.
    return [f"--iglob=!{each}" for each in (*_FOLDERS, *_FILES)]
