"""The editing of the prompt: visible letters and chips as units, undo that survives all, a kill ring."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable

from textual import events
from textual.document._document import EditResult, Location, Selection
from textual.widgets import TextArea

from pi_tui.chips import Chips, unit_starts
from pi_tui.kill_ring import KillRing

__all__ = ["Editor"]


class Editor(TextArea):
    """A text area in which one key moves over, or takes away, one visible letter or one chip."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002  # Textual's name
        self.chips = Chips()
        self._kills = KillRing()
        self._did = ""
        self._before = ""
        self._deleted = ""
        self._yanked: tuple[Location, Location] | None = None
        super().__init__(id=id, compact=True, soft_wrap=True, highlight_cursor_line=False)
        self.cursor_blink = False  # a blinking cursor keeps an idle terminal, and its link, busy

    def write(self, text: str) -> None:
        """Put a text in the place of all that is written. `undo` takes that back."""
        if text != self.text:
            self.history.checkpoint()
            self.replace(text, (0, 0), self.document.end, maintain_selection_offset=False)
        self.move_cursor(self.document.end)

    # ---------------------------------------------------------------- units

    def _validate_selection(self, selection: Selection) -> Selection:
        """A cursor stands beside a unit, on the side that it was moving to."""
        start, end = super()._validate_selection(selection)
        forward = end > self.selection.end
        placed = self._beside(end, forward=forward)
        return Selection(placed if start == end else self._beside(start, forward=start > end), placed)

    def get_cursor_left_location(self) -> Location:
        """See `TextArea`."""
        return self._beside(super().get_cursor_left_location(), forward=False)

    def get_cursor_right_location(self) -> Location:
        """See `TextArea`."""
        return self._beside(super().get_cursor_right_location(), forward=True)

    def _delete_via_keyboard(self, start: Location, end: Location) -> EditResult | None:
        """Units go as a whole."""
        first, last = min(start, end), max(start, end)
        result = super()._delete_via_keyboard(
            self._beside(first, forward=False), self._beside(last, forward=True)
        )
        self._deleted = result.replaced_text if result is not None else ""
        return result

    def _beside(self, location: Location, *, forward: bool) -> Location:
        row, column = location
        if row >= self.document.line_count:
            return location
        line = self.document.get_line(row)
        starts = unit_starts(line, tuple(self.chips.spans(line)))
        at = bisect_left(starts, column) if forward else bisect_right(starts, column) - 1
        return row, starts[min(max(at, 0), len(starts) - 1)]

    # ---------------------------------------------------------------- killing and yanking

    async def _on_key(self, event: events.Key) -> None:
        self._before, self._did = self._did, ""
        await super()._on_key(event)

    def begin_key(self) -> None:
        """Another key runs an action: what the one before did is known to it."""
        self._before, self._did = self._did, ""

    def action_kill_word_left(self) -> None:
        self._kill(self.action_delete_word_left, before=True)

    def action_kill_word_right(self) -> None:
        self._kill(self.action_delete_word_right)

    def action_kill_to_start(self) -> None:
        self._kill(self.action_delete_to_start_of_line, before=True)

    def action_kill_to_end(self) -> None:
        self._kill(self.action_delete_right if self.cursor_at_end_of_line else self._delete_to_end)

    def action_yank(self) -> None:
        self._yank(self._kills.current)

    def action_yank_pop(self) -> None:
        if self._before == "yank" and self._yanked is not None:
            self.delete(*self._yanked, maintain_selection_offset=False)
            self._yank(self._kills.older())

    def _delete_to_end(self) -> None:
        row, _ = self.cursor_location
        self._delete_via_keyboard(self.cursor_location, (row, len(self.document.get_line(row))))

    def _kill(self, delete: Callable[[], None], *, before: bool = False) -> None:
        self._deleted = ""
        delete()
        self._kills.add(self._deleted, before=before, joined=self._before == "kill")
        self._did = "kill"

    def _yank(self, text: str) -> None:
        if text:
            start, end = self.selection
            result = self.replace(text, start, end, maintain_selection_offset=False)
            self._yanked = min(start, end), result.end_location
        self._did = "yank"
