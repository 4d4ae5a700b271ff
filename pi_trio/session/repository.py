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
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Literal

from pi_trio.errors import (
    SessionError,
    SessionExistsError,
    SessionFormatError,
    StorageError,
    UsageError,
)
from pi_trio.private_files import make_private_folder
from pi_trio.session.branching import before, fork_lines, prompt_text
from pi_trio.session.entries import SessionHeader
from pi_trio.session.files import locked_folder, open_existing
from pi_trio.session.importing import opened_for_import, put_file
from pi_trio.session.scan import read_header
from pi_trio.session.search import Hit, Query
from pi_trio.session.session import Session, new_header
from pi_trio.session.storage import Claim, Write
from pi_trio.session.summary import SessionSummary, summarize
from pi_trio.session.trash import discard
from pi_trio.written_path import written_path

__all__ = ["SessionRepository", "folder_name"]

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_LONGEST_NAME = 240
"""Bytes that a folder's name may have; most file systems take 255."""


class SessionRepository:
    """The sessions of `cwd`. Nothing is made on disk before a session's first input."""

    def __init__(
        self, agent_dir: Path, cwd: str | Path, session_dir: Path | None = None, *, write: Write = os.write
    ) -> None:
        self.cwd: str = str(Path(cwd).resolve())
        self._root = agent_dir / "sessions"
        self._flat = session_dir
        self._write = write

    def create(self, parent_session: str | None = None, session_id: str | None = None) -> Session:
        """A new session. `parent_session` is the file of the one that it goes on from.

        A `session_id` of one's own must be allowed and free; see `path_of`. Should another program
        make its file first, making this one raises `SessionLockedError` or `SessionExistsError`.
        """
        header = new_header(self.cwd, parent_session, session_id)
        return self._new(header, claim=nullcontext if session_id is None else partial(self._sole, session_id))

    def in_memory(self, parent_session: str | None = None, session_id: str | None = None) -> Session:
        """A new session that is never saved."""
        return Session.new(self.cwd, header=new_header(self.cwd, parent_session, session_id))

    def path_of(self, session_id: str) -> Path | None:
        """The file of the session of exactly this id. Raises `UsageError` for what can be none."""
        if not _ID.fullmatch(session_id):
            raise UsageError(f"{session_id!r} cannot be the id of a session: letters, digits, . _ and - can")
        for files in (self._files(), _session_files(self._folders())):
            for path, header in files:
                if header.id == session_id:
                    return path
        return None

    def open(self, reference: str, *, writable: bool = True) -> Session:
        """The session of a path, or of an id or the beginning of one, first of this directory's.

        Raises `SessionError` if there is none or more than one, and what `Session.open` raises.
        """
        return Session.open(self.find(reference), writable=writable, cwd=self.cwd, write=self._write)

    def find(self, reference: str) -> Path:
        """The file that a path, an id or the beginning of one names. Raises `SessionError`."""
        if not _is_path(reference):
            return self._find(reference)
        try:
            return written_path(reference)
        except UsageError as error:
            raise SessionError(str(error)) from error

    def latest(self) -> Path | None:
        """The file of this directory that was written last."""
        return next((path for path, _ in self._files()), None)

    def list(self, *, everywhere: bool = False) -> Sequence[SessionSummary]:
        """The sessions of this directory, or of all, the one with the latest message first."""
        return sorted(self._summaries(everywhere), key=lambda each: each.modified, reverse=True)

    def files(self) -> Sequence[Path]:
        """The session files in the folder of this directory, damaged ones too; others may share it."""
        return sorted(self._folder(self.cwd).glob("*.jsonl"))

    def count(self) -> int:
        """How many they are."""
        return len(self.files())

    def search(self, words: str, *, everywhere: bool = False) -> Sequence[Hit]:
        """The sessions that have all the words, those with them in the name first, then the latest.

        Looked through are name, id, directory, and what user and assistant said. Words in
        double quotes stand together.
        """
        query = Query(words)
        hits = [hit for each in self._summaries(everywhere) if (hit := query.look(each)) is not None]
        return sorted(hits, key=lambda hit: (hit.in_name, hit.summary.modified), reverse=True)

    def fork(self, session: Session, entry_id: str, position: Literal["before", "at"]) -> tuple[Session, str]:
        """A new session with the path up to (`at`) or `before` an entry, and the prompt that was there.

        The source is only read. Raises `UsageError` for an unknown entry.
        """
        entry = session.entry(entry_id)
        leaf = entry_id if position == "at" else before(session.tree, entry_id)
        source = str(session.path) if session.is_saved else None
        fork = self._new(new_header(session.cwd or self.cwd, source), fork_lines(session, leaf))
        return fork, prompt_text(entry) if position == "before" else ""

    def clone(self, session: Session) -> Session:
        """A new session with the current branch. Raises `UsageError` if that is empty."""
        leaf = session.get_leaf_id()
        if leaf is None:
            raise UsageError("there is nothing to clone: the branch is empty")
        return self.fork(session, leaf, "at")[0]

    # ---- files as a whole

    def copy(self, session: Session) -> Session:
        """A new session, in this directory, of all branches. The source is only read."""
        header = new_header(self.cwd, str(session.path) if session.is_saved else None)
        lines = [session.line(head.id).rstrip(b"\r\n") for head in session.heads]
        return self._new(header, lines)

    def import_file(self, path: Path, *, dry_run: bool = False) -> Path:
        """Take in a session file from elsewhere, byte for byte, under the directory that it names.

        Of a file whose first line is damaged the entries become a session of this directory.
        Gives its place here; with `dry_run` the one that it would have, unless that is taken.
        Raises `SessionExistsError`, and other `SessionError`s if it is no session.
        """
        with opened_for_import(path, partial(new_header, self.cwd)) as (header, before, rest):
            if not _ID.fullmatch(header.id):
                raise SessionFormatError(f"{path} is not a session: its id is not allowed", path)
            folder = self._folder(header.cwd or self.cwd)
            for present, known in _session_files([folder]):
                if known.id == header.id:
                    raise SessionExistsError(f"{path} is here already, as {present}", path)
            place = folder / (path.name if path.suffix == ".jsonl" else f"{path.name}.jsonl")
            return place if dry_run else put_file(place, before, rest)

    def rename(self, reference: str, name: str) -> None:
        """Give a session a name; empty takes it away. Raises `SessionError`s."""
        session = self.open(reference)
        try:
            session.append_session_name(name)
        finally:
            session.close()

    def delete(self, reference: str) -> tuple[Path, bool]:
        """Delete a session; its path, and whether it can be found in the trash.

        Raises `SessionLockedError` if it is open elsewhere, and other `SessionError`s.
        """
        path = self.find(reference)
        session = Session.open(path)  # only a session, and nobody who is writing it
        try:
            return path, discard(path)
        finally:
            session.close()

    # ---- where files are

    def _new(self, header: SessionHeader, lines: Sequence[bytes] = (), claim: Claim = nullcontext) -> Session:
        path = self._path(header)
        return Session.new(header.cwd, path, header=header, lines=lines, write=self._write, claim=claim)

    @contextmanager
    def _sole(self, session_id: str) -> Iterator[None]:
        """Make the file of a chosen id within this: of programs that begin it at once only one does."""
        root = self._flat or self._root
        make_private_folder(root)
        try:
            with locked_folder(root):
                for folder in self._folders():
                    for rival in folder.glob(f"*_{session_id}.jsonl"):
                        # A * may stand for the beginning of a longer id; no time has a _ in it.
                        if rival.name.partition("_")[2] == f"{session_id}.jsonl":
                            os.close(open_existing(rival, writable=True)[0])  # unless it is being written
                            raise SessionExistsError(f"another program has just made {rival}", rival)
                yield
        except OSError as error:
            raise StorageError(f"{root} cannot be locked: {error.strerror}", root) from error

    def _path(self, header: SessionHeader) -> Path:
        time = re.sub("[:.]", "-", header.timestamp)
        return self._folder(header.cwd) / f"{time}_{header.id}.jsonl"

    def _folder(self, cwd: str) -> Path:
        return self._flat or self._root / folder_name(cwd)

    def _files(self) -> Iterator[tuple[Path, SessionHeader]]:
        """The files of this working directory, the one written last first."""
        for path, header in _session_files([self._folder(self.cwd)]):
            if header.cwd == self.cwd or (not header.cwd and self._flat is None):
                yield path, header

    def _folders(self) -> Iterable[Path]:
        return [self._flat] if self._flat else sorted(self._root.glob("*/"))

    def _summaries(self, everywhere: bool) -> Iterator[SessionSummary]:
        files = _session_files(self._folders()) if everywhere else self._files()
        return (summarize(path, header) for path, header in files)

    def _find(self, reference: str) -> Path:
        if not _ID.fullmatch(reference):
            raise SessionError(f"{reference!r} is neither the path nor the id of a session")
        for files in (self._files(), _session_files(self._folders())):
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
