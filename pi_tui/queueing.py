"""What the user does with messages that wait: editing one in the prompt, moving and dropping them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pi_trio.errors import PiError

if TYPE_CHECKING:
    from pi_tui.live import LiveSession
    from pi_tui.widgets.queue import QueueRow, Wish
    from pi_tui.work import View

__all__ = ["Queueing"]


class Queueing:
    """`editing` is the message whose text is in the prompt; what was written there comes back after it."""

    def __init__(self, view: View) -> None:
        self.editing: QueueRow | None = None
        self._live: LiveSession | None = None
        self._draft = ""
        self._view = view

    def carry_out(self, wish: Wish, live: LiveSession, row: QueueRow, place: int) -> None:
        """Do what is wanted of a message; `place` is for a move."""
        match wish:
            case "edit":
                self.begin(live, row)
            case "drop":
                self._view.do(self.drop(live, row))
            case "move":
                self._view.do(self.move(live, row, place))

    def begin(self, live: LiveSession, row: QueueRow) -> None:
        """Have a message edited in the prompt."""
        self.stop()
        prompt = self._view.prompt
        self._live, self.editing, self._draft = live, row, prompt.take_draft()
        prompt.put_back([row.text])
        self._view.to_stream()

    def stop(self) -> None:
        """The message stays as it was; what was written before is in the prompt again."""
        if self.editing is None:
            return
        self.editing = None
        self._view.prompt.take_draft()
        self._view.prompt.put_back([self._draft])

    def sync(self) -> None:
        """A message that has gone in meanwhile cannot be edited; what was written is a draft now."""
        editing, live = self.editing, self._live
        if editing is None or live is None:
            return
        if editing.id not in (*live.store.queue.steering_ids, *live.store.queue.follow_up_ids):
            self.editing = None
            self._view.prompt.put_back([self._draft])
            self._view.tell("the message has gone in as it was; what you wrote is a new one")

    async def finish(self, text: str) -> None:
        """The message has this text now. If it does not wait any more, that is a draft."""
        editing, live = self.editing, self._live
        if editing is None or live is None:
            return
        self.editing = None
        self._view.prompt.put_back([self._draft])
        try:
            await live.edit_queued(editing.id, text)
        except PiError:
            self._view.prompt.put_back([text])
            raise
        self._view.sync()

    async def drop(self, live: LiveSession, row: QueueRow) -> None:
        """Take a message out for good. The prompt's history still has its text."""
        await live.remove_queued(row.id)
        self._view.sync()

    async def move(self, live: LiveSession, row: QueueRow, place: int) -> None:
        """Have a message go in earlier or later than its neighbours."""
        await live.move_queued(row.id, place)
        self._view.sync()
