"""A branch as a session file of its own, which every program that reads sessions can open."""

from __future__ import annotations

from pi_trio import codec
from pi_trio.session.branching import fork_lines
from pi_trio.session.export.masking import mask
from pi_trio.session.scan import entry_object
from pi_trio.session.session import Session

__all__ = ["branch_jsonl"]


def branch_jsonl(session: Session, *, masked: bool = False) -> bytes:
    """The current branch under the session's own header, without a parent: the same bytes each time.

    The lines are the session's own, byte for byte, unless they are `masked`.
    """
    header = codec.to_json(session.header)
    header.pop("parentSession", None)
    lines = [codec.dumps(header), *fork_lines(session, session.get_leaf_id())]
    if masked:
        lines = [codec.dumps(mask(entry_object(line))) for line in lines]
    return b"\n".join(lines) + b"\n"
