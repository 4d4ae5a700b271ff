"""auth.json: pi's file of credentials, changed under pi's lock and readable by its owner only."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pi_trio.errors import ConfigError
from pi_trio.jsonc import load_jsonc
from pi_trio.private_files import locked, write_private

__all__ = ["copy_keys", "read_entries", "remove_entry", "store_entry"]


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


def copy_keys(source: Path, target: Path, *, dry_run: bool = False) -> Mapping[str, str]:
    """Store the API keys of another such file whose providers have no credential here.

    Logins stay where they are: two programs that renew one refresh token log each other out.
    Gives by provider, in words, what was done, or with `dry_run` would be; raises as `store_entry`.
    """
    theirs, ours = read_entries(source), read_entries(target)
    left = {provider: _why_left(provider, entry, ours) for provider, entry in theirs.items()}
    keys = {provider: theirs[provider] for provider, reason in left.items() if reason is None}
    if keys and not dry_run:
        with _changing(target) as entries:
            for provider, entry in keys.items():
                entries.setdefault(provider, entry)
    return {
        provider: reason or ("to be copied" if dry_run else "copied") for provider, reason in left.items()
    }


def _why_left(provider: str, entry: Any, ours: Mapping[str, Any]) -> str | None:
    if provider in ours:
        return "there already"
    kind = entry.get("type") if isinstance(entry, dict) else None
    if kind == "api_key":
        return None
    return "a login, which is left there; log in here anew" if kind == "oauth" else "left out: no API key"


@contextmanager
def _changing(path: Path) -> Iterator[dict[str, Any]]:
    """The entries under the lock; what is changed in them is written at the end."""
    with locked(path):
        entries = read_entries(path)
        yield entries
        write_private(path, (json.dumps(entries, indent=2, ensure_ascii=False) + "\n").encode())
