"""Where an API key comes from: what was passed, auth.json, models.json, the environment.

A key never stands in an error or a log; what a person sees of it is its source.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

import trio
from attrs import field, frozen

from pi_trio.errors import ConfigError
from pi_trio.llm.auth_file import read_entries

__all__ = ["Auth", "Credential", "ProviderKeys", "checked_key", "literal"]

COMMAND_TIMEOUT = 10.0
_NO_KEY = "no key needed"
_REFERENCE = re.compile(r"\$(?:(\$|!)|\{(\w+)\}|(\w+))")


@frozen
class Credential:
    """A key and where it came from, in words. `headers` are those of the provider, resolved."""

    key: str = field(repr=False)
    source: str
    headers: Mapping[str, str] = field(factory=dict, repr=False)


@frozen
class ProviderKeys:
    """Where a provider's key may be: models.json's `apiKey`, and environment variables.

    `place` says where `configured` stands. A `keyless` provider needs none. `headers` are
    values to resolve in the same way as keys.
    """

    provider: str
    configured: str | None = field(default=None, repr=False)
    variables: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(factory=dict, repr=False)
    keyless: bool = False
    place: str = "in models.json"


@frozen
class _Place:
    """A value as it was found. A `literal` one is the key itself, whatever it looks like."""

    value: str
    source: str
    literal: bool = False


class Auth:
    """Finds credentials. auth.json is read anew each time, so that a login counts at once.

    A value in auth.json or models.json may name variables (`$NAME`, `${NAME}`; `$$` is a
    dollar sign), or be the output of a command (`!command`).
    """

    def __init__(self, agent_dir: Path, environ: Mapping[str, str] = os.environ) -> None:
        self.path: Path = agent_dir / "auth.json"
        self._environ = environ

    async def resolve(self, keys: ProviderKeys, explicit: str | None = None) -> Credential:
        """The credential to use.

        Raises `ConfigError` if there is none, or if it cannot be sent or read. Cancelling
        stops a command that is being asked.
        """
        headers = {name: await self._expand(value) or "" for name, value in keys.headers.items()}
        if keys.keyless:
            return Credential("", _NO_KEY, headers)
        place = self._find(keys, explicit)
        if place is None:
            raise ConfigError(self._how_to_get_one(keys))
        key = place.value if place.literal else await self._expand(place.value)
        if not key or not key.strip():
            raise ConfigError(_unset(place))
        return Credential(checked_key(key.strip(), place.source), place.source, headers)

    def check(self, keys: ProviderKeys, explicit: str | None = None) -> None:
        """See whether there is a key, running no commands. Raises `ConfigError` like `resolve`."""
        if keys.keyless:
            return
        place = self._find(keys, explicit)
        if place is None:
            raise ConfigError(self._how_to_get_one(keys))
        if not self._is_certain(place):
            raise ConfigError(_unset(place))

    def source(self, keys: ProviderKeys) -> str | None:
        """Where the key would come from, in words, without running commands; None without one.

        Raises `ConfigError` if auth.json cannot be read.
        """
        if keys.keyless:
            return _NO_KEY
        place = self._find(keys, None)
        if place is None:
            return None
        return place.source if self._is_certain(place) else None

    def _is_certain(self, place: _Place) -> bool:
        """Whether a value will come of it, as far as can be said without running a command."""
        certain = place.literal or place.value.startswith("!")
        return certain or bool((_interpolated(place.value, self._environ) or "").strip())

    def _find(self, keys: ProviderKeys, explicit: str | None) -> _Place | None:
        """The first of the four places that has a value. A stored one owns the provider."""
        if explicit:
            return _Place(explicit, "key that was passed", literal=True)
        stored = self._stored(keys.provider)
        if stored is not None:
            return _Place(stored, f"key from {self.path}")
        if keys.configured is not None:
            return _Place(keys.configured, f"key of {keys.provider} {keys.place}")
        for name in keys.variables:
            if value := self._environ.get(name, "").strip():
                return _Place(value, f"key from {name}", literal=True)
        return None

    def _stored(self, provider: str) -> str | None:
        entry = read_entries(self.path).get(provider)
        if not isinstance(entry, dict):
            return None
        if entry.get("type") != "api_key":
            raise ConfigError(
                f"{self.path} holds a login for {provider} that is not an API key; "
                "store an API key, or remove the entry to use another source."
            )
        key = entry.get("key")
        return key if isinstance(key, str) else None

    async def _expand(self, value: str) -> str | None:
        if value.startswith("!"):
            return await _output_of(value[1:])
        return _interpolated(value, self._environ)

    def _how_to_get_one(self, keys: ProviderKeys) -> str:
        variable = f"set {keys.variables[0]}, " if keys.variables else ""
        return (
            f"There is no API key for {keys.provider}: {variable}store one "
            f"with `pi-trio auth login {keys.provider}`, "
            'or pass --api-key. A server that wants none takes "apiKey": "none" in models.json.'
        )


def _unset(place: _Place) -> str:
    return f"The {place.source} is empty, or names a variable that is not set."


def literal(key: str) -> str:
    """The key as auth.json has to have it so that it is taken as it is."""
    escaped = key.replace("$", "$$")
    return f"${escaped}" if escaped.startswith("!") else escaped


def _interpolated(value: str, environ: Mapping[str, str]) -> str | None:
    """The value with its variables filled in; None if one of them is not set."""
    missing = False

    def fill(match: re.Match[str]) -> str:
        nonlocal missing
        literal, braced, bare = match.groups()
        if literal:
            return literal
        found = environ.get(braced or bare, "")
        missing = missing or not found
        return found

    filled = _REFERENCE.sub(fill, value)
    return None if missing else filled


async def _output_of(command: str) -> str:
    """The first lines a shell command prints. Raises `ConfigError` if it fails or takes too long."""
    output: bytes | None = None
    with trio.move_on_after(COMMAND_TIMEOUT):
        done = await trio.run_process(
            ["/bin/sh", "-c", command],
            stdin=subprocess.DEVNULL,
            capture_stdout=True,
            stderr=subprocess.DEVNULL,
            check=False,
            start_new_session=True,
            deliver_cancel=_kill_group,
        )
        if done.returncode != 0:
            raise ConfigError(f"The command for the API key failed with status {done.returncode}.")
        output = done.stdout
    if output is None:
        raise ConfigError(f"The command for the API key took more than {COMMAND_TIMEOUT:g} seconds.")
    return output.decode("utf-8", "replace").strip()


async def _kill_group(process: trio.Process) -> None:
    """Stop the command with all that it started, or its pipe would stay open."""
    os.killpg(process.pid, signal.SIGKILL)


def checked_key(key: str, source: str) -> str:
    """The key, if HTTP can carry it. Raises `ConfigError`, which does not repeat it."""
    try:
        key.encode("latin-1")
    except UnicodeEncodeError:
        sendable = False
    else:
        sendable = key.isprintable()
    if not sendable:
        raise ConfigError(
            f"The {source} holds line breaks or letters that cannot be sent; check how it was stored."
        )
    return key
