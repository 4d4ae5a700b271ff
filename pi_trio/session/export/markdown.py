"""A branch as Markdown, for reading and for pasting elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pi_trio.session.export.masking import mask_text
from pi_trio.session.export.shown import Part, show
from pi_trio.session.session import Session
from pi_trio.text import sanitise

__all__ = ["branch_markdown"]


def branch_markdown(session: Session, leaf_id: str | None = None, *, masked: bool = False) -> str:
    """The branch that ends at `leaf_id`, or the current one, as a document.

    Changes of model and the like are left out, and records.
    """
    text = "\n\n".join(_document(session, leaf_id)) + "\n"
    return mask_text(text) if masked else text


def _document(session: Session, leaf_id: str | None) -> Iterator[str]:
    yield f"# {sanitise(session.name or 'Session', keep_newlines=False)}"
    yield f"{session.header.timestamp[:10]} · `{_inline(session.cwd)}`"
    for entry in session.get_branch(leaf_id):
        shown = show(entry)
        if shown.kind in ("record", "change"):
            continue
        yield f"## {_inline(shown.title)}"
        for part in shown.parts:
            yield from _part(part)


def _part(part: Part) -> Iterator[str]:
    if part.title and part.style != "image":
        yield f"**{_inline(part.title)}**"
    text = sanitise(part.text).strip("\n")
    match part.style:
        case "text":
            yield text
        case "thinking":
            yield "\n".join(f"> {line}".rstrip() for line in text.split("\n"))
        case "image":
            yield f"*(an image, {_inline(part.title)})*"
        case _:
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
            yield f"{fence}\n{text}\n{fence}"


def _inline(text: str) -> str:
    return sanitise(text, keep_newlines=False).replace("`", "'")
