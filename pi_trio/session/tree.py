"""The session tree: pure, in memory, without I/O."""

from __future__ import annotations

from attrs import frozen

__all__ = ["EntryHead"]


@frozen
class EntryHead:
    """What is known of an entry without its body.

    `detail` is the role of a message, the custom type of a custom entry, else None.
    """

    id: str
    parent_id: str | None
    type: str
    detail: str | None = None
