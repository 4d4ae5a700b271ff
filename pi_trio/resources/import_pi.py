"""Bringing over what a person has in pi's own directory: copies, and nothing is ever replaced.

Sessions, skills, prompt templates, themes and API keys. Logins are left where they are: two
programs that renew one refresh token log each other out.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

from pi_trio.errors import ConfigError, SessionError
from pi_trio.resources.config import RuntimeConfig
from pi_trio.resources.jsonc import load_jsonc
from pi_trio.resources.paths import absolute, files_below, home_directory, is_file, is_folder
from pi_trio.resources.private_files import locked, write_new, write_private
from pi_trio.session.scan import read_header

__all__ = ["find_pi_dir", "import_pi"]

_FOLDERS = {"skill": "skills", "prompt template": "prompts", "theme": "themes"}


def find_pi_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """Where pi keeps its things: `$PI_CODING_AGENT_DIR`, or `.pi/agent` in the home directory."""
    named = environ.get("PI_CODING_AGENT_DIR")
    return absolute(named, environ) if named else home_directory(environ) / ".pi" / "agent"


def import_pi(source: Path, config: RuntimeConfig, *, dry_run: bool = False) -> list[str]:
    """Copy what is in `source` and not here yet. Gives lines that tell what was, or would be, done.

    Raises `ConfigError` if there is no such directory or it is our own, and `StorageError` if
    something could not be written; what was copied before that stays.
    """
    if not is_folder(source):
        raise ConfigError(f"{source} is not there: pi keeps its sessions and skills in it")
    if source.resolve() == config.agent_dir.resolve():
        raise ConfigError(f"{source} is the directory that is used already: there is nothing to import")
    lines: list[str] = []
    done: Counter[tuple[str, str]] = Counter()
    for item in _items(source, config):
        outcome = item.outcome if dry_run else item.copy()
        done[item.kind, outcome] += 1
        if dry_run or outcome not in (_COPIED, _PRESENT):
            lines.append(f"{item.kind} {item.source}: {outcome}")
    counts = [f"{kind}s {outcome}: {count}" for (kind, outcome), count in done.items()]
    keys = _import_keys(source / "auth.json", config.agent_dir / "auth.json", dry_run)
    return [*lines, *counts, *keys] or [f"There is nothing to import in {source}."]


# ------------------------------------------------------------------ files


_COPIED = "copied"
_PRESENT = "there already"


@frozen
class _Item:
    """A file or folder to copy."""

    kind: str
    source: Path
    target: Path

    @property
    def outcome(self) -> str:
        """What copying would do."""
        return _PRESENT if os.path.lexists(self.target) else "to be copied"

    def copy(self) -> str:
        """Copy it, unless there is something of the name; the outcome in words."""
        if os.path.lexists(self.target):
            return _PRESENT
        whole = is_file(self.source)
        place = self.target if whole else self.target.with_name(f".{self.target.name}.new")
        try:
            for file in filter(is_file, files_below(self.source)):  # no broken links, no pipes
                write_new(place / file.relative_to(self.source), file.read_bytes())
            if not whole and place.is_dir():
                place.rename(self.target)  # a folder is here as a whole or not at all
        except OSError as error:
            return f"left out: {error.filename or self.source} cannot be copied: {error.strerror}"
        return _COPIED


def _items(source: Path, config: RuntimeConfig) -> Iterator[_Item]:
    for kind, folder in _FOLDERS.items():
        for path in _visible(source / folder):
            yield _Item(kind, path, config.agent_dir / folder / path.name)
    for project in _visible(source / "sessions"):
        for path in _visible(project):
            if _is_session(path):
                yield _Item("session", path, _session_target(path, config))


def _session_target(path: Path, config: RuntimeConfig) -> Path:
    if config.session_dir is not None:
        return config.session_dir / path.name
    return config.agent_dir / "sessions" / path.parent.name / path.name


def _is_session(path: Path) -> bool:
    if path.suffix != ".jsonl" or not is_file(path):
        return False
    try:
        with path.open("rb") as file:
            read_header(file, path)
    except (OSError, SessionError):
        return False  # some other file; it stays where it is
    return True


def _visible(folder: Path) -> list[Path]:
    if not is_folder(folder):
        return []
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


# ------------------------------------------------------------------ keys


def _import_keys(source: Path, target: Path, dry_run: bool) -> list[str]:
    """Take over the API keys of providers that have no entry here. No key is ever told."""
    lines: list[str] = []
    keys: dict[str, Any] = {}
    known = _providers(target)
    for provider, entry in _providers(source).items():
        if not isinstance(entry, dict) or entry.get("type") != "api_key":
            lines.append(f"login for {provider}: left with pi; log in here anew")
        elif provider in known:
            lines.append(f"API key for {provider}: {_PRESENT}")
        else:
            keys[provider] = entry
            lines.append(f"API key for {provider}: {'to be copied' if dry_run else _COPIED}")
    if keys and not dry_run:
        with locked(target):
            merged = {**keys, **_providers(target)}
            write_private(target, json.dumps(merged, indent=2, ensure_ascii=False).encode() + b"\n")
    return lines


def _providers(path: Path) -> dict[str, Any]:
    try:
        value = load_jsonc(path)
    except FileNotFoundError:
        return {}
    if not isinstance(value, dict):
        raise ConfigError(f"{path}: the keys must be a JSON object")
    return value
