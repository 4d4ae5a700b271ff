"""The tool pane: the calls of this session, newest first, and all of the selected one below."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.segment import Segment
from textual.message import Message
from textual.strip import Strip

from pi_tui.items.paint import BOLD, Look, line
from pi_tui.items.tools import call_details, call_line
from pi_tui.shown import Call
from pi_tui.store import SessionStore
from pi_tui.theme import Theme
from pi_tui.widgets.lines import LineView, bindings_for, styled

__all__ = ["ToolPane"]

LISTED = 8
"""Calls in the list at a time."""

MOST_LINES = 5000
"""Lines of one output that are shown here, its last ones."""


class ToolPane(LineView, can_focus=True):
    """The list stays in place; the output scrolls, and follows its end while the call runs."""

    DEFAULT_CSS = """
    ToolPane { height: 1fr; }
    """
    BINDINGS = bindings_for("tools")

    class Stopped(Message):
        """The user wants one call stopped."""

        def __init__(self, call_id: str) -> None:
            super().__init__()
            self.call_id = call_id

    def __init__(
        self,
        store: SessionStore,
        theme: Theme,
        keymap: Mapping[str, str],
        *,
        id: str | None = None,  # noqa: A002  # Textual's name
    ) -> None:
        super().__init__(theme, keymap, id=id)
        self.store = store
        self._calls: list[Call] = []
        self._selected: Call | None = None
        self._drawn: tuple[Any, list[Strip]] = (None, [])
        self._tick = 0

    def show(self, store: SessionStore) -> None:
        """Show the calls of a session."""
        self.store, self._selected = store, None
        self.sync()

    def sync(self) -> None:
        """Take over what changed in the store. Does nothing while the pane is not seen."""
        if not self.display:
            return
        calls = list(self.store.calls.values())[::-1]
        self._calls = sorted(calls, key=lambda call: call.state != "running")
        if self._selected not in self._calls:
            self._selected = self._calls[0] if self._calls else None
        at_end = self.scroll_offset.y >= self.max_scroll_y
        self.set_line_count(self._head + len(self._output()))
        if at_end and self._selected is not None and self._selected.state == "running":
            self.scroll_end(animate=False)

    def restyle(self) -> None:
        self._drawn = (None, [])
        self.sync()
        self.refresh()

    def animate_running(self) -> None:
        """Turn the spinners and count the seconds of what runs."""
        self._tick += 1
        self.sync()

    # ---------------------------------------------------------------- keys

    def action_move(self, by: int) -> None:
        if self._selected is None:
            return
        at = self._calls.index(self._selected) + by
        self._selected = self._calls[min(max(at, 0), len(self._calls) - 1)]
        self.scroll_to(y=0, animate=False)
        self.sync()

    def action_move_page(self, by: int) -> None:
        self.scroll_relative(y=by * max(self.size.height - self._head - 1, 1), animate=False)

    def action_stop(self) -> None:
        if self._selected is not None and self._selected.state == "running":
            self.post_message(self.Stopped(self._selected.id))

    # ---------------------------------------------------------------- drawing

    @property
    def _head(self) -> int:
        """Lines of the title, the list and the rule below it."""
        return 2 + min(max(len(self._calls), 1), LISTED)

    def render_line(self, y: int) -> Strip:
        if y < self._head:  # this part does not scroll
            return styled(self._head_line(y), self.size.width)
        return super().render_line(y)

    def line_at(self, y: int) -> Strip | None:
        output = self._output()
        at = y - self._head
        return output[at] if at < len(output) else None

    def _head_line(self, y: int) -> Strip:
        look = self._look()
        if y == 0:
            return line(self.width, [(f" Tools · {self._summary()}", BOLD)])
        if y == self._head - 1:
            return Strip([Segment("─" * self.width, self.theme["borderMuted"])])
        if not self._calls:
            return line(self.width, [(" no calls so far", self.theme["muted"])])
        call = self._calls[self._first_listed() + y - 1]
        chosen = call is self._selected
        mark = Segment("›" if chosen else " ", self.theme["accent"])
        strip = Strip([mark, *call_line(call, look.narrower(1))])
        return strip.apply_style(self.theme["selectedBg"]) if chosen and self.has_focus else strip

    def _first_listed(self) -> int:
        at = self._calls.index(self._selected) if self._selected else 0
        return min(max(at - LISTED + 1, 0), max(len(self._calls) - LISTED, 0))

    def _summary(self) -> str:
        running = sum(call.state == "running" for call in self._calls)
        over = sum(call.over for call in self._calls)
        return f"{running} running, {over} done" if running else f"{over} done"

    def _output(self) -> list[Strip]:
        call = self._selected
        if call is None:
            return []
        key = (call.id, call.state, call.output, self.width)
        if self._drawn[0] != key:
            self._drawn = (key, call_details(call, self._look(), MOST_LINES))
        return self._drawn[1]

    def _look(self) -> Look:
        return Look(self.width, self.theme, now=self.store.clock(), tick=self._tick)
