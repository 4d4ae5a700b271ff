"""Where a Markdown text is cut into blocks that are drawn one by one: pure.

A block ends at a blank line before a line that is not indented, and around a fence. One that
goes on and on is cut too, so that its growing end never costs more than some lines do. All
cuts depend on the letters alone, so the picture of a text does not depend on how it arrived.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from attrs import define, frozen

__all__ = ["Block", "Splitter", "split_blocks"]

MOST_ROWS = 24
"""Lines of a list, a table or a quote after which it is cut, where another item begins."""

MOST_CHARACTERS = 2048
"""Letters after which a block is cut before a line that is not indented."""

LONGEST = 2 * MOST_CHARACTERS
"""Letters after which a block is cut before any line, and a line at a space."""

_ROW = re.compile(r"[-*+>|]|\d+[.)]")
"""How a line begins that stands by itself in a list, a table or a quote."""

_TABLE = re.compile(r"[^\n]*\|[^\n]*\n {0,3}[|:\- ]*-[|:\- ]*\n")
"""The head of a table: names, and the line below them."""


@frozen
class Block:
    """A stretch of a text. It is `complete` when nothing can be added to it any more.

    `fence` says that it is a fence and nothing else, which is `open` as long as its end is
    missing. With `joined` it goes on with the block before, and if both are one table, `head`
    is how that begins.
    """

    begin: int
    end: int
    complete: bool
    fence: bool = False
    open: bool = False
    joined: bool = False
    head: str = ""


@define
class Splitter:
    """Finds the blocks of a text that grows, and looks at every line once."""

    _begin: int = 0
    _at: int = 0
    _rows: int = 0
    _mark: str = ""
    _mark_at: int = 0
    _blank: bool = False
    _ended: bool = False
    _joined: bool = False
    _head: str = ""

    def next_complete(self, text: str) -> Block | None:
        """The next block to which nothing can be added. `text` continues what it was before."""
        while self._at < len(text):
            stop = text.find("\n", self._at) + 1
            line = text[self._at : min(stop or len(text), self._at + LONGEST + 1)]
            endless = len(line) > LONGEST
            if block := self._before_line(text, line.rstrip(), whole=bool(stop) or endless):
                return block
            if endless and not self._mark:
                longest = self._at + LONGEST
                return self._cut(text.rfind(" ", self._at, longest) + 1 or longest, joined=True)
            if not stop:
                return None
            self._take_line(line.rstrip())
            self._at = stop
        return None

    def rest(self, text: str) -> Block | None:
        """What follows the last complete block: it may still grow."""
        if self._begin >= len(text):
            return None
        return self._block(len(text), complete=False)

    def _before_line(self, text: str, content: str, *, whole: bool) -> Block | None:
        """The block that ends where a line begins, if that can be said already."""
        if self._begin == self._at:
            return None
        if self._mark:
            inside = self._mark_at > self._begin
            long = inside and self._at - self._mark_at > MOST_CHARACTERS
            return self._cut(self._mark_at, joined=True) if long else None
        own = bool(content) and not content[0].isspace()
        if (self._ended and content) or (own and self._blank):
            return self._cut(self._at)
        if whole and own and _fence_mark(content):
            return self._cut(self._at)
        if whole and ((own and self._is_long(content)) or self._at - self._begin >= LONGEST):
            return self._cut(self._at, joined=True, head=self._head or _table_head(text, self._begin))
        return None

    def _take_line(self, content: str) -> None:
        bare = content.lstrip()
        self._rows += 1
        self._blank = False
        if self._mark:
            if bare.startswith(self._mark) and not bare.strip(self._mark[0]):
                self._ended, self._mark = self._mark_at == self._begin, ""
        elif mark := _fence_mark(bare):
            self._mark, self._mark_at = mark, self._at
        else:
            self._blank = not bare

    def _is_long(self, content: str) -> bool:
        many = self._rows >= MOST_ROWS and _ROW.match(content) is not None
        return many or self._at - self._begin >= MOST_CHARACTERS

    def _cut(self, end: int, *, joined: bool = False, head: str = "") -> Block:
        block = self._block(end, complete=True)
        self._begin, self._at = end, max(self._at, end)
        self._rows, self._blank, self._ended = 0, False, False
        self._joined, self._head = joined, head
        return block

    def _block(self, end: int, *, complete: bool) -> Block:
        fence = self._ended or (bool(self._mark) and self._mark_at == self._begin)
        return Block(self._begin, end, complete, fence, bool(self._mark), self._joined, self._head)


def split_blocks(text: str) -> Iterator[Block]:
    """All blocks of a text."""
    splitter = Splitter()
    while (block := splitter.next_complete(text)) is not None:
        yield block
    if (block := splitter.rest(text)) is not None:
        yield block


def _table_head(text: str, begin: int) -> str:
    head = _TABLE.match(text, begin)
    return head[0] if head else ""


def _fence_mark(bare: str) -> str:
    """The run of signs with which a line opens a fence, or nothing."""
    if bare[:3] not in ("```", "~~~"):
        return ""
    rest = bare.lstrip(bare[0])
    return "" if bare[0] == "`" and "`" in rest else bare[: len(bare) - len(rest)]
