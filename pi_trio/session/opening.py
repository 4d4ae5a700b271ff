"""Opening a session file: what is in it, and a storage that reads and continues it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import attrs

from pi_trio import codec
from pi_trio.collector import paused_collector
from pi_trio.errors import SessionFormatError
from pi_trio.session.entries import SESSION_VERSION, SessionHeader, header_line
from pi_trio.session.files import open_existing
from pi_trio.session.migration import replace_file, upgrade
from pi_trio.session.scan import Scan, entry_object, head_of, read_header, scan
from pi_trio.session.storage import JsonlStorage, SessionStorage, StagedStorage, Write

__all__ = ["open_file"]

_BUFFER = 1 << 20


def open_file(path: Path, *, writable: bool, write: Write = os.write) -> tuple[Scan, SessionStorage] | None:
    """What is in a session file, and the storage over it; None if the file is empty.

    A file that the system does not let us write is opened for reading, with a finding. One in
    an older version is replaced when something is appended. Raises `SessionFormatError`,
    `SessionLockedError` or another `SessionError`. The file stays as it is.
    """
    descriptor, refusal = open_existing(path, writable=writable)
    with ExitStack() as undo:
        undo.callback(os.close, descriptor)
        if os.fstat(descriptor).st_size == 0:
            return None
        with open(descriptor, "rb", buffering=_BUFFER, closefd=False) as file, paused_collector():
            header = read_header(file, path)
            if header.version > SESSION_VERSION:  # we would not know what we pass over, or break
                raise SessionFormatError(
                    f"{path} is of version {header.version}, and this program knows versions up to "
                    f"{SESSION_VERSION}: a newer one wrote it",
                    path,
                )
            if header.version < SESSION_VERSION:
                found, lines = _read_older(file, header)
            else:
                found, lines = scan(file, header), None
        undo.pop_all()
    if writable and refusal is not None:
        found.findings.append(f"the file cannot be written: {refusal}")
    storage = JsonlStorage(
        path,
        descriptor,
        found.offsets,
        found.lengths,
        end=found.end if refusal is None else found.whole_end,
        torn=found.torn,
        refusal=refusal,
        write=write,
    )
    if lines is None:
        return found, storage
    return found, StagedStorage(
        lines,
        partial(replace_file, storage, header.version, header_line(found.header), write=write),
        older=storage,
    )


def _read_older(file: BinaryIO, header: SessionHeader) -> tuple[Scan, list[bytes]]:
    found = Scan(attrs.evolve(header, version=SESSION_VERSION))
    entries = upgrade(_objects(file, found.findings), header.version)
    lines = [codec.dumps(data) for data in entries if found.tree.add(head_of(data))]
    return found, lines


def _objects(file: BinaryIO, findings: list[str]) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(file, 2):
        data = entry_object(line)
        if data is not None and isinstance(data.get("type"), str):
            yield data
        elif line.strip():
            findings.append(f"line {number} is damaged and was left out")
