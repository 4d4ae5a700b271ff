"""Files on this machine, for tools: opened only if they are plain files, replaced whole.

Everything here blocks and belongs in a thread.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import IO, TypeAlias

from pi_trio.tools.failure import ToolError

__all__ = ["Stamp", "digest", "is_folder", "list_folder", "open_plain", "replace", "stamp_of", "unlisted"]

Stamp: TypeAlias = tuple[int, int, int]
"""Inode, size and time of change in nanoseconds: differs when the file was changed."""

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def stamp_of(status: os.stat_result) -> Stamp:
    """What tells this state of a file from a later one."""
    return status.st_ino, status.st_size, status.st_mtime_ns


def open_plain(path: Path) -> int:
    """A descriptor to read a plain file. Raises `OSError`, and `ToolError` for anything else.

    Looked at before it is opened, because opening a device can act, and again after.
    """
    _refuse_special(path, path.stat())
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        _refuse_special(path, os.fstat(descriptor))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def replace(path: Path, data: bytes) -> Stamp:
    """Make `data` the whole content of the file, at once or not at all; missing folders are made.

    Links stay and their target is replaced, mode and owner stay, and a new file gets the
    usual mode. Where a new file cannot take the place of the old one (it has other hard
    links, the folder cannot be written, the owner would change) the old one is rewritten.
    Raises `OSError`, and `ToolError` for what is not a plain file or is read-only.
    """
    target = Path(os.path.realpath(path))
    try:
        status = target.stat()
    except FileNotFoundError:
        target.parent.mkdir(parents=True, exist_ok=True)
        return _put(target, data)
    _refuse_special(path, status)
    if not status.st_mode & 0o222 or not os.access(target, os.W_OK):
        raise ToolError(f"{path}: the file is read-only.")
    if status.st_nlink == 1 and status.st_uid == os.geteuid():
        with suppress(PermissionError):  # the folder, or the group: rewrite it then
            return _put(target, data, like=status)
    return _rewrite(target, data)


def is_folder(path: Path) -> bool:
    """Whether it is a folder and not a plain file. Raises `OSError`, and `ToolError` for anything else."""
    status = path.stat()
    if stat.S_ISDIR(status.st_mode):
        return True
    _refuse_special(path, status)
    return False


def list_folder(path: Path) -> list[bytes]:
    """The names in a folder; those of folders, also behind links, end in `/`. Raises `OSError`."""
    with os.scandir(os.fsencode(path)) as entries:
        return [each.name + b"/" if _leads_to_folder(each) else each.name for each in entries]


def unlisted(folder: Path, known: Collection[bytes]) -> list[bytes]:
    """The links and empty folders in the `known` folders below `folder`, all relative to it."""
    found: list[bytes] = []
    for each in known:
        with suppress(OSError), os.scandir(os.path.join(os.fsencode(folder), each)) as entries:  # noqa: PTH118 bytes
            for entry in entries:
                path = os.path.join(each, entry.name)  # noqa: PTH118 bytes
                if entry.is_symlink() or (path not in known and entry.is_dir() and _is_empty(entry)):
                    found.append(path + b"/" if _leads_to_folder(entry) else path)
    return found


def digest(path: Path) -> str | None:
    """The SHA-256 of a plain file's content; None if there is none. Raises as `open_plain` does."""
    try:
        descriptor = open_plain(path)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _leads_to_folder(entry: os.DirEntry[bytes]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # its links run in a circle
        return False


def _is_empty(folder: os.DirEntry[bytes]) -> bool:
    with suppress(OSError), os.scandir(folder) as entries:  # a private one is passed over
        return next(entries, None) is None
    return False


def _refuse_special(path: Path, status: os.stat_result) -> None:
    kind = stat.S_IFMT(status.st_mode)
    if kind != stat.S_IFREG:
        raise ToolError(f"{path} is {_KINDS.get(kind, 'no plain file')}, not a file.")


def _put(target: Path, data: bytes, like: os.stat_result | None = None) -> Stamp:
    """Write a file beside `target`, then rename it over. Mode and group are those of `like`."""
    temporary = target.with_name(f".{secrets.token_hex(8)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o600 if like else 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if like:
                _make_like(descriptor, like)
            stamp = _write_through(file, data)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return stamp


def _make_like(descriptor: int, like: os.stat_result) -> None:
    if os.fstat(descriptor).st_gid != like.st_gid:
        os.fchown(descriptor, -1, like.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(like.st_mode))


def _rewrite(target: Path, data: bytes) -> Stamp:
    with target.open("r+b") as file:
        return _write_through(file, data)


def _write_through(file: IO[bytes], data: bytes) -> Stamp:
    """Make `data` all of the open file, on the disk too."""
    file.write(data)
    file.truncate()
    file.flush()
    os.fsync(file.fileno())
    return stamp_of(os.fstat(file.fileno()))
