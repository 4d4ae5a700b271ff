"""What the runtime of this process offers besides running sessions; see `pi_trio.remote.offers`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import trio

from pi_trio.errors import ConfigError, StorageError, UsageError
from pi_trio.llm import demo
from pi_trio.llm.auth import checked_key, literal
from pi_trio.llm.auth_file import read_entries, store_entry
from pi_trio.llm.catalogue import Provider
from pi_trio.llm.protocol import Model
from pi_trio.llm.registry import Models
from pi_trio.remote.interface import Snapshot
from pi_trio.remote.offers import KeptSession, KeyPlace, Surroundings
from pi_trio.resources.config import RuntimeConfig
from pi_trio.resources.file_completion import FileCompletion
from pi_trio.resources.paths import absolute, find_pi_dir, is_folder
from pi_trio.resources.trust import Trust
from pi_trio.session.preview import last_exchange
from pi_trio.session.repository import SessionRepository
from pi_trio.session.search import Hit
from pi_trio.session.session import Session
from pi_trio.written_path import written_path

__all__ = ["Offers"]

SMALL_WINDOW = 16_000
"""Tokens below which an agent can hardly work."""


class Offers(ABC):
    """The part of a runtime that looks after files, keys and the machine."""

    config: RuntimeConfig
    registry: Models
    repository: SessionRepository

    def __init__(self) -> None:
        self._completions: dict[Path, FileCompletion] = {}
        self._local: Sequence[Provider] | None = None

    # ------------------------------------------------------------------ session files

    async def list_sessions(self, words: str = "", *, everywhere: bool = False) -> Sequence[KeptSession]:
        """See `SessionShelf`. Cancelling leaves a search that goes on to its end by itself."""

        def look() -> list[KeptSession]:
            if words.strip():
                return [_kept(hit) for hit in self.repository.search(words, everywhere=everywhere)]
            return [_kept(Hit(each, "", False)) for each in self.repository.list(everywhere=everywhere)]

        return await trio.to_thread.run_sync(look, abandon_on_cancel=True)

    async def preview_session(self, path: str) -> tuple[str, str]:
        """See `SessionShelf`."""
        try:
            return await trio.to_thread.run_sync(last_exchange, written_path(path), abandon_on_cancel=True)
        except OSError as error:
            raise StorageError(f"{path} cannot be read: {error.strerror}", Path(path)) from error

    async def rename_session(self, path: str, name: str) -> None:
        """See `SessionShelf`."""
        known = self.open_file(written_path(path))
        if known is not None:
            await self.set_session_name(known, name or None)
        else:
            await trio.to_thread.run_sync(self.repository.rename, path, name)

    async def delete_session(self, path: str) -> bool:
        """See `SessionShelf`."""
        if self.open_file(written_path(path)) is not None:
            raise UsageError("This session is open here: close it first.")
        return (await trio.to_thread.run_sync(self.repository.delete, path))[1]

    async def copy_session(self, path: str, folder: str) -> Snapshot:
        """See `SessionShelf`."""
        place = absolute(folder)
        if not is_folder(place):
            raise UsageError(f"{place} is not a folder.")
        there = SessionRepository(self.config.agent_dir, place, self.config.session_dir)

        def copy() -> Session:
            return there.copy(self.repository.open(path, writable=False))

        return self.host(await trio.to_thread.run_sync(copy))

    # ------------------------------------------------------------------ keys

    async def key_places(self) -> Sequence[KeyPlace]:
        """See `KeepsKeys`."""
        providers = (each for each in self.registry.providers if not each.keys.keyless)
        return [KeyPlace(each.id, each.name, self.registry.key_source(each.id)) for each in providers]

    async def store_key(self, session_id: str, provider: str, key: str) -> str:
        """See `KeepsKeys`."""
        if not key.strip():
            raise ConfigError("No key was given; nothing was stored.")
        known, path = self.registry.provider(provider), self.registry.auth.path
        entry = {"type": "api_key", "key": literal(checked_key(key.strip(), "key that was given"))}
        await trio.to_thread.run_sync(store_entry, path, known.id, entry)
        self.registry.reload()
        if known.models and not self.config.demo and self.model_of(session_id).provider == demo.PROVIDER:
            await self.set_model(session_id, known.models[0].reference)
        return str(path)

    # ------------------------------------------------------------------ the machine

    async def discover_local(self) -> Sequence[Provider]:
        """The model servers of this machine, asked for once; none where the demo was asked for."""
        if self._local is None:
            self._local = () if self.config.demo else await self.registry.discover()
        return self._local

    async def surroundings(self, session_id: str) -> Surroundings:
        """See `LooksAround`."""
        local = await self.discover_local()
        pi = await trio.to_thread.run_sync(_pi_folder, self.config.agent_dir, abandon_on_cancel=True)
        return Surroundings(
            version=_version(),
            sessions=await trio.to_thread.run_sync(self.repository.count, abandon_on_cancel=True),
            trust=_trust(await self.trust(session_id)),
            local=tuple(_served(provider) for provider in local),
            pi=pi,
        )

    async def complete_file(self, session_id: str, word: str) -> Sequence[str]:
        """See `CompletesFiles`."""
        folder = self.folder_of(session_id)
        return await self._completions.setdefault(folder, FileCompletion(folder)).complete(word)

    # ------------------------------------------------------------------ of the runtime

    @abstractmethod
    def open_file(self, path: Path) -> str | None:
        """The id of the open session of this file."""

    @abstractmethod
    def host(self, session: Session) -> Snapshot:
        """Open a session."""

    @abstractmethod
    def folder_of(self, session_id: str) -> Path:
        """The folder that an open session works in."""

    @abstractmethod
    def model_of(self, session_id: str) -> Model:
        """The model of an open session."""

    @abstractmethod
    async def set_model(self, session_id: str, reference: str) -> Model:
        """See `Runtime`."""

    @abstractmethod
    async def set_session_name(self, session_id: str, name: str | None) -> None:
        """See `Runtime`."""

    @abstractmethod
    async def trust(self, session_id: str) -> Trust:
        """See `Runtime`."""


def _kept(hit: Hit) -> KeptSession:
    summary = hit.summary
    return KeptSession(
        path=str(summary.path),
        id=summary.id,
        cwd=summary.cwd,
        name=summary.name,
        modified=summary.modified.timestamp(),
        first_message=summary.first_message[:400],
        parent_session=summary.parent_session,
        excerpt=hit.excerpt,
    )


def _version() -> str:
    try:
        return version("pi-trio")
    except PackageNotFoundError:
        return ""


def _trust(trust: Trust) -> str:
    if not trust.resources:
        return "nothing here needs trust"
    return "this folder is trusted" if trust.trusted else "what this folder brings along is not used · /trust"


def _served(provider: Provider) -> str:
    names = ", ".join(
        f"{model.id} ({model.context_window:,} tokens{_too_small(model.context_window)})"
        for model in provider.models
    )
    return f"{provider.name}: {names}"


def _too_small(window: int) -> str:
    return ", too few for much work" if window < SMALL_WINDOW else ""


def _new_keys(folder: Path, agent_dir: Path) -> int:
    """How many providers have a key in pi's directory and none here."""
    try:
        here = read_entries(agent_dir / "auth.json")
        there = read_entries(folder / "auth.json")
    except ConfigError:
        return 0  # `/import pi` tells what is wrong with it
    return sum(
        isinstance(entry, dict) and entry.get("type") == "api_key" and provider not in here
        for provider, entry in there.items()
    )


def _pi_folder(agent_dir: Path) -> str:
    """What pi's own directory holds that is not here yet, unless it is ours. By names: what is imported
    keeps its own.
    """
    folder = find_pi_dir()
    if not is_folder(folder) or folder.resolve() == agent_dir.resolve():
        return ""

    def new(pattern: str) -> int:
        here = {path.name for path in agent_dir.glob(pattern)}
        return sum(path.name not in here for path in folder.glob(pattern))

    counts = {
        "session": new("sessions/*/*.jsonl"),
        "skill": new("skills/[!.]*"),
        "key": _new_keys(folder, agent_dir),
    }
    told = ", ".join(f"{count} {what}{'s' * (count != 1)}" for what, count in counts.items() if count)
    return f"{folder}: {told}" if told else ""
