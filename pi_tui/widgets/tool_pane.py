"""The tool pane: the calls of this session, newest first, and all of the selected one below.

As long as the reader chooses none, it shows what is most worth seeing: a call that failed just
now, else what runs, else the last one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.segment import Segment
from textual.message import Message
from textual.strip import Strip

from pi_trio.text import sanitise
from pi_tui.items.paint import BOLD, Look, line, painted, wrapped
from pi_tui.items.tools import call_details, call_line, diff_of, subject
from pi_tui.items.words import plural
from pi_tui.shown import Call
from pi_tui.store import SessionStore
from pi_tui.theme import Theme
from pi_tui.widgets.lines import Copied, Missing, bindings_for, styled
from pi_tui.widgets.session_pane import SessionPane

__all__ = ["ToolPane"]

LISTED = 8
"""Calls in the list at a time."""

PINNED_LINES = 6
"""Lines of the end of what a pinned call printed."""

MOST_LINES = 5000
"""Lines of one output that are shown here, its last ones."""

COMMAND_LINES = 12
"""Lines of what a call was asked to do, where one is not enough."""


class ToolPane(SessionPane, can_focus=True):
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

    def __init__(self, store: SessionStore, theme: Theme, keymap: Mapping[str, str]) -> None:
        super().__init__(store, theme, keymap, id="tools")
        self.pinned: Call | None = None
        self._calls: list[Call] = []
        self._chosen: Call | None = None
        self._selected: Call | None = None
        self._drawn: tuple[Any, list[Strip]] = (None, [])
        self._following = True
        self._asked_for: set[str] = set()

    def show(self, store: SessionStore) -> None:
        """Show the calls of a session."""
        self.store, self._chosen, self.pinned = store, None, None
        self.sync()

    def sync(self) -> None:
        """Take over what changed in the store. Does nothing while the pane is not seen."""
        if not self.display:
            return
        calls = list(self.store.calls)[::-1]
        self._calls = sorted(calls, key=lambda call: call.state != "running")
        self._chosen = self._chosen if self._chosen in self._calls else None
        self.pinned = self.pinned if self.pinned in self._calls else None
        self._select(self._chosen or self._worth_seeing())
        self._ask_for_dropped()
        self.set_line_count(self._head + len(self._output()))
        if self._following:
            self.scroll_to(y=self.max_scroll_y, animate=False, force=True)

    def restyle(self) -> None:
        self._drawn = (None, [])
        self.sync()
        self.refresh()

    def animate_running(self) -> None:
        """Turn the spinners and count the seconds of what runs."""
        self._tick += 1
        self.sync()

    def _ask_for_dropped(self) -> None:
        """What is shown now may have been let go of."""
        dropped = [call for call in (self._selected, self.pinned) if call is not None and call.dropped]
        wanted = [call.result_id for call in dropped if call.result_id not in self._asked_for]
        self._asked_for = {call.result_id for call in dropped}
        if wanted:
            self.post_message(Missing(wanted))

    def _worth_seeing(self) -> Call | None:
        over = [call for call in self._calls if call.over]
        if over and over[0].state == "failed":
            return over[0]
        return self._calls[0] if self._calls else None

    def _select(self, call: Call | None) -> None:
        """Another call begins at its end if it runs, else at its beginning."""
        if call is not self._selected:
            self._selected = call
            self.scroll_to(y=0, animate=False, force=True)
            self._following = self.runs

    @property
    def runs(self) -> bool:
        """Whether more may come of what is shown."""
        return self._selected is not None and self._selected.state == "running"

    # ---------------------------------------------------------------- keys

    def action_move(self, by: int) -> None:
        if self._selected is None:
            return
        at = self._calls.index(self._selected) + by
        self._chosen = self._calls[min(max(at, 0), len(self._calls) - 1)]
        self.sync()

    def action_move_page(self, by: int) -> None:
        self._following = False
        self.scroll_relative(y=by * max(self.size.height - self._head - 1, 1), animate=False)

    def action_to_edge(self, by: int) -> None:
        self._following = by > 0 and self.runs
        self.scroll_to(y=self.max_scroll_y if by > 0 else 0, animate=False)

    def action_pin(self) -> None:
        self.pinned = None if self.pinned is self._selected else self._selected
        self.sync()

    def action_copy(self) -> None:
        if self._selected is not None:
            self.post_message(Copied(sanitise(diff_of(self._selected) or self._selected.printed)))

    def action_stop(self) -> None:
        if self._selected is not None and self.runs:
            self.post_message(self.Stopped(self._selected.id))

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Whoever scrolls up stays there; at the end of what runs one follows it again."""
        super().watch_scroll_y(old_value, new_value)
        if round(new_value) < min(round(old_value), self.max_scroll_y):
            self._following = False
        elif round(new_value) >= self.max_scroll_y and self.runs:
            self._following = True

    def on_resize(self) -> None:
        """Another size has another end."""
        self.sync()

    # ---------------------------------------------------------------- drawing

    @property
    def _head(self) -> int:
        """Lines of the title, the list, the pinned call and the rule below each."""
        return 2 + min(max(len(self._calls), 1), LISTED) + len(self._pinned_lines())

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
        pinned = self._pinned_lines()
        if y == 0:
            return line(
                self.width, [(f" Tools · {self._summary()}", BOLD)], [(self._above(), look.theme["muted"])]
            )
        if y == self._head - 1 - len(pinned):
            return Strip([Segment("─" * self.width, self.theme["borderMuted"])])
        if y >= self._head - len(pinned):
            return pinned[y - self._head + len(pinned)]
        if not self._calls:
            return line(self.width, [(" no calls so far", self.theme["muted"])])
        call = self._calls[self._first_listed() + y - 1]
        chosen = call is self._selected
        mark = Segment("›" if chosen else "▪" if call is self.pinned else " ", self.theme["accent"])
        strip = Strip([mark, *call_line(call, look.narrower(1))])
        return strip.apply_style(self.theme["selectedBg"]) if chosen and self.has_focus else strip

    def _first_listed(self) -> int:
        at = self._calls.index(self._selected) if self._selected else 0
        return min(max(at - LISTED + 1, 0), max(len(self._calls) - LISTED, 0))

    def _summary(self) -> str:
        running = sum(call.state == "running" for call in self._calls)
        over = sum(call.over for call in self._calls)
        return f"{running} running, {over} done" if running else f"{over} done"

    def _above(self) -> str:
        """How much of the output is above the view."""
        above = round(self.scroll_offset.y)
        if not above:
            return ""
        return f"{'following · ' if self._following else ''}{plural(above, 'line')} above "

    def _pinned_lines(self) -> list[Strip]:
        """The pinned call with the end of its output, unless it is shown below anyway."""
        call = self.pinned
        if call is None or call is self._selected:
            return []
        look = self._look()
        rule = Strip([Segment("─" * self.width, self.theme["borderMuted"])])
        return [call_line(call, look), *call_details(call, look, PINNED_LINES), rule]

    def _output(self) -> list[Strip]:
        call = self._selected
        if call is None:
            return []
        key = (call, call.state, call.output, self.width, id(self.theme))
        if self._drawn[0] != key:
            self._drawn = (key, self._asked(call) + call_details(call, self._look(), MOST_LINES))
        return self._drawn[1]

    def _asked(self, call: Call) -> list[Strip]:
        """What the call was asked to do, where its line in the list has no room for it."""
        asked = wrapped(subject(call), self.width, self.theme["toolTitle"])
        head = [*asked[:COMMAND_LINES], painted([], self.width)] if len(asked) > 1 else []
        if call.cut:
            cut = f"… the {call.cut:,} characters before this are in the session file"
            head += wrapped(cut, self.width, self.theme["warning"])
        return head

    def _look(self) -> Look:
        return Look(self.width, self.theme, now=self.store.clock(), tick=self._tick)
