"""The messages that wait, in the order in which they go in: seen, edited, moved and dropped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from attrs import frozen
from textual import events
from textual.strip import Strip
from textual.widget import Widget

from pi_tui.items.paint import BOLD, Span, line, one_line
from pi_tui.keymap import hint
from pi_tui.theme import Theme
from pi_tui.widgets.lines import bindings_for, own_actions, passed_on, styled, taken

if TYPE_CHECKING:
    from pi_trio.events import QueueUpdate

__all__ = ["QueueList", "QueueRow", "Wish", "queue_rows"]

SHOWN = 4
"""Waiting messages in view at a time."""

Wish: TypeAlias = Literal["edit", "drop", "move"]


@frozen
class QueueRow:
    """A message that waits, at its `place` in its own list; `unsent`: for the server to be there again."""

    id: str
    how: Literal["steer", "queue", "unsent"]
    text: str
    place: int


def queue_rows(queue: QueueUpdate, unsent: Sequence[str] = ()) -> list[QueueRow]:
    """What waits, in the order in which it goes in; behind it what has not reached the server."""
    steering = zip(queue.steering_ids, queue.steering, strict=False)
    follow_up = zip(queue.follow_up_ids, queue.follow_up, strict=False)
    return [
        *(QueueRow(id_, "steer", text, place) for place, (id_, text) in enumerate(steering)),
        *(QueueRow(id_, "queue", text, place) for place, (id_, text) in enumerate(follow_up)),
        *(QueueRow("", "unsent", text, place) for place, text in enumerate(unsent)),
    ]


class QueueList(Widget, can_focus=True):
    """Without messages it takes no room. The cursor is seen while it has the keys.

    `wanted` is called with what is to be done with a row, and for a move with its new place; `leave`
    gives the keys to the prompt. Both at once, so that the next key is for whom it was meant.
    """

    DEFAULT_CSS = """
    QueueList { height: 0; }
    """
    BINDINGS = bindings_for("queue")

    def __init__(
        self,
        theme: Theme,
        keymap: Mapping[str, str],
        wanted: Callable[[Wish, QueueRow, int], None],
        leave: Callable[[], None],
        *,
        id: str | None = None,  # noqa: A002  # Textual's name
    ) -> None:
        super().__init__(id=id)
        self._wanted = wanted
        self._leave = leave
        self.theme = theme
        self._actions = own_actions(self, keymap)
        here = {"app.queue.edit": "edits", "app.queue.earlier": "moves", "app.queue.drop": "drops"}
        self._hint_here = hint(here, keymap)
        self._hint_away = hint({"tui.editor.cursorUp": "edits"}, keymap)
        self.rows: Sequence[QueueRow] = ()
        self._at = 0
        self._reached = True

    def tell(self, queue: QueueUpdate, unsent: Sequence[str] = (), *, reached: bool = True) -> None:
        """Show what waits. The cursor stays with its message, or where that was. `reached`: the key that
        is named leads here, not to the lines of a draft and to earlier prompts.
        """
        if reached != self._reached:
            self._reached = reached
            self.refresh()
        rows = queue_rows(queue, unsent)
        if rows == self.rows:
            return
        here = self.rows[self._at].id if self._at < len(self.rows) else ""
        ids = [row.id for row in rows]
        self.rows = rows
        self._at = ids.index(here) if here in ids else max(min(self._at, len(rows) - 1), 0)
        self.styles.height = min(len(rows), SHOWN)
        self.refresh()
        if not rows and self.has_focus:
            self._leave()

    def to_last(self) -> None:
        """Go to the message that was written last."""
        self._at = len(self.rows) - 1
        self.refresh()

    # ---------------------------------------------------------------- keys

    async def _on_key(self, event: events.Key) -> None:
        if passed_on(self, event):
            return
        action = taken(event, self._actions)
        if action is not None:
            await self.run_action(action)

    def action_move(self, by: int) -> None:
        if self._at + by >= len(self.rows):
            self._leave()
        self._at = min(max(self._at + by, 0), len(self.rows) - 1)
        self.refresh()

    def action_edit(self) -> None:
        self._want("edit")

    def action_drop(self) -> None:
        self._want("drop")

    def action_reorder(self, by: int) -> None:
        """Only among its own: what steers goes in before what is queued."""
        row = self._chosen
        last = sum(each.how == row.how for each in self.rows) - 1 if row else 0
        if row is not None and 0 <= row.place + by <= last:
            self._wanted("move", row, row.place + by)

    def _want(self, wish: Wish) -> None:
        if self._chosen is not None:
            self._wanted(wish, self._chosen, 0)

    @property
    def _chosen(self) -> QueueRow | None:
        """The message that something can be done with: one that is unsent is on its way already."""
        row = self.rows[self._at] if self.rows else None
        return None if row is None or row.how == "unsent" else row

    def on_focus(self) -> None:
        """The cursor is seen."""
        self.refresh()

    def on_blur(self) -> None:
        """The cursor is not seen."""
        self.refresh()

    # ---------------------------------------------------------------- drawing

    def render_line(self, y: int) -> Strip:
        """A line, for Textual."""
        return styled(self._row(y), self.size.width)

    def _row(self, y: int) -> Strip:
        first = min(max(self._at - SHOWN + 1, 0), max(len(self.rows) - SHOWN, 0))
        at = first + y
        if at >= len(self.rows):
            return Strip([])
        row, here = self.rows[at], self.has_focus and at == self._at
        mark = f"{'›' if here else ' '}{at + 1} {row.how}  "
        text = one_line(row.text) + (" …" if "\n" in row.text.strip() else "")
        left: list[Span] = [
            (mark, self.theme["warning"]),
            (text, self.theme["text"] if here else self.theme["muted"]),
        ]
        if here:
            left = [(part, style + BOLD) for part, style in left]
        return line(self.size.width, left, self._right(at, first), self.theme["selectedBg"] if here else None)

    def _right(self, at: int, first: int) -> list[Span]:
        more = len(self.rows) - first - SHOWN
        if at - first == SHOWN - 1 and more > 0:
            return [(f"… {more} more ", self.theme["dim"])]
        if at != first:
            return []
        here = self._hint_here if self.has_focus else self._hint_away if self._reached else ""
        return [(f"{here} ", self.theme["dim"])] if here else []
