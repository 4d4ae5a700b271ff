"""A branch as a session file of its own, which every program that reads sessions can open."""

from __future__ import annotations

from pi_trio import codec
from pi_trio.session.branching import fork_lines
from pi_trio.session.export.masking import mask
from pi_trio.session.scan import entry_object
from pi_trio.session.session import Session

__all__ = ["branch_jsonl"]


def branch_jsonl(session: Session, leaf_id: str | None = None, masked: bool = False) -> bytes:
    """The branch that ends at `leaf_id`, or the current one, under the session's own header.

    It names no parent, and is the same bytes each time: the lines are the session's own, unless
    they are `masked`.
    """
    header = codec.to_json(session.header)
    header.pop("parentSession", None)
    lines = [codec.dumps(header), *fork_lines(session, leaf_id or session.get_leaf_id())]
    if masked:
        lines = [codec.dumps(mask(entry_object(line))) for line in lines]
    return b"\n".join(lines) + b"\n"
