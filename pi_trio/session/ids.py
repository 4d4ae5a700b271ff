"""Identifiers: time-ordered ones for sessions, short ones for entries."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Container

__all__ = ["new_entry_id", "new_session_id"]


def new_session_id() -> str:
    """A version 7 UUID: 48 bits of milliseconds, then 74 random bits."""
    milliseconds = time.time_ns() // 1_000_000
    value = milliseconds << 80 | int.from_bytes(os.urandom(10))
    value = value & ~(0xF << 76) | 7 << 76  # the version
    value = value & ~(0x3 << 62) | 2 << 62  # the variant
    return str(uuid.UUID(int=value))


def new_entry_id(taken: Container[str]) -> str:
    """Eight hexadecimal digits that are not `taken`; a whole UUID should that never succeed."""
    for _ in range(100):
        candidate = os.urandom(4).hex()
        if candidate not in taken:
            return candidate
    return str(uuid.uuid4())
