"""Bringing over what a person has in pi's own directory: copies, and nothing is ever replaced.

Sessions, skills, prompt templates, themes and API keys. Logins are left where they are: two
programs that renew one refresh token log each other out.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

from pi_trio.errors import ConfigError, SessionError, SessionExistsError
from pi_trio.llm.auth_file import copy_keys
from pi_trio.private_files import write_new
from pi_trio.resources.config import RuntimeConfig
from pi_trio.resources.paths import files_below, is_file, is_folder
from pi_trio.session.repository import SessionRepository
from pi_trio.session.scan import read_header

__all__ = ["import_pi"]

_FOLDERS = {"skill": "skills", "prompt template": "prompts", "theme": "themes"}


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
    for kind, path, outcome in (*_resources(source, config, dry_run), *_sessions(source, config, dry_run)):
        done[kind, outcome] += 1
        if dry_run or outcome not in (_COPIED, _PRESENT):
            lines.append(f"{kind} {path}: {outcome}")
    counts = [f"{kind}s {outcome}: {count}" for (kind, outcome), count in done.items()]
    keys = copy_keys(source / "auth.json", config.agent_dir / "auth.json", dry_run=dry_run)
    lines += counts + [f"key of {provider}: {outcome}" for provider, outcome in keys.items()]
    return lines or [f"There is nothing to import in {source}."]


_COPIED = "copied"
_PRESENT = "there already"
_TO_BE_COPIED = "to be copied"

_Outcome: TypeAlias = tuple[str, Path, str]
"""What kind of thing, where it was found, and what became of it."""


# ------------------------------------------------------------------ files


def _resources(source: Path, config: RuntimeConfig, dry_run: bool) -> Iterator[_Outcome]:
    for kind, folder in _FOLDERS.items():
        for path in _visible(source / folder):
            target = config.agent_dir / folder / path.name
            if os.path.lexists(target):
                yield kind, path, _PRESENT
            else:
                yield kind, path, _TO_BE_COPIED if dry_run else _copy(path, target)


def _copy(source: Path, target: Path) -> str:
    """Copy a file, or a folder: that is here as a whole or not at all. The outcome in words."""
    whole = is_file(source)
    place = target if whole else target.with_name(f".{target.name}.new")
    try:
        for file in filter(is_file, files_below(source)):  # no broken links, no pipes
            write_new(place / file.relative_to(source), file.read_bytes())
        if not whole and place.is_dir():
            place.rename(target)
    except OSError as error:
        return f"left out: {error.filename or source} cannot be copied: {error.strerror}"
    return _COPIED


def _sessions(source: Path, config: RuntimeConfig, dry_run: bool) -> Iterator[_Outcome]:
    repository = SessionRepository(config.agent_dir, config.cwd, config.session_dir)
    to_come: set[tuple[Path, str]] = set()  # what an import would find there that a dry run does not
    for path in (each for project in _visible(source / "sessions") for each in _visible(project)):
        if (session_id := _session_id(path)) is None:
            continue
        try:
            place = repository.import_file(path, dry_run=dry_run).parent, session_id
        except SessionExistsError:
            yield "session", path, _PRESENT
        except SessionError as error:
            yield "session", path, f"left out: {error}"
        else:
            to_be = _PRESENT if place in to_come else _TO_BE_COPIED
            to_come.add(place)
            yield "session", path, to_be if dry_run else _COPIED


def _session_id(path: Path) -> str | None:
    if path.suffix != ".jsonl" or not is_file(path):
        return None
    try:
        with path.open("rb") as file:
            return read_header(file, path).id
    except (OSError, SessionError):
        return None  # some other file; it stays where it is


def _visible(folder: Path) -> list[Path]:
    if not is_folder(folder):
        return []
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
