"""Disks that fail, for tests of what writes a session."""

from __future__ import annotations

import errno
import os

__all__ = ["LimitedDisk"]


class LimitedDisk:
    """Stands in for `os.write`: takes `space` bytes, then behaves as a full disk does.

    The write that reaches the end is a short one, every later one raises `ENOSPC`. Set `space`
    to make room again; None means that there is no end.
    """

    def __init__(self, space: int | None = None) -> None:
        self.space = space

    def __call__(self, descriptor: int, data: bytes) -> int:
        if self.space is None:
            return os.write(descriptor, data)
        if self.space <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = os.write(descriptor, data[: self.space])
        self.space -= written
        return written
