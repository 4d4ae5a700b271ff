"""One session: its entries, its leaf, and the file that they are in.

Everything here is synchronous and runs on the trio thread; only `sync` may take longer than
microseconds and is meant for a worker thread. A new session has no file until its first input
(a user message or a `custom_message`); what came before is then written with it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, TypeVar

import attrs

from pi_trio import codec
from pi_trio.errors import StorageError, UsageError
from pi_trio.messages import UserMessage
from pi_trio.session import facts
from pi_trio.session.appending import Appending
from pi_trio.session.cache import EntryCache
from pi_trio.session.context import (
    BranchSettings,
    ContextBuilder,
    EntryTransform,
    SessionContext,
)
from pi_trio.session.entries import (
    SESSION_VERSION,
    CustomEntry,
    CustomMessageEntry,
    Entry,
    LabelEntry,
    LeafEntry,
    MessageEntry,
    SessionHeader,
    SessionInfoEntry,
    entry_from_json,
    header_line,
    timestamp_now,
)
from pi_trio.session.ids import new_entry_id, new_session_id
from pi_trio.session.opening import open_file
from pi_trio.session.scan import entry_object, head_of, heads_of
from pi_trio.session.speech import Projector, Speech
from pi_trio.session.storage import (
    Claim,
    JsonlStorage,
    MemoryStorage,
    SessionStorage,
    StagedStorage,
    Write,
)
from pi_trio.session.tree import EntryHead, Tree
from pi_trio.surrogates import mend
from pi_trio.text import plural

__all__ = ["Session"]

E = TypeVar("E", bound=Entry)

_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")


class Session(Appending):
    """Made by `new`, `open` or `in_memory`, not directly.

    `path` is where the file is or will be, None in memory. `speech` is what its entries say to
    models. `findings` are sentences about what
    was odd in the file. `on_append` is called after each append with the entry's JSON object;
    what it raises leaves `append`, and the entry stays.
    """

    def __init__(
        self,
        header: SessionHeader,
        storage: SessionStorage,
        tree: Tree,
        *,
        path: Path | None = None,
        findings: Iterable[str] = (),
    ) -> None:
        self.header = header
        self.path = path
        self.tree = tree
        self.findings: list[str] = [*findings, *tree.findings]
        self.on_append: Callable[[Mapping[str, Any]], None] | None = None
        self._storage = storage
        self._leaf = tree.leaf_after_load()
        self._cache = EntryCache()
        self.speech: Speech = Speech(self._entry_for_context)
        self._context = ContextBuilder(tree, self.speech)
        self._name: str | None = None
        self._labels: dict[str, str] | None = None

    # ---- making one

    @classmethod
    def new(
        cls,
        cwd: str,
        path: Path | None = None,
        *,
        header: SessionHeader | None = None,
        lines: Sequence[bytes] = (),
        write: Write = os.write,
        claim: Claim = nullcontext,
    ) -> Session:
        """A session whose file is made at `path` with its first input; without a path, never.

        `lines` are encoded entries that it starts with. The file is made within `claim`.
        """
        tree, header = Tree(), header or new_header(cwd)
        kept = [line for _, line, head in heads_of(lines) if head is not None and tree.add(head)]
        if path is None:
            return cls(header, MemoryStorage(kept), tree)

        def make(lines: list[bytes]) -> JsonlStorage:
            with claim():
                return JsonlStorage.create(path, header_line(header), lines, write=write)

        return cls(header, StagedStorage(kept, make), tree, path=path)

    @classmethod
    def in_memory(cls, cwd: str) -> Session:
        """A session that is never saved."""
        return cls.new(cwd)

    @classmethod
    def open(cls, path: Path, *, writable: bool = True, cwd: str = "", write: Write = os.write) -> Session:
        """The session of a file. An empty file becomes a new session of `cwd`.

        Raises `SessionFormatError`, `SessionLockedError` or another `SessionError`, at once also
        for a directory or a FIFO. The file is not changed before the first append.
        """
        path = path.absolute()
        opened = open_file(path, writable=writable, write=write)
        if opened is None:
            return cls.new(cwd, path, write=write)
        found, storage = opened
        return cls(found.header, storage, found.tree, path=path, findings=found.findings)

    # ---- what it is

    @property
    def id(self) -> str:
        return self.header.id

    @property
    def cwd(self) -> str:
        """The working directory that it was made in; empty in very old files."""
        return self.header.cwd

    @property
    def heads(self) -> list[EntryHead]:
        """All entries in file order. Not to be changed."""
        return self.tree.heads

    @property
    def is_saved(self) -> bool:
        """Whether there is a file."""
        storage = self._storage
        return storage.older is not None if isinstance(storage, StagedStorage) else self.path is not None

    @property
    def unsaved(self) -> int:
        """How many entries are kept that could not be written yet."""
        return self._storage.unsaved

    @property
    def name(self) -> str | None:
        """The name last given, on whatever branch."""
        if self._name is None:
            last = next((head for head in reversed(self.heads) if head.type == "session_info"), None)
            entry = self.entry(last.id) if last is not None else None
            self._name = _clean_name(entry) if entry is not None else ""
        return self._name or None

    def labels(self) -> Mapping[str, str]:
        """The labels of entries by their ids, of each the last one in file order."""
        return {each: label for each, label in self._last_labels().items() if label}

    def label_of(self, entry_id: str) -> str | None:
        """The entry's label."""
        return self._last_labels().get(entry_id) or None

    def _last_labels(self) -> Mapping[str, str]:
        """Also those that were taken away, as empty texts."""
        if self._labels is None:
            self._labels = {}
            for head in self.heads:
                if head.type == "label":
                    self._note(self.entry(head.id))
        return self._labels

    # ---- reading

    def get_leaf_id(self) -> str | None:
        """The entry that the next append hangs on; None before the first."""
        return self._leaf

    def raw(self, entry_id: str) -> Mapping[str, Any]:
        """The entry's JSON object, with everything that is in the file. Raises `UsageError`.

        A body that is damaged on disk is an object of the head's fields alone.
        """
        position = self._position(entry_id)
        return self._object(position, self._storage.line(position))

    def line(self, entry_id: str) -> bytes:
        """The entry's line as it is in the file, without the line end. Raises `UsageError`."""
        return self._storage.line(self._position(entry_id))

    def entry(self, entry_id: str) -> Entry:
        """The entry as a value. Raises `UsageError` for an unknown id."""
        entry = self._cache.get(entry_id)
        if entry is None:
            position = self._position(entry_id)
            line = self._storage.line(position)
            entry = entry_from_json(self._object(position, line))
            self._cache.put(entry, len(line))
        return entry

    def get_branch(self, from_id: str | None = None) -> list[Entry]:
        """The entries from the root to `from_id`, or to the leaf."""
        return [self.entry(each) for each in self.tree.path(from_id or self._leaf)]

    def build_context(self, transforms: Iterable[EntryTransform] = ()) -> SessionContext:
        """What a request that hangs on the leaf is made of. Costs what is new since the last call.

        With `transforms` every entry that counts is read and goes through them, in their order.
        """
        return self._context.build(self._leaf, transforms)

    def project(self, custom_type: str, projector: Projector) -> None:
        """Let the model see custom entries of this type, as the messages that `projector` makes of them."""
        self.speech.project(custom_type, projector)
        self._context = ContextBuilder(self.tree, self.speech)

    def branch_settings(self) -> BranchSettings:
        """Model, thinking level and tools as the branch left them, without reading its conversation."""
        settings = BranchSettings()
        settings.look_back(self.tree.branch(self._leaf), self.entry)
        return settings

    # ---- writing

    def append(self, entry: E, *, keep: bool = False) -> E:
        """Add `entry` at the leaf and move the leaf to it. Gives it with id, parent and time.

        Raises `StorageError` if it could not be written, and then nothing has changed. With
        `keep`, for what has happened and cannot be handed back, the entry is there all the
        same: it is `unsaved`, and goes first at the next append.
        """
        return self.append_at(self._leaf, entry, keep=keep)

    def append_at(self, parent_id: str | None, entry: E, *, keep: bool = False) -> E:
        """Add `entry` at another place and move the leaf to it: the move that a summary is."""
        if isinstance(entry, LeafEntry):
            raise UsageError("a leaf entry is made by set_leaf_id")
        return self._add(entry, self._anchor(parent_id), keep=keep)

    def set_leaf_id(self, target: str | None) -> LeafEntry | None:
        """Move the leaf, also durably. None, and no entry, if it is there already.

        Raises `UsageError` for an unknown target, `StorageError` if it could not be written.
        """
        anchor = self._anchor(target)
        return None if anchor == self._leaf else self._add(LeafEntry(anchor), anchor)

    def save(self) -> None:
        """Make the file now, although nothing was said yet. Raises `StorageError`."""
        if isinstance(self._storage, StagedStorage) and not self.is_saved and self.path is not None:
            self._storage = self._storage.made()

    def flush(self) -> None:
        """Write what could not be written before. Raises `StorageError` if that still does not work."""
        storage = self._storage
        if isinstance(storage, StagedStorage) and storage.unsaved and self.path is not None:
            self._storage = storage.made()
        else:
            storage.flush()

    def refresh(self) -> list[EntryHead]:
        """Take in what another program has added to the file. Gives the heads of the new entries.

        The leaf of a session that is open for reading follows; a writer's stays where it is.
        """
        found = self._storage.look()
        heads = heads_of(line for _, _, line in found)
        added = []
        for (place, length, line), (_, _, head) in zip(found, heads, strict=True):
            if head is not None and self.tree.add(head):
                self._storage.adopt(place, length)
                added.append(head)
            elif line.strip():
                self.findings.append("a line that another program added is damaged and was left out")
        if added:
            self._name = self._labels = None
            self.findings.append(f"{plural(len(added), 'entry')} came from another program")
            if not self._storage.is_writable:
                self._leaf = self.tree.leaf_after_load()
        return added

    def sync(self) -> None:
        """Wait until everything is on the disk. For a worker thread. Raises `StorageError`."""
        self._storage.sync()

    def close(self) -> None:
        """Let go of the file, and of the right to write it.

        Raises `StorageError` if what is `unsaved` cannot be written now either; it is lost then.
        """
        try:
            self.flush()
        finally:
            self._storage.close()

    # ---- inside

    def _position(self, entry_id: str) -> int:
        try:
            return self.tree.position(entry_id)
        except KeyError:
            raise UsageError(f"there is no entry {entry_id}") from None

    def _anchor(self, entry_id: str | None) -> str | None:
        if entry_id is None:
            return None
        self._position(entry_id)
        return self.tree.anchor(entry_id)

    def _object(self, position: int, line: bytes) -> dict[str, Any]:
        data = entry_object(line)
        if data is not None:
            return data
        head = self.heads[position]
        finding = f"the body of entry {head.id} is damaged and was left out"
        if finding not in self.findings:
            self.findings.append(finding)
        return {"type": head.type, "id": head.id, "parentId": head.parent_id}

    def _entry_for_context(self, entry_id: str) -> Entry:
        """Does not fill the cache: a context is large, and keeps what it needs itself."""
        position = self._position(entry_id)
        line = self._storage.line(position)
        if _SURROGATE_ESCAPE.search(line):
            return entry_from_json(mend(self._object(position, line)))
        return self._cache.get(entry_id) or entry_from_json(self._object(position, line))

    def _add(self, entry: E, parent_id: str | None, *, keep: bool = False) -> E:
        added = attrs.evolve(
            entry, id=new_entry_id(self.tree), parent_id=parent_id, timestamp=timestamp_now()
        )
        data = codec.to_json(added)
        line = _encode(data)
        try:
            self._save(added, line)
        except StorageError:
            if keep:
                self._storage.keep(line)
                self._take(added, data, len(line))
            raise
        self._take(added, data, len(line))
        return added

    def _save(self, entry: Entry, line: bytes) -> None:
        """Write the line; the first input makes the file, with all that came before."""
        storage = self._storage
        if isinstance(storage, StagedStorage) and self.path and (storage.is_due or _is_input(entry)):
            self._storage = storage.made(line)
        else:
            storage.append(line)

    def _take(self, entry: Entry, data: Mapping[str, Any], size: int) -> None:
        self.tree.add(head_of(data))
        self._leaf = entry.parent_id if isinstance(entry, LeafEntry) else entry.id
        self._cache.put(entry, size)
        self._note(entry)
        if self._storage.was_overtaken:
            self.refresh()
        if self.on_append is not None:
            self.on_append(data)

    def _note(self, entry: Entry) -> None:
        if isinstance(entry, SessionInfoEntry):
            self._name = _clean_name(entry)
        elif isinstance(entry, LabelEntry) and self._labels is not None:
            self._labels[entry.target_id] = entry.label or ""


def new_header(cwd: str, parent_session: str | None = None, session_id: str | None = None) -> SessionHeader:
    """The header of a session that begins now, by default with an id of its own."""
    return SessionHeader(
        SESSION_VERSION, session_id or new_session_id(), timestamp_now(), cwd, parent_session
    )


def _is_input(entry: Entry) -> bool:
    match entry:
        case CustomMessageEntry() | MessageEntry(message=UserMessage()):
            return True
        case CustomEntry(custom_type=facts.INBOX_SPLICED):
            return True
        case _:
            return False


def _clean_name(entry: Entry) -> str:
    name = entry.name if isinstance(entry, SessionInfoEntry) else None
    return " ".join((name or "").splitlines()).strip()


def _encode(data: Mapping[str, Any]) -> bytes:
    try:
        return codec.dumps(data)
    except (TypeError, ValueError, RecursionError) as error:
        raise StorageError(f"a {data['type']} entry cannot be written as JSON: {error}") from error
