"""The session files of a working directory: finding, listing, making, opening, forking.

Files are where pi has them: `<agent_dir>/sessions/--home-u-p--/<time>_<id>.jsonl`. The name of
such a folder does not tell `/a-b` from `/a/b`; the header's `cwd` does, and is what counts.
With a session directory of one's own all files lie flat in it.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

from pi_trio.errors import SessionError, SessionFormatError
from pi_trio.session.branching import before, fork_lines, prompt_text
from pi_trio.session.entries import SessionHeader
from pi_trio.session.scan import read_header
from pi_trio.session.session import Session, new_header
from pi_trio.session.storage import Write
from pi_trio.session.summary import SessionSummary, summarize

__all__ = ["SessionRepository", "folder_name"]

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_LONGEST_NAME = 240
"""Bytes that a folder's name may have; most file systems take 255."""


class SessionRepository:
    """The sessions of `cwd`. Nothing is made on disk before a session's first input."""

    def __init__(
        self, agent_dir: Path, cwd: str | Path, session_dir: Path | None = None, *, write: Write = os.write
    ) -> None:
        self.cwd = str(Path(cwd).resolve())
        self._root = agent_dir / "sessions"
        self._flat = session_dir
        self._write = write

    def create(self) -> Session:
        """A new session."""
        return self._new(new_header(self.cwd))

    def in_memory(self) -> Session:
        """A new session that is never saved."""
        return Session.in_memory(self.cwd)

    def open(self, reference: str, *, writable: bool = True) -> Session:
        """The session of a path, or of an id or the beginning of one, first of this directory's.

        Raises `SessionError` if there is none or more than one, and what `Session.open` raises.
        """
        path = Path(reference).expanduser() if _is_path(reference) else self._find(reference)
        return Session.open(path, writable=writable, cwd=self.cwd, write=self._write)

    def latest(self) -> Path | None:
        """The file of this directory that was written last."""
        return next((path for path, _ in self._files()), None)

    def list(self) -> Sequence[SessionSummary]:
        """The sessions of this directory, the one with the latest message first."""
        summaries = [summarize(path, header) for path, header in self._files()]
        return sorted(summaries, key=lambda each: each.modified, reverse=True)

    def fork(self, session: Session, entry_id: str, position: Literal["before", "at"]) -> tuple[Session, str]:
        """A new session with the path up to (`at`) or `before` an entry, and the prompt that was there.

        The source is only read. Raises `UsageError` for an unknown entry.
        """
        entry = session.entry(entry_id)
        leaf = entry_id if position == "at" else before(session.tree, entry_id)
        source = str(session.path) if session.is_saved else None
        fork = self._new(new_header(session.cwd or self.cwd, source), fork_lines(session, leaf))
        return fork, prompt_text(entry) if position == "before" else ""

    # ---- where files are

    def _new(self, header: SessionHeader, lines: Sequence[bytes] = ()) -> Session:
        time = re.sub("[:.]", "-", header.timestamp)
        path = self._folder(header.cwd) / f"{time}_{header.id}.jsonl"
        return Session.new(header.cwd, path, header=header, lines=lines, write=self._write)

    def _folder(self, cwd: str) -> Path:
        return self._flat or self._root / folder_name(cwd)

    def _files(self) -> Iterator[tuple[Path, SessionHeader]]:
        """The files of this working directory, the one written last first."""
        for path, header in _session_files([self._folder(self.cwd)]):
            if header.cwd == self.cwd or (not header.cwd and self._flat is None):
                yield path, header

    def _find(self, reference: str) -> Path:
        if not _ID.fullmatch(reference):
            raise SessionError(f"{reference!r} is neither the path nor the id of a session")
        folders = [self._flat] if self._flat else sorted(self._root.glob("*/"))
        for files in (self._files(), _session_files(folders)):
            found: dict[str, Path] = {}
            for path, header in files:
                if header.id.startswith(reference):
                    found.setdefault(header.id, path)
            if reference in found:
                return found[reference]
            if len(found) > 1:
                raise SessionError(f"{reference} is the beginning of several ids: {', '.join(sorted(found))}")
            if found:
                return found.popitem()[1]
        raise SessionError(f"there is no session {reference}")


def folder_name(cwd: str) -> str:
    """The name that pi gives the folder of a working directory; too long ones end in a digest."""
    flat = re.sub(r"[/:\\]", "-", cwd[1:] if cwd[:1] in ("/", "\\") else cwd)
    if len(os.fsencode(flat)) <= _LONGEST_NAME:
        return f"--{flat}--"
    digest = hashlib.sha256(os.fsencode(cwd)).hexdigest()[:16]
    return f"--{flat[:48]}-{digest}--"


def _is_path(reference: str) -> bool:
    return "/" in reference or reference.endswith(".jsonl")


def _session_files(folders: Iterable[Path]) -> Iterator[tuple[Path, SessionHeader]]:
    paths = (path for folder in folders for path in folder.glob("*.jsonl") if path.is_file())
    for path in sorted(paths, key=_written_at, reverse=True):
        try:
            with path.open("rb") as file:
                header = read_header(file, path)
        except (SessionFormatError, OSError):
            continue  # somebody else's file, or one that went away: not a session to offer
        yield path, header


def _written_at(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
