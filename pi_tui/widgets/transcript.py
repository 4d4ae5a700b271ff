"""The stream: every item of the session as lines, of which only those in view are ever drawn.

Heights are estimated until an item was drawn. While the view follows the end, corrections
move what is above it; while the user reads further up, the first visible line stays where it
is, whatever happens below or above.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from rich.segment import Segment
from textual import events
from textual.cache import LRUCache
from textual.geometry import Region
from textual.strip import Strip

from pi_tui.heights import Heights
from pi_tui.items.drawing import Drawing
from pi_tui.items.paint import Budget, Look
from pi_tui.items.render import MARGIN, estimate, joins
from pi_tui.items.words import plural
from pi_tui.keymap import hint
from pi_tui.shown import Item
from pi_tui.store import SessionStore
from pi_tui.theme import Theme
from pi_tui.widgets.lines import PLAIN, Missing, styled
from pi_tui.widgets.session_pane import SessionPane

__all__ = ["Transcript"]

MAX_TEXT = 110
"""Longer lines are hard to read: cells of text on a wide screen."""

FRAME = 1 / 20
"""Seconds between two looks into the store while events keep coming, at least."""

DRAWING = 0.002
"""Seconds of drawing answers at a time, and of a pause before more of them is drawn."""

_MARGIN = Segment(" " * MARGIN)

LOAD_AROUND = 40
"""Items around the view whose bodies are asked for along with it."""


class Transcript(SessionPane, can_focus=False):
    """The conversation. `sync` has it look at what changed, `show` gives it another session."""

    DEFAULT_CSS = """
    Transcript { width: 1fr; height: 1fr; scrollbar-gutter: stable; }
    """

    def __init__(self, store: SessionStore, theme: Theme, keymap: Mapping[str, str]) -> None:
        super().__init__(store, theme, keymap, id="stream")
        self._keymap = keymap
        self.drawing = Drawing(store)
        self.following = True
        self.unseen = 0
        self._shown: list[Item] = []
        self._structure = -1
        self._heights = Heights()
        self._view: dict[int, tuple[int, list[Strip]]] = {}
        self._rows: list[Strip] = []
        self._painted: LRUCache[int, tuple[Strip, Strip]] = LRUCache(1024)
        self._anchor = (0, 0)
        self._budget = Budget(DRAWING)
        self._placing = False
        self._next_sync = 0.0
        self._sync_waits = False
        self._drawing_waits = False
        self._asked: set[str] = set()

    # ---------------------------------------------------------------- commands

    def show(self, store: SessionStore) -> None:
        """Show a session from its end."""
        self.store = store
        self._structure, self._asked = -1, set()
        self.drawing.forget(store)
        self.following, self.unseen = True, 0
        self.sync()

    def sync(self) -> None:
        """Take over what changed in the store, now or when the next frame is due."""
        wait = self._next_sync - time.monotonic()
        if wait <= 0:
            self._sync_now()
        elif not self._sync_waits:
            self._sync_waits = True
            self.set_timer(wait, self._sync_now)

    def give_way(self) -> None:
        """A key was pressed: it is answered first, and the next frame is drawn after that."""
        self._next_sync = time.monotonic() + FRAME

    def animate_running(self) -> None:
        """Turn the spinners and count the seconds of what runs."""
        self._tick += 1
        self._place()

    def set_expanded(self, expanded: bool) -> None:
        """Show all details of tools and thinking, or their short forms."""
        self.drawing.expand(expanded)
        self._place()

    def show_at(self, index: int, line: int) -> None:
        """Put a line of an item at the top of the view, as far as there is enough below it."""
        self.following, self._anchor = False, (index, line)
        self._place()

    def restyle(self) -> None:
        self.drawing.redraw()
        self._place()

    def scroll_pages(self, pages: int) -> None:
        """Scroll from wherever the focus is."""
        self.scroll_relative(y=pages * max(self.size.height - 2, 1), animate=False)

    def to_end(self) -> None:
        """Go to the end and follow it."""
        self.following, self.unseen = True, 0
        self._place()

    # ---------------------------------------------------------------- the data

    def _sync_now(self) -> None:
        self._sync_waits = False
        if self.size.width:
            self._place()

    def _take(self) -> None:
        """Take over the items that there are now: no other may be drawn, for the store knows no other."""
        if self._structure != self.store.structure:
            self._structure = self.store.structure
            self._take_all()
        else:
            self._take_tail()

    def _take_all(self) -> None:
        self._shown = list(self.store.items)
        self._heights.reset(estimate(item) for item in self._shown)
        self._anchor = (0, 0)
        self.following = True

    def _take_tail(self) -> None:
        """Items only ever change at the end."""
        items, shown = self.store.items, self._shown
        while len(shown) > len(items) or (shown and shown[-1] is not items[len(shown) - 1]):
            shown.pop()
            self._heights.pop()
        for item in items[len(shown) :]:
            shown.append(item)
            self._heights.append(estimate(item))
            self.unseen += not self.following and item.kind in ("message", "summary")

    # ---------------------------------------------------------------- placing

    def _place(self) -> None:
        """Draw what is in view, correct its heights, and put the view where it belongs."""
        if not self.size.height:
            return
        self._take()
        self._view.clear()
        self._budget = Budget(DRAWING)
        if self.following:
            first = self._draw_upwards(len(self._shown) - 1, self.size.height)
        else:
            first = min(self._anchor[0], max(len(self._shown) - 1, 0))
            if self._draw_downwards(first, self._anchor[1] + self.size.height) > 0:  # the end comes sooner
                first = self._draw_upwards(len(self._shown) - 1, self.size.height)
                self._anchor = self._heights.find(max(self._heights.total - self.size.height, 0))
        total = self._heights.total
        above = self._heights.before(self._anchor[0]) + self._anchor[1]
        target = total - self.size.height if self.following else above
        if len(self._shown) == 1 and self._shown[0].kind == "welcome":
            target = 0  # what must be known before the first prompt stands at its top
        self._placing = True
        self.resize_to(total)
        self.scroll_to(y=max(target, 0), animate=False, immediate=True, force=True)
        self._placing = False
        self._paint()
        self._ask_for_missing(first)
        self._next_sync = time.monotonic() + FRAME
        if self._budget.exceeded:
            self._draw_later()
        if self._budget.exceeded or self._budget.postponed:
            self.sync()

    def _draw_later(self) -> None:
        if not self._drawing_waits:
            self._drawing_waits = True
            self.set_timer(DRAWING, self._draw_on)

    def _draw_on(self) -> None:
        """Go on with what this frame left out, so that the next one has it."""
        self._drawing_waits = False
        if self._budget.exceeded and time.monotonic() + DRAWING < self._next_sync:
            self._budget = Budget(DRAWING)
            for index in self._view:
                self._strips(index)
            self._draw_later()

    def _draw_upwards(self, index: int, lines: int) -> int:
        while index >= 0 and lines > 0:
            lines -= self._measure(index)
            index -= 1
        return index + 1

    def _draw_downwards(self, index: int, lines: int) -> int:
        """Draw until `lines` are full; how many are not, because there is no more."""
        while index < len(self._shown) and lines > 0:
            lines -= self._measure(index)
            index += 1
        return lines

    def _measure(self, index: int) -> int:
        strips = self._strips(index)
        lead = 0 if not strips or joins(self._shown[index], self._shown[index - 1] if index else None) else 1
        self._view[index] = (lead, strips)
        height = lead + len(strips)
        if height != self._heights[index]:
            self._heights.set(index, height)
        return height

    def _ask_for_missing(self, first: int) -> None:
        near = range(max(first - LOAD_AROUND, 0), first + LOAD_AROUND + self.size.height)
        self.store.in_sight = near
        ids = self.store.items.missing_ids(near.start, near.stop)
        wanted = [id_ for id_ in ids if id_ not in self._asked]
        self._asked = set(ids)
        if wanted:
            self.post_message(Missing(wanted))

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        self._move_thumb()
        if self._placing:
            return
        self.following = round(new_value) >= self._heights.total - self.size.height
        self._anchor = self._heights.find(round(new_value))
        if self.following:
            self.unseen = 0
        self._place()

    def on_resize(self, event: events.Resize) -> None:
        self.call_after_refresh(self._sync_now)

    # ---------------------------------------------------------------- drawing

    def line_at(self, y: int) -> Strip | None:
        index, within = self._heights.find(y)
        lead, strips = self._view.get(index, (0, []))
        if not lead <= within < lead + len(strips):
            return None
        return self._margined(strips[within - lead], self.size.width)

    def _paint(self) -> None:
        """Compose the rows of the view, and have those drawn that are not what they were."""
        top, (width, height) = round(self.scroll_offset.y), self.size
        rows = [self._row(top + y, width) for y in range(height)]
        if not self.following and rows and self._news():
            rows[-1] = self._pill()
        before, self._rows = self._rows, rows
        if len(before) != len(rows):
            self.refresh()
            return
        changed = [row is not before[y] and row != before[y] for y, row in enumerate(rows)]
        if any(changed):
            first, last = changed.index(True), height - changed[::-1].index(True)
            self.refresh(Region(0, first, width, last - first))

    def _row(self, y: int, width: int) -> Strip:
        """Line `y` as it is now. Subclasses mark it."""
        return self.line_at(y) or Strip.blank(width, PLAIN)

    def _margined(self, line: Strip, width: int) -> Strip:
        """A line ready to be written. The same line is the same strip again."""
        known = self._painted.get(id(line))
        if known is None or known[0] is not line or known[1].cell_length != width:
            known = (line, styled(Strip([_MARGIN, *line], MARGIN + line.cell_length), width))
            self._painted[id(line)] = known
        return known[1]

    def render_line(self, y: int) -> Strip:
        """A row of the view."""
        return self._rows[y] if y < len(self._rows) else Strip.blank(self.size.width, PLAIN)

    def render_lines(self, crop: Region) -> list[Strip]:
        """The rows, for Textual. Its own way makes new strips of them, which cannot keep what they cost."""
        rows = [self.render_line(y).crop_extend(*crop.column_span, PLAIN) for y in crop.line_range]
        _, ground = self.background_colors
        for each in self.get_line_filters():
            rows = [row.apply_filter(each, ground) for row in rows]
        return rows

    def _pill(self) -> Strip:
        """What is below the view."""
        style = self.theme["accent"] + self.theme["selectedBg"]
        end = hint({"tui.altScreen.bottom": "to the end"}, self._keymap)
        text = f" {self._news()}{' · ' * bool(end)}{end} "
        left = max((self.size.width - len(text)) // 2, 0)
        return styled(Strip([Segment(" " * left), Segment(text, style)]), self.size.width)

    def _news(self) -> str:
        """What has come since the view left the end, and what goes on there; empty if nothing has."""
        news = [f"{self.unseen} new"] if self.unseen else []
        if running := len(self.store.running_calls):
            news.append(f"{plural(running, 'tool')} running")
        elif self.store.live:
            news.append("more is being written")
        return ", ".join(news)

    def _strips(self, index: int) -> list[Strip]:
        return self.drawing.strips(self._shown[index], self._look(), self._budget)

    def _look(self) -> Look:
        width = max(min(self.width - MARGIN - 1, MAX_TEXT), 1)
        return Look(width, self.theme, now=self.store.clock(), tick=self._tick, keymap=self._keymap)
