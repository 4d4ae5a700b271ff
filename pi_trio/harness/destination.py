"""What one would find at another place of the tree: context, model, and how files have changed since."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import trio
from attrs import define, field

from pi_trio.remote.interface import Destination
from pi_trio.session.branching import before, prompt_text
from pi_trio.session.digest import digest
from pi_trio.session.session import Session
from pi_trio.tools.failure import ToolError
from pi_trio.tools.files import digest as file_digest

__all__ = ["FileRecords"]

AT_ONCE = 100
"""Entries that are looked at before others have their turn."""

MOST_FILES = 1000
"""Files that are compared at most, the ones touched last."""

LARGE = 64 * 1024 * 1024
"""Bytes from which on a file is not compared: too long to wait for."""

Touch: TypeAlias = tuple[str, str | None, str | None]
"""A path, and the SHA-256 of what was there before and after a call; None for no file."""


@define
class _Seen:
    """What the way from the leaf up has told so far: the nearest counts."""

    context: int | None = None
    summarised: bool = False
    model: str | None = None
    thinking_level: str | None = None
    files: dict[str, str | None] = field(factory=dict)


class FileRecords:
    """Looks at the places of one session. What its results tell of files is read once."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._touches: dict[str, tuple[Touch, ...]] = {}

    async def destination(self, entry_id: str) -> Destination:
        """What going to an entry would find; at a prompt, before it. Raises `UsageError`."""
        session = self._session
        at_prompt = bool(prompt_text(session.entry(entry_id)))
        leaf_id = before(session.tree, entry_id) if at_prompt else entry_id
        seen = await self._look_up(leaf_id)
        later = await self._changed_later(leaf_id)
        files = dict(list({**later, **seen.files}.items())[-MOST_FILES:])
        differ = await trio.to_thread.run_sync(_differing, files, abandon_on_cancel=True)
        return Destination(
            leaf_id=leaf_id,
            context=0 if seen.model is None and not seen.summarised else seen.context,
            model=seen.model,
            thinking_level=seen.thinking_level,
            differ=tuple(path for path, known in differ.items() if known),
            compared=len(differ),
        )

    async def _look_up(self, leaf_id: str | None) -> _Seen:
        seen = _Seen()
        for count, head in enumerate(self._session.tree.up(leaf_id)):
            if count % AT_ONCE == 0:
                await trio.lowlevel.checkpoint()
            match head.type, head.detail:
                case "message", "assistant" if seen.model is None or seen.context is None:
                    self._take_answer(seen, self._session.raw(head.id))
                case "message", "toolResult":
                    for path, _, after in self._touched(head.id):
                        seen.files.setdefault(path, after)
                case "thinking_level_change", _ if seen.thinking_level is None:
                    seen.thinking_level = str(self._session.raw(head.id).get("thinkingLevel") or "off")
                case "compaction", _:
                    seen.summarised = True
        seen.files = dict(reversed(seen.files.items()))  # those touched last come last
        return seen

    def _take_answer(self, seen: _Seen, entry: Mapping[str, Any]) -> None:
        told = digest([entry])
        seen.model = seen.model or told.model or None
        if seen.context is None and not seen.summarised:
            seen.context = told.context or None

    async def _changed_later(self, leaf_id: str | None) -> dict[str, str | None]:
        """What was there, of files that were touched only after the way to here parts from there."""
        session = self._session
        shared = set(session.tree.path(leaf_id))
        files: dict[str, str | None] = {}
        for count, head in enumerate(session.tree.up(session.get_leaf_id())):
            if count % AT_ONCE == 0:
                await trio.lowlevel.checkpoint()
            if head.id in shared:
                break
            if head.detail == "toolResult":
                files.update((path, earlier) for path, earlier, _ in reversed(self._touched(head.id)))
        return files

    def _touched(self, entry_id: str) -> tuple[Touch, ...]:
        touches = self._touches.get(entry_id)
        if touches is None:
            line = self._session.line(entry_id)
            touches = tuple(_touches(self._session.raw(entry_id))) if b'"files"' in line else ()
            self._touches[entry_id] = touches
        return touches


def _touches(entry: Mapping[str, Any]) -> Iterator[Touch]:
    """What a result tells of files; see `tools.changes`. Anything else in its place is passed over."""
    message = entry.get("message")
    details = message.get("details") if isinstance(message, Mapping) else None
    files = details.get("files") if isinstance(details, Mapping) else None
    for each in files if isinstance(files, list) else ():
        match each:
            case {"path": str(path), "before": str() | None as earlier, "after": str() | None as after}:
                if earlier is not None or after is not None:  # else it was read in part
                    yield path, earlier, after


def _differing(files: Mapping[str, str | None]) -> dict[str, bool]:
    """Whether each file is another now. One that cannot be read is left out: nothing is known of it."""
    found: dict[str, bool] = {}
    for path, known in files.items():
        try:
            if Path(path).is_absolute() and not _is_large(Path(path)):
                found[path] = file_digest(Path(path)) != known
        except (OSError, ToolError, ValueError):
            continue
    return found


def _is_large(path: Path) -> bool:
    return path.exists() and path.stat().st_size > LARGE
