"""Everything that is odd in a session file, line by line. Nothing is changed, and nothing is fatal."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

from pi_trio.errors import SessionFormatError
from pi_trio.session.entries import SESSION_VERSION, OpaqueEntry, entry_from_json, is_known_type
from pi_trio.session.files import open_existing
from pi_trio.session.migration import upgrade
from pi_trio.session.scan import entry_object, head_of, read_header
from pi_trio.session.tree import EntryHead

__all__ = ["Finding", "check_file"]

_TARGETS = ("targetId", "firstKeptEntryId")
"""Fields that name another entry of the file."""


@frozen
class Finding:
    """What is odd, and on which line; the header is line 1."""

    line: int
    text: str


def check_file(path: Path) -> list[Finding]:
    """What is odd in the file. Raises `SessionError` if it cannot be read at all."""
    descriptor, _ = open_existing(path, writable=False)
    with os.fdopen(descriptor, "rb") as file:
        if os.fstat(descriptor).st_size == 0:
            return []
        try:
            version = read_header(file, path).version
        except SessionFormatError:
            version = SESSION_VERSION
            damaged = [Finding(1, "the first line is not a session's header")]
        else:
            damaged = []
        checker = _Checker()
        return [*damaged, *sorted(checker.check(file, version), key=lambda each: each.line)]


class _Checker:
    def __init__(self) -> None:
        self._lines: dict[str, int] = {}  # where each id is
        self._heads: list[tuple[int, EntryHead]] = []
        self._targets: list[tuple[int, str, str]] = []
        self._open_calls: dict[str, int] = {}

    def check(self, file: Iterator[bytes], version: int) -> Iterator[Finding]:
        """The findings, those about several lines last."""
        line = b"\n"
        objects: list[tuple[int, dict[str, Any]]] = []
        for number, line in enumerate(file, 2):
            data = entry_object(line)
            if data is not None:
                objects.append((number, data))
            elif line.strip():
                yield Finding(number, _damage(line))
        if not line.endswith(b"\n"):
            yield Finding(number, "the last line has no line end: the program was stopped while it wrote")
        if version < SESSION_VERSION:
            upgraded = upgrade((data for _, data in objects), version)
            objects = [(number, data) for (number, _), data in zip(objects, upgraded, strict=True)]
        for number, data in objects:
            yield from self._entry(number, data)
        yield from self._links()
        for call_id, number in self._open_calls.items():
            yield Finding(number, f"the call {call_id} has no result")

    def _entry(self, number: int, data: Mapping[str, Any]) -> Iterator[Finding]:
        try:
            head = head_of(data)
        except ValueError as error:
            yield Finding(number, str(error))
            return
        if head.id in self._lines:
            yield Finding(number, f"the id {head.id} is on line {self._lines[head.id]} already")
            return
        self._lines[head.id] = number
        self._heads.append((number, head))
        if is_known_type(head.type) and isinstance(entry_from_json(data), OpaqueEntry):
            yield Finding(number, f"the {head.type} entry lacks a field that it needs")
        for key in _TARGETS:
            if isinstance(data.get(key), str):
                self._targets.append((number, key, data[key]))
        self._calls(number, data.get("message"))

    def _calls(self, number: int, message: Any) -> None:
        if not isinstance(message, dict):
            return
        if message.get("role") == "toolResult":
            self._open_calls.pop(str(message.get("toolCallId")), None)
        elif message.get("role") == "assistant" and message.get("stopReason") not in ("error", "aborted"):
            content = message.get("content")
            for block in content if isinstance(content, list) else ():
                if isinstance(block, dict) and block.get("type") == "toolCall":
                    self._open_calls[str(block.get("id"))] = number

    def _links(self) -> Iterator[Finding]:
        settled: set[str] = set()
        parents = {head.id: head.parent_id for _, head in self._heads}
        for number, head in self._heads:
            if head.parent_id is not None and head.parent_id not in self._lines:
                yield Finding(number, f"the parent {head.parent_id} is not in the file")
            trail: set[str] = set()
            at: str | None = head.id
            while at in parents and at not in settled and at not in trail:
                trail.add(at)
                at = parents[at]
            if at in trail:
                yield Finding(number, f"the parents of {head.id} run in a circle")
            settled |= trail
        for number, key, target in self._targets:
            if target not in self._lines:
                yield Finding(number, f"{key} names {target}, which is not in the file")


def _damage(line: bytes) -> str:
    if not line.strip(b"\0\r\n"):
        return "the line is all NUL bytes"
    return "the line is damaged: it is not a JSON object"
