"""Lines of standard input, one by one, as they come."""

from __future__ import annotations

import os
from collections import deque

import trio

__all__ = ["ByteLines", "Lines"]


class Lines:
    """Reads standard input. A line that ends in a backslash goes on in the next one."""

    def __init__(self, descriptor: int = 0) -> None:
        self._lines = ByteLines(descriptor)
        self.is_terminal: bool = os.isatty(descriptor)

    async def next(self) -> str | None:
        """The next line, without its end; None when there is no more. Cancelling loses nothing."""
        pieces: list[str] = []
        while (line := await self._line()) is not None:
            if not line.endswith("\\"):
                return "\n".join([*pieces, line])
            pieces.append(line[:-1])
        return "\n".join(pieces) if pieces else None

    async def _line(self) -> str | None:
        line = await self._lines.next()
        return None if line is None else line.decode("utf-8", "replace").removeprefix("\ufeff")


class ByteLines:
    """Reads lines as they are. Only a line feed ends one; a carriage return before it belongs to it."""

    def __init__(self, descriptor: int = 0) -> None:
        self._descriptor = descriptor
        self._pieces: list[bytes] = []
        self._whole: deque[bytes] = deque()
        self._ended = False

    async def next(self) -> bytes | None:
        """The next line, without its end; None when there is no more. Cancelling loses nothing."""
        while not self._whole and not self._ended:
            self._take(await self._read())
        if self._whole:
            return self._whole.popleft().removesuffix(b"\r")
        return None

    def _take(self, data: bytes) -> None:
        """What has come in; nothing ends the input, and its last line, which may have no end."""
        *whole, rest = data.split(b"\n")
        if whole:
            self._whole.append(b"".join([*self._pieces, whole[0]]))
            self._whole.extend(whole[1:])
            self._pieces.clear()
        if rest:
            self._pieces.append(rest)
        if not data:
            self._ended = True
            self._whole.extend([b"".join(self._pieces)] if self._pieces else [])

    async def _read(self) -> bytes:
        try:
            await trio.lowlevel.wait_readable(self._descriptor)
        except OSError:  # a file, or /dev/null: always ready, and no poller takes it
            await trio.lowlevel.checkpoint()
        return os.read(self._descriptor, 1 << 16)
