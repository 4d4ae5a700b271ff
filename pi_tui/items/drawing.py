"""The items of a session as strips, each drawn once for how it is looked at."""

from __future__ import annotations

from typing import Any

from textual.strip import Strip

from pi_trio.messages import AgentMessage
from pi_tui.items.markdown import Progress
from pi_tui.items.messages import LiveAnswer
from pi_tui.items.paint import Budget, Look
from pi_tui.items.render import animated, render_item
from pi_tui.shown import Item
from pi_tui.store import SessionStore

__all__ = ["Drawing"]

KEPT_LINES = 10_000
"""Lines of drawn items that are kept."""


class Drawing:
    """`expanded` and the keys in `opened` say what is unfolded; what is in both is not."""

    def __init__(self, store: SessionStore) -> None:
        self.expanded = False
        self.forget(store)

    def forget(self, store: SessionStore) -> None:
        """Draw this session from now on: the keys of items are those of their session."""
        self.store = store
        self.opened: set[str] = set()
        self.redraw()

    def redraw(self) -> None:
        """Nothing that was drawn is right any more: the colours are others."""
        self._drawn: dict[tuple[Any, ...], list[Strip]] = {}
        self._lines = 0
        self._unfinished: dict[str, tuple[AgentMessage | None, Look, Progress]] = {}
        self._live: tuple[Item, LiveAnswer] | None = None

    def expand(self, expanded: bool) -> None:
        """Unfold everything, or nothing."""
        self.expanded = expanded
        self.opened.clear()

    def strips(self, item: Item, look: Look, budget: Budget) -> list[Strip]:
        """An item. When the budget was exceeded it is not all there, and goes on the next time."""
        look = look.opened(self.expanded != (item.key in self.opened))
        if item.kind == "live":
            return self._live_answer(item, look).strips(self.store.live, budget)
        running = animated(item, self.store)
        moment = (look.tick, int(look.now)) if running else None
        key = (item.key, item.version, look.width, id(look.theme), look.expanded, moment)
        strips = self._drawn.get(key)
        if strips is None:
            progress = self._progress(item, look, budget)
            strips = render_item(item, self.store, look, progress)
            if budget.exceeded or running:
                self._unfinished[item.key] = item.message, look, progress
            if not budget.exceeded:
                self._keep(key, strips)
        return strips

    def _progress(self, item: Item, look: Look, budget: Budget) -> Progress:
        """How far the text of an item is drawn. What runs below it changes nothing about that."""
        message, before, progress = self._unfinished.pop(item.key, (None, look, None))
        if progress is None or message is not item.message or not before.fits(look):
            return Progress(budget)
        progress.budget = budget
        return progress

    def _keep(self, key: tuple[Any, ...], strips: list[Strip]) -> None:
        """Keep what was drawn, in the place of what was drawn longest ago."""
        self._drawn[key] = strips
        self._lines += len(strips)
        while self._lines > KEPT_LINES and len(self._drawn) > 1:
            self._lines -= len(self._drawn.pop(next(iter(self._drawn))))

    def _live_answer(self, item: Item, look: Look) -> LiveAnswer:
        """The streaming answer: what was drawn of it before is kept."""
        same = self._live is not None and self._live[0] is item and self._live[1].look.fits(look)
        if not same:
            self._live = (item, LiveAnswer(look))
        assert self._live is not None  # noqa: S101  # just made
        return self._live[1]
