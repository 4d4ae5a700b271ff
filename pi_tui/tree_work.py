"""What the screen has the runtime do with the tree: moves and the way back, labels, searches, copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pi_trio.session.digest import said

if TYPE_CHECKING:
    from pi_tui.items.tree_preview import Preview
    from pi_tui.live import LiveSession
    from pi_tui.row_facts import Unknown
    from pi_tui.tree_rows import Row
    from pi_tui.widgets.session_tree import SessionTree
    from pi_tui.work import View, Work

__all__ = ["TreeWork"]


class TreeWork:
    """See `Work`, of which it is a part. Places that were left are kept, the last one for `back`."""

    def __init__(self, work: Work, view: View) -> None:
        self._work = work
        self._view = view
        self._places: list[tuple[str, str | None]] = []
        self._searching = False

    @property
    def _live(self) -> LiveSession:
        assert self._work.live is not None  # noqa: S101  # callers have a session
        return self._work.live

    # ---------------------------------------------------------------- moving

    async def go(self, target_id: str, *, summarise: bool = False, instructions: str = "") -> None:
        """Move to an entry; before a prompt its text comes into the prompt.

        With `summarise` a summary of what is left is put there, made with `instructions` in mind.
        """
        store = self._live.store
        if store.outline.is_at(target_id, store.leaf_id):
            self._view.tell("this is where you are")
            return
        live = self._live
        stopped = await self._make_way()
        place = (live.id, live.store.leaf_id)
        live.summarising = summarise
        self._view.sync()
        try:
            moved = await live.navigate(target_id, summarise=summarise, instructions=instructions)
        finally:
            live.summarising = False
            self._view.sync()
        if summarise and moved.leaf_id == place[1]:
            self._view.tell("no summary was made, and nothing has moved")
            return
        self._places.append(place)
        self._arrive(live, moved.text, stopped)

    async def fork(self, row: Row) -> None:
        """Go on from a row in a new session. The one before is left as it is, running or not."""
        text = "Forked into a new session; `-` in the tree goes back."
        await self._part(row.id, before=row.kind == "prompt", notice=text)

    async def clone(self, row: Row) -> None:
        """Go on after a row in a new session that has all up to there."""
        text = "Cloned into a new session; `-` in the tree goes back."
        await self._part(row.end, before=False, notice=text)

    async def back(self) -> None:
        """Return to where the last move came from."""
        if self._work.live is None or not self._places:
            self._view.tell("there is no earlier place")
            return
        session_id, leaf_id = self._places[-1]
        stopped = ""
        if session_id != self._live.id:
            await self._work.switch(lambda runtime: runtime.snapshot(session_id))
        else:
            stopped = await self._make_way()
            await self._live.navigate(leaf_id or self._live.store.outline.heads[0].id)
        self._places.pop()
        self._arrive(self._live, "", stopped)

    def forget(self, session_id: str) -> None:
        """A session is open no more: no way leads back to it."""
        self._places = [place for place in self._places if place[0] != session_id]

    async def _part(self, target_id: str, *, before: bool, notice: str) -> None:
        place = (self._live.id, self._live.store.leaf_id)
        moved = await self._live.fork(target_id, before=before)
        await self._work.switch(lambda runtime: runtime.snapshot(moved.session_id))
        self._places.append(place)
        self._arrive(self._live, moved.text, notice)

    async def _make_way(self) -> str:
        """Stop a turn that runs, and say what is to be said about that where one arrives."""
        store = self._live.store
        if not store.running:
            return ""
        turn = store.turn_number
        await self._work.stop(withdraw=False)
        return f"■ Turn {turn} was running there and was stopped; `-` in the tree goes back to it."

    def _arrive(self, live: LiveSession, text: str, notice: str) -> None:
        """After a move: to the stream, with the text of the prompt that was there."""
        self._work.give_back(live, [text])
        if notice:
            live.store.say(notice)
        if live is self._work.live:
            self._view.prompt.remember(live.store.items.prompts)
            self._view.to_stream()
        self._view.sync()

    # ---------------------------------------------------------------- looking

    async def learn(self, tree: SessionTree, unknown: Sequence[Unknown]) -> None:
        """Find out what rows show that have come into view."""
        facts = tree.facts
        for asked, told in zip(
            unknown, await self._live.digests([each.ids for each in unknown]), strict=True
        ):
            facts.learn(asked, told)
        tree.refresh()

    async def search(self, tree: SessionTree) -> None:
        """Find what is written, as often as it has changed meanwhile; one search at a time."""
        if self._searching:
            return
        self._searching = True
        try:
            while tree.search.found is None:
                text = tree.search.text
                tree.take_found(text, await self._live.find(text))
        finally:
            self._searching = False

    async def preview(self, row: Row) -> Preview:
        """What there is to say of a row."""
        return await self._live.preview(row)

    # ---------------------------------------------------------------- entries

    async def label(self, row: Row, label: str) -> None:
        """Put a label on an entry; an empty one takes it away."""
        await self._live.set_label(row.id, label.strip())
        self._view.sync()

    async def text(self, row: Row) -> str:
        """What an entry says."""
        return said((await self._live.entries([row.id]))[0])

    async def export(self, row: Row, path: str) -> None:
        """Write the branch up to a row to a file, and say where it is."""
        self._view.say(f"Written to {await self._live.export(path, row.end)}.")
