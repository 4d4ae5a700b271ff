"""Where a server is and who may use it: addresses, the token, and what both sides must agree on."""

from __future__ import annotations

import ipaddress
import os
import secrets
import stat
from pathlib import Path
from urllib.parse import urlsplit

from pi_trio.errors import ConfigError, UsageError
from pi_trio.private_files import write_new

__all__ = [
    "DEFAULT_URL",
    "LOOPBACK_NAMES",
    "PATH",
    "PORT",
    "PROTOCOL",
    "checked_url",
    "is_loopback",
    "made_token",
    "read_token",
    "token_path",
    "web_token_path",
]

PROTOCOL = 1
PATH = f"/v{PROTOCOL}"
PORT = 7717
DEFAULT_URL = f"ws://127.0.0.1:{PORT}"
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")

_TOKEN_BYTES = 32
_SHORTEST_TOKEN = 20


def token_path(agent_dir: Path) -> Path:
    """The file that holds the token of this user's servers."""
    return agent_dir / "server-token"


def web_token_path(agent_dir: Path) -> Path:
    """The file that holds the token for browsers. It stands in an address, so it opens nothing else."""
    return agent_dir / "web-token"


def made_token(path: Path) -> str:
    """The token in a file, which is made if it is not there. Raises `ConfigError`, `StorageError`."""
    if not os.path.lexists(path):
        write_new(path, f"{secrets.token_urlsafe(_TOKEN_BYTES)}\n".encode())
    return read_token(path)


def read_token(path: Path) -> str:
    """The token in a file. Raises `ConfigError` if there is none, or others can read it."""
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            token = file.read(4096).decode("ascii", "replace").strip()
    except OSError as error:
        raise ConfigError(f"the token {path} cannot be read: {error.strerror}") from error
    if mode & 0o077:
        raise ConfigError(f"the token {path} can be read by others: chmod 600 {path}")
    if len(token) < _SHORTEST_TOKEN or not token.isprintable() or " " in token:
        raise ConfigError(f"{path} holds no token of a server")
    return token


def is_loopback(host: str) -> bool:
    """Whether an address or name is this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def checked_url(url: str) -> str:
    """The address of a server, without a path. Raises `UsageError` for one that would not be safe."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise UsageError(f"{url!r} is no address of a server: {error}") from error
    if parts.scheme not in ("ws", "wss") or not host or parts.path.strip("/") or parts.query:
        raise UsageError(f"{url!r} is no address of a server: they are like {DEFAULT_URL}")
    if parts.username is not None or parts.password is not None:
        raise UsageError("an address has no password: the token is read from a file (--token-file)")
    if parts.scheme == "ws" and not is_loopback(host):
        raise UsageError(f"{url} is not encrypted: the address of another machine begins with wss://")
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}:{port or (443 if parts.scheme == 'wss' else PORT)}"
