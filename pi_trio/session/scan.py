"""Opening a session file without reading its bodies: a header, then where each entry is.

A line in the key order that pi and we write costs one regular expression and is parsed when
its body is asked for; lines in any other order, and lines that may have been cut short, go
through the full parser here. A damaged line costs a finding with its number. The file is only
read.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from attrs import define, field

from pi_trio import codec
from pi_trio.errors import SessionFormatError
from pi_trio.session.entries import SESSION_VERSION, SessionHeader
from pi_trio.session.tree import EntryHead, Tree

__all__ = ["Scan", "entry_object", "head_of", "heads_of", "parent_span", "read_header", "scan"]

HEADER_LIMIT = 1 << 20
"""Bytes that the header line may have."""

_PARENT_KEY = '","parentId":'
_HEAD = re.compile(
    rf'\{{"type":"([!#-[\]-~]+)","id":"([!#-[\]-~]+){_PARENT_KEY}(?:null|"([!#-[\]-~]+)"),"timestamp":"[!#-[\]-~]*"'
    r'(?:,"(?:message":\{"role|customType|targetId)":"([!#-[\]-~]+)")?'
)
"""The head of a line in the usual key order: type, id, parent and `detail`. All of it is ASCII."""

_HEAD_LENGTH = 400
"""Bytes of a line that are looked at for its head."""

_DETAIL_KEYS = {"custom": "customType", "custom_message": "customType"} | dict.fromkeys(
    ("leaf", "label", "context_edit"), "targetId"
)
_HAS_DETAIL = frozenset({"message", *_DETAIL_KEYS})


@define
class Scan:
    """What one reading tells. The entry at a place of `tree.heads` has that place's span.

    `end` is where the file ended. `torn` means that the last line has no line end; if it could
    not be read either, `whole_end` is where it starts, else the same as `end`.
    """

    header: SessionHeader
    tree: Tree = field(factory=Tree)
    offsets: array[int] = field(factory=lambda: array("q"))
    lengths: array[int] = field(factory=lambda: array("q"))
    findings: list[str] = field(factory=list)
    end: int = 0
    whole_end: int = 0
    torn: bool = False


# ------------------------------------------------------------------ the header


def read_header(file: BinaryIO, path: Path) -> SessionHeader:
    """The header of the file at `path`, which stands at its start. Raises `SessionFormatError`."""
    data = entry_object(file.readline(HEADER_LIMIT))
    if data is None or data.get("type") != "session" or not isinstance(data.get("id"), str):
        raise SessionFormatError(f"{path} is not a session: its first line is not a session's header", path)
    cwd = data.get("cwd")
    if "parentSessionPath" in data:  # as older writers spelled it
        data["parentSession"] = data.pop("parentSessionPath")
    filled = {"timestamp": "", **data, "version": _version(data), "cwd": cwd if isinstance(cwd, str) else ""}
    return codec.from_json(SessionHeader, filled)


def _version(data: Mapping[str, Any]) -> int:
    """Absent in version 1; some writers have it as text."""
    try:
        return int(data.get("version", 1))
    except (TypeError, ValueError):
        return SESSION_VERSION


# ------------------------------------------------------------------ entries


def entry_object(line: bytes) -> dict[str, Any] | None:
    """The JSON object of a line, or None if the line is damaged."""
    try:
        data = codec.loads(line)
    except ValueError:
        return None
    return data if isinstance(data, dict) else None


def head_of(data: Any) -> EntryHead:
    """The head of an entry's JSON object. Raises `ValueError` if it is not an entry."""
    if (
        not isinstance(data, dict)
        or not isinstance(data.get("type"), str)
        or not isinstance(data.get("id"), str)
    ):
        raise ValueError("not an entry: no type or no id")
    kind, parent_id = data["type"], data.get("parentId")
    if kind == "message":
        message = data.get("message")
        detail = message.get("role") if isinstance(message, dict) else None
    else:
        detail = data.get(_DETAIL_KEYS.get(kind, ""))
    return EntryHead(
        data["id"],
        parent_id if isinstance(parent_id, str) else None,
        kind,
        detail if isinstance(detail, str) else None,
    )


def parent_span(line: bytes) -> tuple[int, int] | None:
    """Where the parent of an entry is in its line; None if the keys are in another order."""
    found = _HEAD.match(line[:_HEAD_LENGTH].decode("latin-1"))
    if found is None:
        return None
    begin = found.end(2) + len(_PARENT_KEY)
    return begin, line.index(b',"timestamp"', begin)


def _parsed_head(line: bytes) -> EntryHead | None:
    try:
        return head_of(codec.loads(line))
    except ValueError:
        return None


def scan(file: BinaryIO, header: SessionHeader) -> Scan:
    """Read the entries of a file of version 3 that stands after its header."""
    found = Scan(header)
    offset = file.tell()
    add, offsets, lengths = found.tree.add, found.offsets, found.lengths
    line, head = b"\n", None
    for number, line, head in heads_of(file):
        if head is not None:
            if add(head):
                offsets.append(offset)
                lengths.append(len(line))
        elif line.strip():
            found.findings.append(f"line {number} is damaged and was left out")
        offset += len(line)
    found.torn = not line.endswith(b"\n")
    found.end = offset
    found.whole_end = offset - len(line) if found.torn and head is None else offset
    return found


def heads_of(lines: Iterable[bytes]) -> Iterator[tuple[int, bytes, EntryHead | None]]:
    """Each line after a header with its number in the file and, if it is an entry, its head.

    A line cut short may look whole. But who cannot read a line does not name it as the parent
    of the next one: only lines that are not named so are parsed to be sure.
    """
    quick = _QuickHead()
    held: tuple[int, bytes, EntryHead] | None = None
    for number, line in enumerate(lines, 2):
        head = guess = quick(line)
        if guess is None:
            head = _parsed_head(line)
        if held is not None:
            is_named = head is not None and head.parent_id == held[2].id
            yield held if is_named else (*held[:2], _parsed_head(held[1]))
        if guess is None:
            held = None
            yield number, line, head
        else:
            held = number, line, guess
    if held is not None:
        yield *held[:2], _parsed_head(held[1])


class _QuickHead:
    """Heads of lines in the usual key order; None for any other line."""

    def __init__(self) -> None:
        self._names: dict[str | None, str | None] = {}  # types and details are few: one string each
        self._id: str | None = None

    def __call__(self, line: bytes) -> EntryHead | None:
        found = _HEAD.match(line[:_HEAD_LENGTH].decode("latin-1"))
        if found is None:
            return None
        kind, entry_id, parent, detail = found.groups()
        if detail is None and kind in _HAS_DETAIL:
            return None
        if parent == self._id:  # nearly always: share the string
            parent = self._id
        self._id = entry_id
        name = self._names.setdefault
        return EntryHead(entry_id, parent, name(kind, kind) or kind, name(detail, detail))
