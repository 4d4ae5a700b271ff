"""Where a server listens and what encrypts it: `pi-trio serve` and `pi-tui --serve` have the same rules."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from pi_trio.errors import ConfigError, UsageError

if TYPE_CHECKING:
    import socket
    import ssl

__all__ = ["add_encryption_arguments", "encryption", "host_in_url", "listening_socket"]

_LAST_PORT = 65_535


def add_encryption_arguments(parser: argparse._ActionsContainer) -> None:
    """Add what a server needs that can be reached from elsewhere."""
    parser.add_argument("--cert", metavar="FILE", help="the certificate, for encrypted connections")
    parser.add_argument("--key", metavar="FILE", help="the certificate's key")
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="a name by which clients call this server (repeatable)",
    )


def encryption(host: str, cert: str | None, key: str | None) -> ssl.SSLContext | None:
    """What encrypts connections to a host; None for this machine alone.

    Raises `UsageError` where it is missing, and `ConfigError` if it is wrong.
    """
    import ssl

    from pi_trio.remote.access import is_loopback

    if not cert or not key:
        if cert or key:
            raise UsageError("--cert and --key go together")
        if not is_loopback(host):
            raise UsageError(
                f"{host} can be reached from elsewhere, so it needs --cert and --key"
                " (or keep to 127.0.0.1 and reach it through ssh -L)"
            )
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(cert, key)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"{cert} and {key} cannot be used: {error}") from error
    return context


def listening_socket(host: str, port: int) -> socket.socket:
    """A socket that listens at an address; port 0 takes a free one. Raises `UsageError`."""
    import errno
    import ipaddress
    import socket

    try:
        version = ipaddress.ip_address(host).version
        if not 0 <= port <= _LAST_PORT:
            raise ValueError
    except ValueError:
        raise UsageError(f"{host_in_url(host)}:{port} is no address to listen on") from None
    try:
        return socket.create_server((host, port), family=socket.AF_INET if version == 4 else socket.AF_INET6)
    except OSError as error:
        why = "it is taken, perhaps by another server" if error.errno == errno.EADDRINUSE else error.strerror
        raise UsageError(f"{host_in_url(host)}:{port} cannot be listened on: {why}") from error


def host_in_url(host: str) -> str:
    """An address as it stands in a URL and in the header `Host`."""
    return f"[{host}]" if ":" in host else host
