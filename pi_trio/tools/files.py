"""Files on this machine, for tools: opened only if they are plain files, replaced whole.

A path can lead elsewhere from one moment to the next. So a `Check` is told the real path of
what has been opened, asked of the descriptor, before anything is read from it or made of it.
Everything here blocks and belongs in a thread.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import stat
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TypeAlias

from pi_trio.tools.failure import ToolError

__all__ = [
    "Check",
    "Stamp",
    "digest",
    "is_folder",
    "list_folder",
    "open_folder",
    "open_plain",
    "other_names",
    "real_names",
    "replace",
    "stamp_of",
    "unlisted",
]

Check: TypeAlias = Callable[[Path, Path], None]
"""Called with a path and the real path of what was opened by it. Raises `ToolError` to refuse it."""

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


def open_plain(path: Path, check: Check | None = None) -> int:
    """A descriptor to read a plain file. Raises `OSError`, and `ToolError` for anything else.

    Looked at before it is opened, because opening a device can act, and again after.
    """
    _refuse_special(path, path.stat())
    descriptor = _open(path, os.O_NONBLOCK | os.O_NOCTTY, check)
    try:
        _refuse_special(path, os.fstat(descriptor))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def open_folder(path: Path, check: Check | None = None) -> int:
    """A descriptor of a folder. Raises `OSError`, and `ToolError` if `check` does."""
    return _open(path, os.O_DIRECTORY, check)


def replace(path: Path, data: bytes, check: Check | None = None) -> Stamp:
    """Make `data` the whole content of the file, at once or not at all; missing folders are made.

    Links stay and their target is replaced, mode and owner stay, and a new file gets the
    usual mode. Where a new file cannot take the place of the old one (it has other hard
    links, the folder cannot be written, the owner would change) the old one is rewritten.
    Raises `OSError`, and `ToolError` for what is not a plain file or is read-only.
    """
    target = Path(os.path.realpath(path))
    with _folder_of(target, path, check) as folder:
        try:
            status = os.stat(target.name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return _put(folder, target.name, data)
        _refuse_special(path, status)
        if not status.st_mode & 0o222 or not os.access(target.name, os.W_OK, dir_fd=folder):
            raise ToolError(f"{path}: the file is read-only.")
        if status.st_nlink == 1 and status.st_uid == os.geteuid():
            with suppress(PermissionError):  # the folder, or the group: rewrite it then
                return _put(folder, target.name, data, like=status)
        return _rewrite(folder, target.name, data, status)


def other_names(path: Path, folders: Collection[Path]) -> list[Path]:
    """The hard links to a file that are in these folders; none for a file with one name."""
    found: list[Path] = []
    with suppress(OSError):
        status = path.stat()
        if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
            for folder in folders:
                found += [each for each in _with_inode(folder, status.st_ino) if each.samefile(path)]
    return [each for each in found if each != path]


def real_names(path: Path, folders: Collection[Path]) -> list[Path]:
    """The path, where it really leads, and then the hard links to that file in these folders."""
    real = Path(os.path.realpath(path))
    return [path, real, *other_names(real, folders)]


def _with_inode(folder: Path, inode: int) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return [folder / entry.name for entry in entries if entry.inode() == inode]
    except OSError:  # not there, or private
        return []


def is_folder(path: Path) -> bool:
    """Whether it is a folder and not a plain file. Raises `OSError`, and `ToolError` for anything else."""
    status = path.stat()
    if stat.S_ISDIR(status.st_mode):
        return True
    _refuse_special(path, status)
    return False


def list_folder(path: Path, check: Check | None = None) -> list[bytes]:
    """The names in a folder; those of folders, also behind links, end in `/`. Raises `OSError`."""
    folder = open_folder(path, check)
    try:
        with os.scandir(folder) as entries:
            return [os.fsencode(each.name) + b"/" * _leads_to_folder(each) for each in entries]
    finally:
        os.close(folder)


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


def digest(path: Path, check: Check | None = None) -> str | None:
    """The SHA-256 of a plain file's content; None if there is none. Raises as `open_plain` does."""
    try:
        descriptor = open_plain(path, check)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _leads_to_folder(entry: os.DirEntry[bytes] | os.DirEntry[str]) -> bool:
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


# ---------------------------------------------------------------- what a path leads to


def _open(path: Path, flags: int, check: Check | None) -> int:
    """A descriptor for reading, with what it leads to checked."""
    for _ in range(_TRIES):
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | flags)
        try:
            if check is None:
                return descriptor
            if (real := _real_path(descriptor, path)) is not None:
                check(path, real)
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # another file has taken its place, as an edit does
    raise _replaced(path)


_TRIES = 10


def _replaced(path: Path) -> ToolError:
    return ToolError(f"{path} was replaced at the moment of opening it. Try again.")


def _real_path(descriptor: int, path: Path) -> Path | None:
    """Where what was opened by `path` is; None if it is there no more."""
    real = _path_of(descriptor) or Path(os.path.realpath(path))
    try:
        return real if os.path.samestat(real.lstat(), os.fstat(descriptor)) else None
    except (FileNotFoundError, NotADirectoryError):
        return None


def _path_of(descriptor: int) -> Path | None:
    """What the system says of the path; None if it cannot."""
    if sys.platform == "darwin":
        return Path(os.fsdecode(fcntl.fcntl(descriptor, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0")))
    try:
        return Path(f"/proc/self/fd/{descriptor}").readlink()
    except FileNotFoundError:
        return None


@contextmanager
def _folder_of(target: Path, path: Path, check: Check | None) -> Iterator[int]:
    """A descriptor of the folder that `target` is in, made if it is missing, but not before the check.

    What follows goes by the descriptor, so that links that come meanwhile lead nowhere.
    """
    existing, missing = target.parent, []
    while not existing.exists():
        missing.append(existing.name)
        existing = existing.parent
    folder = os.open(existing, _FOLDER)
    try:
        if check is not None:
            real = _real_path(folder, existing)
            if real is None:
                raise _replaced(existing)
            check(path, real.joinpath(*reversed(missing), target.name))
        for name in reversed(missing):
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=folder)
            inner = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = inner
        yield folder
    finally:
        os.close(folder)


_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
"""Opens folders, on Linux also those that may not be listed."""


# ---------------------------------------------------------------- writing


def _put(folder: int, name: str, data: bytes, like: os.stat_result | None = None) -> Stamp:
    """Write a file beside it, then rename it over. Mode and group are those of `like`."""
    temporary = f".{secrets.token_hex(8)}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o600 if like else 0o666, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if like:
                _make_like(descriptor, like)
            stamp = _write_through(file, data)
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)
        raise
    return stamp


def _make_like(descriptor: int, like: os.stat_result) -> None:
    if os.fstat(descriptor).st_gid != like.st_gid:
        os.fchown(descriptor, -1, like.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(like.st_mode))


def _rewrite(folder: int, name: str, data: bytes, status: os.stat_result) -> Stamp:
    descriptor = os.open(name, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    with os.fdopen(descriptor, "r+b") as file:
        if not os.path.samestat(os.fstat(descriptor), status):
            raise ToolError(f"{name} was replaced at the moment of writing it. Try again.")
        return _write_through(file, data)


def _write_through(file: IO[bytes], data: bytes) -> Stamp:
    """Make `data` all of the open file, on the disk too."""
    file.write(data)
    file.truncate()
    file.flush()
    os.fsync(file.fileno())
    return stamp_of(os.fstat(file.fileno()))
