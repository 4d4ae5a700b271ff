"""What a runtime may offer besides running sessions, for the screen; see `pi_trio.remote.offers`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from pi_trio.errors import UsageError
from pi_trio.remote.offers import (
    CompletesFiles,
    KeepsKeys,
    KeptSession,
    KeyPlace,
    LooksAround,
    SessionShelf,
    Surroundings,
)

if TYPE_CHECKING:
    from pi_trio.remote.interface import Runtime, Snapshot
    from pi_tui.bridge import Bridge

__all__ = ["Offered", "copy_session"]

T = TypeVar("T")


class Offered:
    """All methods raise the runtime's `PiError`s, and `UsageError` for what it does not offer."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge

    async def complete_file(self, session_id: str, word: str) -> Sequence[str]:
        """Files whose names a word may mean; none where nobody can tell."""

        async def find(runtime: Runtime) -> Sequence[str]:
            return (
                await runtime.complete_file(session_id, word) if isinstance(runtime, CompletesFiles) else ()
            )

        return await self._bridge.call(find)

    async def surroundings(self, session_id: str) -> Surroundings | None:
        """What there is around a session; None where nobody can tell."""

        async def look(runtime: Runtime) -> Surroundings | None:
            return await runtime.surroundings(session_id) if isinstance(runtime, LooksAround) else None

        return await self._bridge.call(look)

    # ---------------------------------------------------------------- keys

    async def key_places(self) -> Sequence[KeyPlace]:
        """The providers that need a key."""
        return await self._bridge.call(lambda runtime: _keys(runtime).key_places())

    async def store_key(self, session_id: str, provider: str, key: str) -> str:
        """Store a key; the file that it is in. The session may have another model then."""
        return await self._bridge.call(lambda runtime: _keys(runtime).store_key(session_id, provider, key))

    # ---------------------------------------------------------------- session files

    async def sessions(self, words: str, *, everywhere: bool) -> Sequence[KeptSession]:
        """The session files that have all the words."""
        return await self._on_shelf(lambda shelf: shelf.list_sessions(words, everywhere=everywhere))

    async def preview(self, path: str) -> tuple[str, str]:
        """The last prompt and the last answer in a file."""
        return await self._on_shelf(lambda shelf: shelf.preview_session(path))

    async def rename(self, path: str, name: str) -> None:
        """Name a session."""
        await self._on_shelf(lambda shelf: shelf.rename_session(path, name))

    async def delete(self, path: str) -> bool:
        """Delete a session; whether it is in the trash."""
        return await self._on_shelf(lambda shelf: shelf.delete_session(path))

    async def _on_shelf(self, command: Callable[[SessionShelf], Awaitable[T]]) -> T:
        return await self._bridge.call(lambda runtime: command(_shelf(runtime)))


async def copy_session(runtime: Runtime, path: str, folder: str) -> Snapshot:
    """Open a copy of a session that works in another folder."""
    return await _shelf(runtime).copy_session(path, folder)


def _shelf(runtime: Runtime) -> SessionShelf:
    if not isinstance(runtime, SessionShelf):
        raise UsageError("this runtime does not show its session files")
    return runtime


def _keys(runtime: Runtime) -> KeepsKeys:
    if not isinstance(runtime, KeepsKeys):
        raise UsageError("the server keeps the keys: run pi-trio auth login on its machine")
    return runtime
