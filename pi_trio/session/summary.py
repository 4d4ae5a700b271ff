"""What a list of sessions shows of one, without reading the file as a whole into memory.

The first message is near the start and the last near the end. The name may be anywhere: the
file is searched for it from its end, in blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from attrs import define, frozen

from pi_trio.messages import UserMessage, text_of
from pi_trio.session.entries import MessageEntry, SessionHeader, SessionInfoEntry, entry_from_json
from pi_trio.session.scan import entry_object

__all__ = ["SessionSummary", "blocks_backward", "summarize"]

_BLOCK = 1 << 20
_LONGEST = 4 << 20
"""Bytes from which on a line is data, not something that was said."""
_START = 1 << 20
"""Bytes in which the first message is looked for."""


@frozen(kw_only=True)
class SessionSummary:
    """A session in a list. `modified` is the time of the last message, not that of the file."""

    path: Path
    id: str
    cwd: str
    name: str | None
    modified: datetime
    first_message: str
    parent_session: str | None = None


def summarize(path: Path, header: SessionHeader) -> SessionSummary:
    """What a list shows of the session at `path`. Raises `OSError`."""
    with path.open("rb") as file:
        first = _first_message(file)
        end = _End()
        for block in blocks_backward(file):
            end.look(block)
            if end.is_complete:
                break
        written = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    return SessionSummary(
        path=path,
        id=header.id,
        cwd=header.cwd,
        name=end.name or None,
        modified=_time(end.last_message) or _time(header.timestamp) or written,
        first_message=first,
        parent_session=header.parent_session,
    )


def _first_message(file: BinaryIO) -> str:
    file.seek(0)
    while file.tell() < _START and (line := file.readline(_START)):
        if b'"user"' in line:
            entry = entry_from_json(entry_object(line) or {})
            if isinstance(entry, MessageEntry) and isinstance(entry.message, UserMessage):
                return text_of(entry.message.content)
    return ""


@define
class _End:
    """What is looked for from the end of the file on."""

    name: str | None = None
    last_message: str | None = None

    @property
    def is_complete(self) -> bool:
        return self.name is not None and self.last_message is not None

    def look(self, block: bytes) -> None:
        """Look through the lines of a block, the last one first."""
        needs_name = self.name is None and b'"session_info"' in block
        if not needs_name and self.last_message is not None:
            return
        for line in reversed(block.split(b"\n")):
            if self.name is None and b'"session_info"' in line:
                self._take_name(entry_object(line) or {})
            elif self.last_message is None and b'"message"' in line:
                self._take_time(entry_object(line) or {})

    def _take_name(self, data: Mapping[str, Any]) -> None:
        entry = entry_from_json(data)
        if isinstance(entry, SessionInfoEntry):
            self.name = " ".join((entry.name or "").split())

    def _take_time(self, data: Mapping[str, Any]) -> None:
        message = data.get("message")
        if isinstance(message, dict) and message.get("role") in ("user", "assistant"):
            self.last_message = str(data.get("timestamp"))


def blocks_backward(file: BinaryIO) -> Iterator[bytes]:
    """The file in blocks of whole lines, the last block first. Lines of many megabytes are left out."""
    start = file.seek(0, 2)
    rest = b""  # the end of a line that begins further up
    is_too_long = False  # … and was left out
    while start > 0:
        end, start = start, max(0, start - _BLOCK)
        file.seek(start)
        block = file.read(end - start)
        if is_too_long:
            block = block[: block.rfind(b"\n") + 1]
            is_too_long = not block
        block += rest
        cut = (block.find(b"\n") + 1 or len(block)) if start else 0
        rest = block[:cut]
        if len(rest) > _LONGEST:
            rest, is_too_long = b"", True
        yield block[cut:]


def _time(text: str | None) -> datetime | None:
    try:
        time = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)
