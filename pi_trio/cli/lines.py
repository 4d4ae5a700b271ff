"""Lines of standard input, one by one, as they come."""

from __future__ import annotations

import os

import trio

__all__ = ["Lines"]


class Lines:
    """Reads standard input. A line that ends in a backslash goes on in the next one."""

    def __init__(self, descriptor: int = 0) -> None:
        self._descriptor = descriptor
        self._rest = b""
        self._ended = False
        self.is_terminal = os.isatty(descriptor)

    async def next(self) -> str | None:
        """The next line, without its end; None when there is no more. Cancelling loses nothing."""
        pieces: list[str] = []
        while (line := await self._line()) is not None:
            if not line.endswith("\\"):
                return "\n".join([*pieces, line])
            pieces.append(line[:-1])
        return "\n".join(pieces) if pieces else None

    async def _line(self) -> str | None:
        while b"\n" not in self._rest and not self._ended:
            data = await self._read()
            self._ended = not data
            self._rest += data
        if not self._rest:
            return None
        line, _, self._rest = self._rest.partition(b"\n")
        return line.removesuffix(b"\r").decode("utf-8", "replace").removeprefix("\ufeff")

    async def _read(self) -> bytes:
        try:
            await trio.lowlevel.wait_readable(self._descriptor)
        except OSError:  # a file, or /dev/null: always ready, and no poller takes it
            await trio.lowlevel.checkpoint()
        return os.read(self._descriptor, 1 << 16)
