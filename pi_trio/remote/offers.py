"""What a runtime may offer besides `Runtime`: files, keys, and a look at the machine it runs on.

Not every runtime has all of it: whoever uses a part asks for it with `isinstance`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from attrs import frozen

from pi_trio.remote.interface import Snapshot

__all__ = [
    "CompletesFiles",
    "KeepsKeys",
    "KeptSession",
    "KeyPlace",
    "LooksAround",
    "SessionShelf",
    "Surroundings",
]


@frozen(kw_only=True)
class KeptSession:
    """A session file in a list. `modified` is the time of its last message, in seconds since 1970.

    `excerpt` is where a message has what was searched for.
    """

    path: str
    id: str
    cwd: str
    name: str | None
    modified: float
    first_message: str
    parent_session: str | None = None
    excerpt: str = ""


@frozen
class KeyPlace:
    """A provider that needs a key. `source` says where its key is from, None if it has none."""

    id: str
    name: str
    source: str | None = None


@frozen(kw_only=True)
class Surroundings:
    """What a person should know of the place before the first prompt, in words; empty where there is nothing.

    `sessions` counts the session files of the folder, `local` are models that are served on this machine.
    """

    version: str
    sessions: int = 0
    trust: str = ""
    local: tuple[str, ...] = ()
    pi: str = ""


@runtime_checkable
class SessionShelf(Protocol):
    """Looks after session files."""

    async def list_sessions(self, words: str = "", *, everywhere: bool = False) -> Sequence[KeptSession]:
        """The sessions of the working directory, or of all, that have all the words."""

    async def preview_session(self, path: str) -> tuple[str, str]:
        """The last prompt in a file, and the last answer; empty where there is none."""

    async def rename_session(self, path: str, name: str) -> None:
        """Name a session; empty takes the name away. Raises `SessionError`s."""

    async def delete_session(self, path: str) -> bool:
        """Delete a session; whether it is in the trash. Raises `UsageError` for one that is open here."""

    async def copy_session(self, path: str, folder: str) -> Snapshot:
        """Open a copy of a session, with all its branches, that works in another folder.

        Raises `UsageError` if that is no folder.
        """


@runtime_checkable
class KeepsKeys(Protocol):
    """Stores the keys of providers."""

    async def key_places(self) -> Sequence[KeyPlace]:
        """The providers that need a key."""

    async def store_key(self, session_id: str, provider: str, key: str) -> str:
        """Store a key for its owner alone; the file that it is in.

        A session that has the demo model for want of a key gets a model of the provider. Raises
        `ConfigError` and `StorageError`.
        """


@runtime_checkable
class LooksAround(Protocol):
    """Knows the place that a session works in."""

    async def surroundings(self, session_id: str) -> Surroundings:
        """What there is. Servers on this machine have a tenth of a second to answer, once."""


@runtime_checkable
class CompletesFiles(Protocol):
    """Finds files by parts of their names."""

    async def complete_file(self, session_id: str, word: str) -> Sequence[str]:
        """The files of the session's folder that a word may mean, the likeliest first; folders end in `/`."""
