"""Selecting in the stream, with the mouse; what is selected is text as it is seen."""

from __future__ import annotations

from collections.abc import Mapping

from rich.style import Style
from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.timer import Timer

from pi_tui.items.paint import Budget
from pi_tui.items.render import MARGIN
from pi_tui.selection import ALL, Selection, Spot, marked, word_at
from pi_tui.store import SessionStore
from pi_tui.theme import Theme
from pi_tui.widgets.transcript import Transcript

__all__ = ["AT_ONCE", "Selectable"]

SELECTED = Style(reverse=True)
"""Selected text: seen in every theme, and without colours."""

AT_ONCE = 0.1
"""Seconds of drawing that a jump may take."""

DRAG_INTERVAL = 1 / 20
"""Seconds between two lines that the view moves while the mouse is held outside of it."""


class Selectable(Transcript):
    """See `Transcript`. The mouse selects without taking the focus away from the prompt."""

    FOCUS_ON_CLICK = False

    class Selecting(Message):
        """Something is selected, or nothing is any more."""

    def __init__(self, store: SessionStore, theme: Theme, keymap: Mapping[str, str]) -> None:
        super().__init__(store, theme, keymap)
        self.selection: Selection | None = None
        self._pressed: Spot | None = None
        self._drag: Timer | None = None
        self._pointer = (0, 0)

    def show(self, store: SessionStore) -> None:
        """See `Transcript`."""
        self.select(None)
        super().show(store)

    def select(self, selection: Selection | None) -> None:
        """Select something, or nothing."""
        if selection != self.selection:
            self.selection = selection
            self.post_message(self.Selecting())
            if self.is_attached:
                self._paint()

    def selected_text(self) -> str:
        """What is selected, as it is seen, without the blanks at the ends of lines."""
        if self.selection is None:
            return ""
        (first, *_), (last, *_) = self.selection.ends
        lines: list[str] = []
        for item in range(first, min(last, len(self._shown) - 1) + 1):
            self._budget = Budget(AT_ONCE)
            lead, strips = self._lead(item), self._strips(item)
            for line in range(lead + len(strips)):
                cells = self.selection.cells(item, line)
                if cells is not None:
                    strip = strips[line - lead] if line >= lead else Strip([])
                    begin, end = (max(cell - MARGIN, 0) for cell in cells)
                    lines.append(strip.crop(min(begin, strip.cell_length), end).text.rstrip())
        return "\n".join(lines)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """A selection begins where the button goes down."""
        if event.button == 1:
            spot = self._spot(event.x, event.y)
            self.select(None)
            self._pressed = spot
            self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """With the button held, the selection follows; beyond an edge the view moves."""
        if self.app.mouse_captured is not self or self._pressed is None:
            return
        self._pointer = (event.x, event.y)
        self._follow_pointer()
        outside = not 0 <= event.y < self.size.height
        if outside and self._drag is None:
            self._drag = self.set_interval(DRAG_INTERVAL, self._follow_pointer)
        elif not outside:
            self._end_drag()

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """What is selected stays so until something else is done."""
        self._end_drag()
        self._pressed = None
        if self.app.mouse_captured is self:
            self.release_mouse()

    def on_click(self, event: events.Click) -> None:
        """Twice selects a word, three times a line."""
        item, line, cell = self._spot(event.x, event.y)
        if event.chain == 2:
            begin, end = word_at(self._row(round(self.scroll_offset.y) + event.y, self.size.width).text, cell)
            self.select(Selection((item, line, begin), (item, line, end)))
        elif event.chain > 2:
            self.select(Selection((item, line, 0), (item, line, ALL)))

    def _follow_pointer(self) -> None:
        x, y = self._pointer
        if self._pressed is None:
            return
        if not 0 <= y < self.size.height:
            self.scroll_relative(y=-1 if y < 0 else 1, animate=False)
        self.select(Selection(self._pressed, self._spot(x, min(max(y, 0), self.size.height - 1))))

    def _end_drag(self) -> None:
        if self._drag is not None:
            self._drag.stop()
            self._drag = None

    def _spot(self, x: int, y: int) -> Spot:
        last = max(self._heights.total - 1, 0)
        return *self._heights.find(min(round(self.scroll_offset.y) + y, last)), max(x, 0)

    def _lead(self, index: int) -> int:
        return (
            self._view[index][0] if index in self._view else self._measure(index) - len(self._strips(index))
        )

    def _row(self, y: int, width: int) -> Strip:
        strip = super()._row(y, width)
        if self.selection is None:
            return strip
        cells = self.selection.cells(*self._heights.find(y))
        return marked(strip, *cells, SELECTED) if cells is not None else strip

    def _take_all(self) -> None:
        super()._take_all()
        self.select(None)  # the items are others
