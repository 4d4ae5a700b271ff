"""Finding in the stream: the whole of it, though most of a long session was never loaded."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from textual.worker import Worker

from pi_trio.text import sanitise
from pi_tui.find import Query, item_text
from pi_tui.items.words import plural
from pi_tui.shown import Item
from pi_tui.widgets.find_bar import FindBar

if TYPE_CHECKING:
    from pi_tui.live import LiveSession
    from pi_tui.store import SessionStore
    from pi_tui.widgets.reading import Stream

__all__ = ["Finding"]

AT_A_TIME = 200
"""Items that are looked through between two keys."""

STILL_CHANGING = 8
"""Items at the end that may say more than when they were last looked through."""

_PASSING = frozenset({"live", "shell"})
"""Items of what goes on."""


class Finding:
    """One search at a time, over one session. `active` while the bar is there."""

    def __init__(self, bar: FindBar, stream: Stream) -> None:
        self._bar = bar
        self._stream = stream
        self._query = Query("")
        self._hits: set[str] = set()
        self._looked = 0
        self._origin = 0
        self._searching: Worker[None] | None = None
        self.active = False

    def open(self) -> None:
        """Ask what to look for."""
        self.active = True
        self._origin = self._stream.first_in_view
        self._bar.open()
        self._tell()

    def close(self) -> None:
        """Nothing is looked for any more."""
        self._stop()
        self.active = False
        self._bar.close()
        self._query, self._hits = Query(""), set()
        self._stream.look_for(self._query, self._hits)

    def look_for(self, text: str, live: LiveSession) -> None:
        """Look for a text, and show the first place from where the reader is."""
        self._stop()
        self._query, self._hits = Query(text), set()
        self._looked = len(live.store.items)
        self._stream.look_for(self._query, self._hits)
        if self._query:
            self._searching = self._bar.run_worker(self._search(live, list(live.store.items)))
        self._tell()

    def go(self, by: int) -> None:
        """To the next place, or the one before."""
        self._stream.action_find_next(by)
        self._tell()

    def sync(self, live: LiveSession) -> None:
        """Look through what has come since."""
        if not self._query:
            return
        items, known = live.store.items, set(self._hits)
        first = max(min(self._looked, len(items)) - STILL_CHANGING, 0)
        self._hits -= _PASSING  # an entry has perhaps taken its place
        self._hits |= {item.key for item in items[first:] if self._says(item, live)}
        self._looked = len(items)
        if self._hits != known:
            self._stream.sync()
            self._tell()

    async def _search(self, live: LiveSession, items: list[Item]) -> None:
        """From the end on, since that is where one mostly is."""
        moved = False
        for last in range(len(items), 0, -AT_A_TIME):
            some = items[max(last - AT_A_TIME, 0) : last]
            self._hits |= {item.key for item in some if not item.missing and self._says(item, live)}
            missing = {id_: item.key for item in some if item.missing for id_ in item.ids}
            if missing:
                found = await live.find_among(list(missing), self._query)
                self._hits |= {missing[id_] for id_ in found}
            if self._hits and not moved:
                moved = True
                self._stream.show_hit_from(self._origin)
            self._tell(searching=last > AT_A_TIME)
            await asyncio.sleep(0)
        self._stream.sync()

    def _says(self, item: Item, live: LiveSession) -> bool:
        return self._query.is_in(_text_now(item, live.store))

    def _stop(self) -> None:
        if self._searching is not None:
            self._searching.cancel()
            self._searching = None

    def _tell(self, *, searching: bool = False) -> None:
        if not self._query:
            self._bar.tell("")
            return
        place = self._stream.place_among_hits()
        many = plural(len(self._hits), "place") if self._hits else "nothing"
        found = f"{place} of {len(self._hits)}" if place else many
        self._bar.tell(found + (" …" if searching else ""))


def _text_now(item: Item, store: SessionStore) -> str:
    """What an item says: that of what goes on grows in the store."""
    if item.kind == "live":
        return sanitise("\n\n".join(block.text for block in store.live.values()))
    if item.kind == "shell" and store.shell is not None:
        return sanitise(f"! {store.shell.command}\n{store.shell.output}")
    return item_text(item)
