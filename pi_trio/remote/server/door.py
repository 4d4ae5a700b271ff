"""Who gets in: the head of a request is read and judged before anything else is done with it.

A page in a browser must not get in, whatever name it reached this machine by; so `Host` must
be a name of ours and `Origin`, if there is one, the same. And nobody gets in without the token.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection
from urllib.parse import parse_qs, urlsplit

import h11
import trio
from attrs import field, frozen

from pi_trio.remote.access import LOOPBACK_NAMES, PATH

__all__ = ["HEAD_BYTES", "Admitted", "Door", "Refused", "read_head", "refuse"]

HEAD_BYTES = 16 * 1024
"""How large the head of a request may be."""
_LONGEST_ID = 64


class Refused(Exception):  # noqa: N818 - it is no fault of this program
    """A request that is not served: the status and a sentence."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status: int = status
        self.reason: str = reason


@frozen
class Admitted:
    """A client that got in, under the name that it gave itself."""

    client_id: str


@frozen(kw_only=True)
class Door:
    """`names` are those by which the server may be called, besides the loopback ones; `port` is its own."""

    token: str = field(repr=False)
    port: int
    names: Collection[str] = ()
    encrypted: bool = False

    def judge(self, head: h11.Request) -> Admitted:
        """The client that a request is from. Raises `Refused`."""
        self.check_caller(_header(head, b"host"), _header(head, b"origin"))
        scheme, _, token = _header(head, b"authorization").partition(" ")
        if not self.is_token(token.strip()) or scheme.lower() != "bearer":
            raise Refused(401, "the token is missing or wrong")
        target = urlsplit(head.target.decode("ascii", "replace"))
        if target.path != PATH:
            raise Refused(404, f"there is only {PATH} here: another version may speak another protocol")
        client_id = "".join(parse_qs(target.query).get("client", ()))
        if not client_id or len(client_id) > _LONGEST_ID:
            raise Refused(400, "a client names itself: ?client=…")
        return Admitted(client_id)

    def check_caller(self, host: str, origin: str) -> None:
        """Look at what a request says it came to and from; `origin` may be empty. Raises `Refused`."""
        allowed = {name.lower() for name in (*LOOPBACK_NAMES, *self.names)}
        usual = 443 if self.encrypted else 80
        with_port = {f"{name}:{self.port}" for name in allowed} | (allowed if self.port == usual else set())
        if host.lower() not in with_port:
            raise Refused(403, "this is not a name of this server (--allow-host adds one)")
        ours = f"{'https' if self.encrypted else 'http'}://{host}"
        if origin and origin.lower() != ours.lower():
            raise Refused(403, "pages of elsewhere are not served")

    def is_token(self, said: str) -> bool:
        """Whether this is the token; how long the answer takes tells nothing of it."""
        return secrets.compare_digest(said.encode("utf-8", "replace"), self.token.encode())


def _header(head: h11.Request, name: bytes) -> str:
    """The value of a header, all of them if it is there more than once."""
    return ", ".join(value.decode("latin-1") for key, value in head.headers if key == name)


async def read_head(stream: trio.abc.Stream) -> tuple[h11.Request, bytes]:
    """The head of a request, and all bytes that were read for it. Raises `Refused`, and `trio`'s errors."""
    reading, data = h11.Connection(h11.SERVER), b""
    try:
        while True:
            event = reading.next_event()
            if isinstance(event, h11.Request):
                return event, data
            if event is not h11.NEED_DATA:
                raise Refused(400, "this is no request")
            piece = bytes(await stream.receive_some(HEAD_BYTES))
            data += piece
            if len(data) > HEAD_BYTES:
                raise Refused(431, "the head of the request is too large")
            reading.receive_data(piece)
    except h11.RemoteProtocolError as error:
        raise Refused(error.error_status_hint, f"this is no request: {error}") from error


async def refuse(stream: trio.abc.Stream, refused: Refused) -> None:
    """Tell a client why it does not get in."""
    body = f"{refused.reason}\n".encode()
    writing = h11.Connection(h11.SERVER)
    headers = [
        ("content-type", "text/plain; charset=utf-8"),
        ("content-length", str(len(body))),
        ("connection", "close"),
    ]
    parts = (h11.Response(status_code=refused.status, headers=headers), h11.Data(body), h11.EndOfMessage())
    await stream.send_all(b"".join(writing.send(part) or b"" for part in parts))
