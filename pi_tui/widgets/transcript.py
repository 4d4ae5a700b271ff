"""The stream: every item of the session as lines, of which only those in view are ever drawn.

Heights are estimated until an item was drawn. While the view follows the end, corrections
move what is above it; while the user reads further up, the first visible line stays where it
is, whatever happens below or above.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from rich.segment import Segment
from textual import events
from textual.cache import LRUCache
from textual.geometry import Size
from textual.strip import Strip

from pi_tui.heights import Heights
from pi_tui.items.markdown import Progress
from pi_tui.items.messages import LiveAnswer
from pi_tui.items.paint import Budget, Look
from pi_tui.items.render import MARGIN, animated, estimate, joins, render_item
from pi_tui.keymap import NO_CHANGES, hint
from pi_tui.shown import Item
from pi_tui.store import SessionStore
from pi_tui.theme import Theme
from pi_tui.widgets.lines import LineView, Missing, styled

__all__ = ["Transcript"]

MAX_TEXT = 110
"""Longer lines are hard to read: cells of text on a wide screen."""

FRAME = 1 / 30
"""Seconds between two looks into the store while events keep coming, at least."""

DRAWING = 0.015
"""Seconds of drawing answers at a time; what is left is drawn in the next frame."""

_MARGIN = Segment(" " * MARGIN)

LOAD_AROUND = 40
"""Items around the view whose bodies are asked for along with it."""


class Transcript(LineView, can_focus=False):
    """The conversation. `sync` has it look at what changed, `show` gives it another session."""

    DEFAULT_CSS = """
    Transcript { width: 1fr; height: 1fr; scrollbar-gutter: stable; }
    """

    def __init__(
        self,
        store: SessionStore,
        theme: Theme,
        keymap: Mapping[str, str] = NO_CHANGES,
        *,
        id: str | None = None,  # noqa: A002  # Textual's name
    ) -> None:
        super().__init__(theme, id=id)
        self._keymap = keymap
        self.expanded = False
        self.following = True
        self.unseen = 0
        self.store = store
        self._shown: list[Item] = []
        self._structure = -1
        self._heights = Heights()
        self._drawn: LRUCache[tuple[Any, ...], list[Strip]] = LRUCache(512)
        self._unfinished: dict[tuple[Any, ...], Progress] = {}
        self._view: dict[int, tuple[int, list[Strip]]] = {}
        self._live: tuple[Item, LiveAnswer] | None = None
        self._anchor = (0, 0)
        self._budget = Budget(DRAWING)
        self._placing = False
        self._tick = 0
        self._next_sync = 0.0
        self._sync_waits = False
        self._asked: set[str] = set()

    # ---------------------------------------------------------------- commands

    def show(self, store: SessionStore) -> None:
        """Show a session from its end."""
        self.store = store
        self._structure, self._asked = -1, set()
        self._drawn.clear()  # the keys of items are those of their session
        self._unfinished.clear()
        self._live = None
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

    def animate_running(self) -> None:
        """Turn the spinners and count the seconds of what runs."""
        self._tick += 1
        self._place()

    def set_expanded(self, expanded: bool) -> None:
        """Show all details of tools and thinking, or their short forms."""
        self.expanded = expanded
        self._live = None
        self._place()

    def restyle(self) -> None:
        self._drawn.clear()
        self._unfinished.clear()
        self._live = None
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
            self._draw_downwards(first, self._anchor[1] + self.size.height)
        total = self._heights.total
        target = total - self.size.height if self.following else self._heights.before(first) + self._anchor[1]
        if len(self._shown) == 1 and self._shown[0].kind == "welcome":
            target = 0  # what must be known before the first prompt stands at its top
        self._placing = True
        self.virtual_size = Size(0, total)
        self.scroll_to(y=max(target, 0), animate=False, immediate=True, force=True)
        self._placing = False
        self.refresh()
        self._ask_for_missing(first)
        self._next_sync = time.monotonic() + FRAME
        if self._budget.exceeded:
            self.sync()

    def _draw_upwards(self, index: int, lines: int) -> int:
        while index >= 0 and lines > 0:
            lines -= self._measure(index)
            index -= 1
        return index + 1

    def _draw_downwards(self, index: int, lines: int) -> None:
        while index < len(self._shown) and lines > 0:
            lines -= self._measure(index)
            index += 1

    def _measure(self, index: int) -> int:
        strips = self._strips(index)
        lead = 0 if not strips or joins(self._shown[index], self._shown[index - 1] if index else None) else 1
        self._view[index] = (lead, strips)
        height = lead + len(strips)
        if height != self._heights[index]:
            self._heights.set(index, height)
        return height

    def _ask_for_missing(self, first: int) -> None:
        ids = self.store.missing_ids(first - LOAD_AROUND, first + LOAD_AROUND + self.size.height)
        wanted = [id_ for id_ in ids if id_ not in self._asked]
        if wanted:
            self._asked.update(wanted)
            self.post_message(Missing(wanted))

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if self._placing:
            return
        self.following = round(new_value) >= self._heights.total - self.size.height
        self._anchor = self._heights.find(round(new_value))
        if self.following:
            self.unseen = 0
        self._place()

    def on_resize(self, event: events.Resize) -> None:
        self._live = None
        self.call_after_refresh(self.sync)

    # ---------------------------------------------------------------- drawing

    def line_at(self, y: int) -> Strip | None:
        index, within = self._heights.find(y)
        lead, strips = self._view.get(index, (0, []))
        if not lead <= within < lead + len(strips):
            return None
        strip = strips[within - lead]
        return Strip([_MARGIN, *strip], MARGIN + strip.cell_length)

    def render_line(self, y: int) -> Strip:
        if not self.following and self.unseen and y == self.size.height - 1:
            return self._pill()
        return super().render_line(y)

    def _pill(self) -> Strip:
        style = self.theme["accent"] + self.theme["selectedBg"]
        end = hint({"tui.altScreen.bottom": ""}, self._keymap).strip()
        text = f" {self.unseen} new{' · ' * bool(end)}{end} "
        left = max((self.size.width - len(text)) // 2, 0)
        return styled(Strip([Segment(" " * left), Segment(text, style)]), self.size.width)

    def _strips(self, index: int) -> list[Strip]:
        item, look = self._shown[index], self._look()
        if item.kind == "live":
            return self._live_answer(item, look)
        moment = (self._tick, int(look.now)) if animated(item, self.store) else None
        key = (item.key, item.version, look.width, self.expanded, moment)
        strips = self._drawn.get(key)
        if strips is None:
            progress = self._unfinished.pop(key, None) or Progress(self._budget)
            progress.budget = self._budget
            strips = render_item(item, self.store, look, progress)
            if self._budget.exceeded:
                self._unfinished[key] = progress
            else:
                self._drawn[key] = strips
        return strips

    def _live_answer(self, item: Item, look: Look) -> list[Strip]:
        """The streaming answer: what was drawn of it before is kept."""
        if self._live is None or self._live[0] is not item:
            self._live = (item, LiveAnswer(look))
        return self._live[1].strips(self.store.live, self._budget)

    def _look(self) -> Look:
        width = max(min(self.width - MARGIN - 1, MAX_TEXT), 1)
        return Look(width, self.theme, self.expanded, self.store.clock(), self._tick, self._keymap)
