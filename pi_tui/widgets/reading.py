"""The stream for a reader: a cursor on its blocks, and what was found in them.

The prompt has the focus as a rule. alt+↑ goes up into the stream, where letters act.
"""

from __future__ import annotations

from collections.abc import Mapping

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.message import Message
from textual.strip import Strip

from pi_tui.find import Query, item_text
from pi_tui.items.paint import Budget
from pi_tui.items.render import MARGIN
from pi_tui.selection import ALL, Selection, marked
from pi_tui.shown import Item
from pi_tui.store import SessionStore
from pi_tui.theme import Theme
from pi_tui.widgets.lines import Copied, bindings_for
from pi_tui.widgets.selecting import AT_ONCE, Selectable

__all__ = ["Stream"]

_BLOCKS = frozenset({"message", "entry", "summary", "shell"})


class Stream(Selectable, can_focus=True):
    """See `Transcript`. The cursor is an item, so it stays where it is while others come."""

    BINDINGS = bindings_for("stream")

    class Find(Message):
        """The user wants to look for something."""

    def __init__(self, store: SessionStore, theme: Theme, keymap: Mapping[str, str]) -> None:
        super().__init__(store, theme, keymap)
        self.cursor: Item | None = None
        self.wanted = Query("")
        self.hits: set[str] = set()
        self._seeking: tuple[str, int] | None = None
        self._found_line = -1

    def show(self, store: SessionStore) -> None:
        """See `Transcript`."""
        self.cursor, self.wanted, self.hits, self._seeking = None, Query(""), set(), None
        super().show(store)

    # ---------------------------------------------------------------- the cursor

    def action_move(self, by: int) -> None:
        """To the next block, or the one before."""
        at = self._cursor_at()
        at = self._last_in_view() + (by < 0) if at is None else at
        at += by
        while 0 <= at < len(self._shown) and self._shown[at].kind not in _BLOCKS:
            at += by
        if 0 <= at < len(self._shown):
            self._put_cursor(at)
        elif by > 0:
            self.to_end()

    def action_expand(self) -> None:
        """Show all of the block under the cursor, or its short form."""
        if self.cursor is not None:
            self.drawing.opened ^= {self.cursor.key}
            self._place()

    def action_copy(self) -> None:
        """Copy what is selected, or else the block under the cursor."""
        if text := self.selected_text():
            self.post_message(Copied(text))
        elif self.cursor is not None:
            self.post_message(Copied(item_text(self.cursor)))

    def action_extend(self, by: int) -> None:
        """Select lines, from the first or last one of the block under the cursor on."""
        at = self._cursor_at()
        if at is None:
            self.action_move(-1)
            return
        if self.selection is None:
            height = self._heights[at]
            line = (at, height - 1, ALL) if by < 0 else (at, self._lead(at), 0)
            self.select(Selection(line, (at, line[1], 0) if by < 0 else (at, line[1], ALL)))
            return
        y = self._heights.before(self.selection.head[0]) + self.selection.head[1] + by
        item, line_ = self._heights.find(min(max(y, 0), self._heights.total - 1))
        anchor = self.selection.anchor
        self.select(Selection(anchor, (item, line_, ALL if (item, line_) >= anchor[:2] else 0)))
        self._reveal(y)

    def leave(self) -> None:
        """Back to the prompt: no cursor."""
        self.cursor = None
        self._place()

    def on_focus(self) -> None:
        """The cursor is seen from now on."""
        if self.cursor is None:
            self.action_move(-1)

    def _cursor_at(self) -> int | None:
        return next(
            (at for at in range(len(self._shown) - 1, -1, -1) if self._shown[at] is self.cursor), None
        )

    def _put_cursor(self, at: int) -> None:
        self.cursor = self._shown[at]
        self._budget = Budget(AT_ONCE)
        self._measure(at)
        top, y, height = round(self.scroll_offset.y), self._heights.before(at), self._heights[at]
        if y < top or height >= self.size.height:
            self.show_at(at, 0)
        elif y + height > top + self.size.height:
            self.show_at(*self._heights.find(y + height - self.size.height))
        else:
            self.following = False
            self._anchor = self._heights.find(top)
            self._place()

    def _last_in_view(self) -> int:
        return max(self._view, default=len(self._shown) - 1)

    # ---------------------------------------------------------------- finding

    def look_for(self, query: Query, hits: set[str]) -> None:
        """Mark what is found, in the items with these keys."""
        self.wanted, self.hits = query, hits
        self._place()

    def place_among_hits(self) -> int:
        """Which of the hits, from 1, the cursor is on; 0 if on none."""
        if self.cursor is None or self.cursor.key not in self.hits:
            return 0
        at = self._cursor_at() or 0
        return sum(item.key in self.hits for item in self._shown[: at + 1])

    def action_find(self) -> None:
        """Look for something."""
        self.post_message(self.Find())

    def action_find_next(self, by: int) -> None:
        """To the next line with what is looked for, or the one before; around the ends."""
        places = [at for at, item in enumerate(self._shown) if item.key in self.hits]
        if not places:
            return
        at = self._cursor_at()
        if at in places and self._go_to_match(at, by, self._found_line):
            return
        now = self.first_in_view - (by > 0) if at is None else at
        further = [place for place in places[::by] if (place - now) * by > 0]
        self._seeking = (self._shown[(further or places[::by])[0]].key, by)
        self._seek()

    @property
    def first_in_view(self) -> int:
        """The item at the top of the view."""
        return self._heights.find(round(self.scroll_offset.y))[0]

    def show_hit_from(self, origin: int) -> None:
        """Go to the first item from `origin` on in which something was found, or the last before it."""
        places = [at for at, item in enumerate(self._shown) if item.key in self.hits]
        if places:
            at = next((place for place in places if place >= origin), places[-1])
            self._seeking = (self._shown[at].key, 1)
            self._seek()

    def _seek(self) -> None:
        """Go to an item that was found; when its body has come, to the line."""
        assert self._seeking is not None  # noqa: S101  # callers have set it
        key, by = self._seeking
        at = next((at for at, item in enumerate(self._shown) if item.key == key), None)
        if at is None or not self._shown[at].missing:
            self._seeking = None
        if at is None:
            return
        self.cursor, self._found_line = self._shown[at], -1
        if self._shown[at].missing or not self._go_to_match(at, by, None):
            self.show_at(at, 0)

    def _go_to_match(self, at: int, by: int, line: int | None) -> bool:
        """Show the next line of an item with a match, if it has one; folded ones are unfolded."""
        self._budget = Budget(AT_ONCE)
        lines = self._matching(at)
        if not lines and self._shown[at].key not in self.drawing.opened:
            self.drawing.opened.add(self._shown[at].key)
            lines = self._matching(at)
        further = [each for each in lines[::by] if line is None or (each - line) * by > 0]
        if not further:
            return False
        self._found_line = further[0]
        self._measure(at)
        self._reveal(self._heights.before(at) + further[0])
        return True

    def _matching(self, at: int) -> list[int]:
        """The lines of an item that show what is looked for."""
        lead = self._lead(at)
        return [lead + line for line, strip in enumerate(self._strips(at)) if self.wanted.spans(strip.text)]

    def _reveal(self, y: int) -> None:
        """Have a line in view, with some around it if it was not."""
        top, height = round(self.scroll_offset.y), self.size.height
        if not top <= y < top + height - 1:
            top = max(y - height // 3, 0)
        self.show_at(*self._heights.find(top))

    # ---------------------------------------------------------------- drawing

    def _place(self) -> None:
        super()._place()
        if self._seeking is not None and not self._is_missing(self._seeking[0]):
            self._seek()

    def _is_missing(self, key: str) -> bool:
        return any(item.key == key and item.missing for item in self._shown)

    def _row(self, y: int, width: int) -> Strip:
        strip = super()._row(y, width)
        if not self.wanted and not (self.cursor is not None and self.has_focus):
            return strip
        item, line = self._heights.find(y)
        if item >= len(self._shown):
            return strip
        if self.wanted and self._shown[item].key in self.hits:
            strip = self._with_matches(strip)
        if self.has_focus and self._shown[item] is self.cursor and line >= self._lead(item):
            bar = Segment("▎" + " " * (MARGIN - 1), self.theme["accent"])
            strip = Strip([bar, *strip.crop(MARGIN, width)], width)
        return strip

    def _with_matches(self, strip: Strip) -> Strip:
        text = strip.text
        style = self.theme["searchMatchText"] + self.theme["searchMatchBg"] + Style(bold=True, underline=True)
        for begin, end in self.wanted.spans(text):
            strip = marked(strip, cell_len(text[:begin]), cell_len(text[:end]), style)
        return strip
