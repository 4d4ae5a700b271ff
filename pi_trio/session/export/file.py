"""Writing an export to a file: private, whole or not at all, and never over something by accident."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from pi_trio.errors import StorageError, UsageError
from pi_trio.session.export.lines import branch_jsonl
from pi_trio.session.export.markdown import branch_markdown
from pi_trio.session.export.page import tree_page
from pi_trio.session.session import Session

__all__ = ["export_session", "write_export"]


def export_session(
    session: Session, path: Path, *, leaf_id: str | None = None, masked: bool = False, replace: bool = False
) -> None:
    """Write a session as the ending of the file's name says; `masked`: without what looks like a secret.

    `leaf_id` chooses the branch, instead of the current one, and in a page what it opens with.
    Raises `UsageError` for another ending or an unknown entry, and `StorageError` as `write_export` does.
    """
    if leaf_id is not None:
        session.line(leaf_id)
    write = _FORMS.get(path.suffix)
    if write is None:
        raise UsageError(f"the name of the file says how to write it: {', '.join(_FORMS)}")
    write_export(path, write(session, leaf_id, masked), replace=replace)


_FORMS: Mapping[str, Callable[[Session, str | None, bool], bytes]] = {
    ".html": lambda session, leaf_id, masked: tree_page(session, leaf_id=leaf_id, masked=masked).encode(),
    ".md": lambda session, leaf_id, masked: branch_markdown(session, leaf_id, masked=masked).encode(),
    ".jsonl": branch_jsonl,
}


def write_export(path: Path, data: bytes, *, replace: bool = False) -> None:
    """Make the file, readable by its owner alone. A link in its place is replaced, not followed.

    Raises `StorageError` if it is there already, unless `replace` says so, or if the disk refuses.
    """
    if not path.name:
        raise StorageError(f"cannot write {path}: it is a directory", path)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
            if replace:
                unfinished.replace(path)
            else:
                os.link(unfinished, path)
        finally:
            unfinished.unlink(missing_ok=True)
    except FileExistsError:
        raise StorageError(f"{path} is there already", path) from None
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror}", path) from error
