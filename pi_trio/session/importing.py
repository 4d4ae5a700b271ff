"""Taking in a session file from elsewhere: a whole new file, or none, and never over another one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import BinaryIO

from pi_trio.errors import SessionFormatError, StorageError
from pi_trio.private_files import make_private_folder
from pi_trio.session.entries import SessionHeader, header_line
from pi_trio.session.files import open_existing, sync_directory
from pi_trio.session.scan import heads_of, read_header

__all__ = ["opened_for_import", "put_file"]


@contextmanager
def opened_for_import(
    path: Path, new_header: Callable[[], SessionHeader]
) -> Iterator[tuple[SessionHeader, bytes, BinaryIO]]:
    """A file's header, what is to stand before the rest of it, and the rest.

    If the first line is damaged and entries follow it, they get a new header. Raises
    `SessionFormatError` for what is no session.
    """
    descriptor, _ = open_existing(path, writable=False)
    with os.fdopen(descriptor, "rb") as file:
        try:
            header, before = read_header(file, path), b""
            file.seek(0)
        except SessionFormatError:
            rest = file.tell()
            if not any(head is not None for _, _, head in heads_of(file)):
                raise
            header = new_header()
            before = header_line(header) + b"\n"
            file.seek(rest)
        yield header, before, file


def put_file(path: Path, before: bytes, rest: BinaryIO) -> Path:
    """Make a private file of these bytes, named `path` or, if that is taken, with a number.

    Raises `StorageError`; then there is no new file.
    """
    make_private_folder(path.parent)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(before)
                shutil.copyfileobj(rest, file, 1 << 20)
                file.flush()
                os.fsync(file.fileno())
            return _link(unfinished, path)
        finally:
            unfinished.unlink()
            sync_directory(path.parent)
    except OSError as error:
        raise StorageError(f"cannot make {path}: {error.strerror}", path) from error


def _link(made: Path, path: Path) -> Path:
    """Give a finished file its name: the first one of `path`, `path-1`, … that is free."""
    for number in count():
        name = path.with_name(f"{path.stem}-{number}{path.suffix}") if number else path
        try:
            os.link(made, name)
        except FileExistsError:
            continue
        return name
    raise AssertionError("numbers do not end")
