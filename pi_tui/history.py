"""The user's prompts of all sessions, in one private file; a key of a provider is never among them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from pi_trio.errors import StorageError
from pi_trio.llm.key_shapes import find_key
from pi_trio.plain_file import read_plain_file
from pi_trio.private_files import locked, make_private_folder, write_private

__all__ = ["PromptHistory"]

MOST = 1000
"""Prompts that are kept; the file is made shorter when it holds twice as many."""

LONGEST = 20_000
"""Characters of a prompt that is kept; longer ones are in their sessions."""


class PromptHistory:
    """`texts` are the prompts, oldest first, each once. Without a path nothing is kept."""

    def __init__(self, path: Path | None = None) -> None:
        self.texts: list[str] = []
        self._path = path

    def load(self) -> None:
        """Read what earlier runs kept, before what was added since. Blocks; raises `StorageError`."""
        if self._path is None:
            return
        try:
            lines = read_plain_file(self._path).splitlines()
        except FileNotFoundError:
            return
        except OSError as error:
            raise StorageError(f"{self._path} cannot be read: {error.strerror}", self._path) from error
        self.texts = _each_once([*_texts(lines), *self.texts])[-MOST:]
        if len(lines) > 2 * MOST:
            with locked(self._path):
                write_private(self._path, b"".join(map(_line, self.texts)))

    def add(self, text: str) -> None:
        """Keep a prompt. Raises `StorageError` if it could be kept for this run only."""
        if not text.strip() or len(text) > LONGEST or find_key(text):
            return
        if text in self.texts:
            self.texts.remove(text)
        self.texts = [*self.texts, text][-MOST:]
        if self._path is not None:
            _append(self._path, _line(text))


def _append(path: Path, data: bytes) -> None:
    """Add a line with one write, so that the lines of several programs never mix."""
    make_private_folder(path.parent)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, data)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror}", path) from error


def _line(text: str) -> bytes:
    return json.dumps({"text": text}).encode() + b"\n"


def _texts(lines: Iterable[bytes]) -> Iterable[str]:
    for line in lines:
        with suppress(ValueError):  # a line that was cut when a disk was full is one prompt less
            entry = json.loads(line)
            if isinstance(entry, dict) and isinstance(text := entry.get("text"), str) and text.strip():
                yield text


def _each_once(texts: Iterable[str]) -> list[str]:
    """The texts, each where it came last."""
    return list(dict.fromkeys(reversed(list(texts))))[::-1]
