"""The whole tree as one page that needs nothing else: no network, no other file, no server.

Everything from the session is escaped. The page's own style and script are allowed by their
digests and nothing else is, so that even a mistake here could not make a browser run or load
what a session says.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterator
from html import escape
from importlib.resources import files

from attrs import evolve

from pi_trio.session.entries import Entry
from pi_trio.session.export.masking import mask_text
from pi_trio.session.export.shown import Part, Shown, show
from pi_trio.session.session import Session
from pi_trio.session.withdrawn import withdrawn
from pi_trio.text import sanitise

__all__ = ["tree_page"]

_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")

FOLDED_LINES = 14
"""Output of a tool that is longer than this many lines is folded."""

DEEPEST = 24
"""Branch points that are shown as indentation."""


def tree_page(session: Session, *, leaf_id: str | None = None, masked: bool = False) -> str:
    """A page with all entries of all branches, in front that of `leaf_id` or the current one."""
    return "".join(_Page(session, leaf_id or session.get_leaf_id(), masked=masked).pieces())


class _Page:
    def __init__(self, session: Session, leaf_id: str | None, *, masked: bool) -> None:
        self._session = session
        self._leaf_id = leaf_id
        self._tree = session.tree
        self._masked = masked
        self._withdrawn = withdrawn(session.heads, session.get_leaf_id())

    def pieces(self) -> Iterator[str]:
        session = self._session
        style, script = (_resource(name) for name in ("page.css", "page.js"))
        entries = [(session.entry(entry_id), depth) for entry_id, depth in self._in_order()]
        seen = [(entry, depth, self._shown(entry)) for entry, depth in entries]
        title = self._text(session.name or "Session", keep_newlines=False)
        policy = (
            f"default-src 'none'; img-src data:; style-src '{_digest(style)}'; script-src '{_digest(script)}'"
        )
        about = self._text(f"{session.header.timestamp[:10]} · {session.cwd}", keep_newlines=False)
        yield '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        yield f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        yield f"<title>{title}</title><style>{style}</style></head>\n"
        yield f'<body data-leaf="{escape(self._leaf_id or "")}"><aside><header><h1>{title}</h1>\n'
        count = "1 entry" if len(seen) == 1 else f"{len(seen):,} entries"
        yield f"<p>{about} · {count}</p>\n"
        yield '<input type="search" placeholder="Search  ( / )" aria-label="Search">\n'
        yield '<label><input type="checkbox"> records</label></header><nav>\n'
        for entry, depth, shown in seen:
            yield self._row(entry, depth, shown)
        yield "</nav></aside><main>\n"
        for entry, _, shown in seen:
            yield from self._article(entry, shown)
        yield f"</main><script>{script}</script></body></html>\n"

    def _shown(self, entry: Entry) -> Shown:
        shown = show(entry)
        if entry.id in self._withdrawn:
            return evolve(shown, kind="record", title=f"{shown.title}: withdrawn before anything came of it")
        return shown

    def _in_order(self) -> Iterator[tuple[str, int]]:
        """Every entry before what hangs on it, with the number of branch points above it."""
        waiting = [(root, 0) for root in reversed(self._tree.children(None))]
        while waiting:
            entry_id, depth = waiting.pop()
            yield entry_id, depth
            children = self._tree.children(entry_id)
            parts = sum(child not in self._withdrawn for child in children) > 1
            deeper = min(depth + parts, DEEPEST)
            waiting.extend((child, deeper) for child in reversed(children))

    def _row(self, entry: Entry, depth: int, shown: Shown) -> str:
        parts = (part.text for part in shown.parts if part.style in ("text", "code"))
        first = " ".join(next(parts, "")[:160].split()) or shown.title
        text = self._text(first, keep_newlines=False)
        return f'<a class="{shown.kind}" href="#{escape(entry.id)}">{"│ " * depth}{text}</a>\n'

    def _article(self, entry: Entry, shown: Shown) -> Iterator[str]:
        parent, label = self._tree.parent(entry.id), self._session.label_of(entry.id)
        yield f'<article class="{shown.kind}" id="{escape(entry.id)}" data-parent="{escape(parent or "")}"'
        yield " data-withdrawn>" if entry.id in self._withdrawn else ">"
        yield f"<h2>{self._text(shown.title, keep_newlines=False)}"
        if label:
            yield f"<b>{self._text(label, keep_newlines=False)}</b>"
        yield f"<time>{self._text(entry.timestamp[:19].replace('T', ' '), keep_newlines=False)}</time></h2>"
        for part in shown.parts:
            yield from self._part(part, foldable=shown.kind in ("tool", "system", "record"))
        yield "</article>\n"

    def _part(self, part: Part, *, foldable: bool) -> Iterator[str]:
        if part.style == "image":
            yield _image(part)
            return
        if part.title:
            yield f"<h3>{self._text(part.title, keep_newlines=False)}</h3>"
        text = self._text(part.text.strip("\n"))
        lines, pre = text.count("\n") + 1, f'<pre class="{part.style}">{text}</pre>'
        if part.style == "thinking":
            yield f'<details><summary>Thinking</summary><div class="thinking">{text}</div></details>'
        elif part.style == "text":
            yield f'<div class="text">{text}</div>'
        elif foldable and lines > FOLDED_LINES:
            yield f"<details><summary>{lines:,} lines</summary>{pre}</details>"
        else:
            yield pre

    def _text(self, text: str, *, keep_newlines: bool = True) -> str:
        cleaned = sanitise(mask_text(text) if self._masked else text, keep_newlines=keep_newlines)
        return escape(cleaned)


def _image(part: Part) -> str:
    try:
        data = base64.b64encode(binascii.a2b_base64(part.text)).decode()
    except ValueError:
        data = ""
    if not data or part.title not in _IMAGES:
        return '<div class="thinking">(an image that cannot be shown)</div>'
    return f'<img alt="image" src="data:{part.title};base64,{data}">'


def _resource(name: str) -> str:
    return files("pi_trio.session.export").joinpath(name).read_text("utf-8")


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
