"""Trust: whether what a project's own folder brings may act on this machine.

Settings, extensions, skills, templates and prompts of a folder that was cloned from somewhere
are somebody else's words, and some of them run. They are used only after a yes, which is kept
in `trust.json` (pi's file: a path to true or false, the nearest one upwards counts). Beside it
`trust-digests.json` keeps what the yes was given to: when that has changed, it is asked again.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, TypeAlias

from attrs import frozen

from pi_trio.errors import ConfigError, StorageError
from pi_trio.jsonc import load_jsonc
from pi_trio.private_files import locked, write_private
from pi_trio.resources.paths import files_below, is_folder

__all__ = ["DefaultTrust", "Trust", "TrustStore", "agents_skill_folders", "decide_trust"]

DefaultTrust: TypeAlias = Literal["ask", "always", "never"]

_NAMES = (
    "settings.json",
    "mcp.json",
    "extensions",
    "skills",
    "prompts",
    "themes",
    "SYSTEM.md",
    "APPEND_SYSTEM.md",
)
"""What needs trust in a project's `.pi`."""


@frozen
class Trust:
    """A decision. `resources` are the paths it is about; `undecided`: a person was not asked yet.

    `changed`: there was a yes, to something else than what is there now.
    """

    trusted: bool
    resources: tuple[Path, ...] = ()
    undecided: bool = False
    changed: bool = False

    @property
    def finding(self) -> str | None:
        """What a person should know if nobody can be asked; None if there is nothing."""
        if not self.undecided:
            return None
        names = ", ".join(str(path) for path in self.resources)
        why = "changed since you trusted it" if self.changed else "is not trusted yet"
        return (
            f"{names}: not used, because this folder {why}; look at it, then use --approve, "
            "or /trust to remember a yes"
        )


def decide_trust(
    store: TrustStore, cwd: Path, home: Path, *, approve: bool | None, default: DefaultTrust
) -> Trust:
    """Whether the resources of `cwd` are used: the flag, nothing to trust, what is stored, the default.

    Raises `ConfigError` if the stored decisions cannot be read.
    """
    resources = tuple(_resources(cwd, home))
    if approve is not None:
        return Trust(approve, resources)
    if not resources:
        return Trust(False)
    stored = store.decision(cwd)
    if stored is False:
        return Trust(False, resources)
    if stored:
        changed = not store.is_unchanged(cwd, resources)
        return Trust(not changed, resources, undecided=changed, changed=changed)
    return Trust(default == "always", resources, undecided=default == "ask")


def agents_skill_folders(cwd: Path, home: Path) -> Iterator[Path]:
    """The project's `.agents/skills`: in `cwd` and above, up to the top of its repository.

    The home directory's own is the person's, not the project's.
    """
    for folder in (cwd, *cwd.parents):
        skills = folder / ".agents" / "skills"
        if is_folder(skills) and folder.resolve() != home.resolve():
            yield skills
        if os.path.lexists(folder / ".git"):
            break


def _resources(cwd: Path, home: Path) -> Iterator[Path]:
    for name in _NAMES:
        if os.path.lexists(path := cwd / ".pi" / name):
            yield path
    yield from agents_skill_folders(cwd, home)


class TrustStore:
    """The decisions of a person, in the agent directory."""

    def __init__(self, agent_dir: Path) -> None:
        self.path: Path = agent_dir / "trust.json"
        self._digests = agent_dir / "trust-digests.json"

    def decision(self, folder: Path) -> bool | None:
        """What was said of the folder or the nearest one above; None if nothing was."""
        decisions = _read(self.path)
        real = folder.resolve()
        for each in (real, *real.parents):
            said = decisions.get(str(each))
            if isinstance(said, bool):
                return said
        return None

    def is_unchanged(self, cwd: Path, resources: tuple[Path, ...]) -> bool:
        """Whether the resources are those that the yes was given to.

        A yes that pi wrote down has no digest: it holds, and for what is there now.
        """
        known = _read(self._digests).get(str(cwd.resolve()))
        if known is None:
            with suppress(StorageError):  # a directory that cannot be written: asked another time
                self._note_digest(cwd, resources)
            return True
        return bool(known == _digest(resources))

    def remember(self, folder: Path, trusted: bool, cwd: Path, resources: tuple[Path, ...]) -> None:
        """Store a decision about `folder`, which is `cwd` or above it. Raises `StorageError`."""
        _update(self.path, str(folder.resolve()), trusted)
        if trusted:
            self._note_digest(cwd, resources)

    def _note_digest(self, cwd: Path, resources: tuple[Path, ...]) -> None:
        _update(self._digests, str(cwd.resolve()), _digest(resources))


def _read(path: Path) -> dict[str, Any]:
    try:
        value = load_jsonc(path)
    except FileNotFoundError:
        return {}
    if not isinstance(value, dict):
        raise ConfigError(f"{path}: the decisions must be a JSON object")
    return value


def _update(path: Path, key: str, value: object) -> None:
    with locked(path):
        data = {**_read(path), key: value}
        write_private(path, json.dumps(data, indent=2, ensure_ascii=False).encode() + b"\n")


def _digest(resources: tuple[Path, ...]) -> str:
    """A digest of the names and contents of all files in the resources, links followed."""
    whole = hashlib.sha256()
    for path in resources:
        for file in files_below(path):
            whole.update(os.fsencode(file) + b"\0" + _content(file))
    return whole.hexdigest()


def _content(file: Path) -> bytes:
    try:
        if not file.is_file():
            return b"?"
        with file.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").digest()
    except OSError:
        return b"?"
