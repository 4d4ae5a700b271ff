"""What waits in an `Agent`: messages under ids to edit them by, in queues that are claimed from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count

from attrs import evolve, frozen

from pi_trio.errors import UsageError
from pi_trio.loop.driver import QueueMode
from pi_trio.messages import AgentMessage

__all__ = ["AgentQueue", "AgentQueues", "QueueItem"]


@frozen
class QueueItem:
    """A message that waits. `id` is the same for as long as it does."""

    id: str
    message: AgentMessage


class AgentQueue:
    """Messages that wait to be claimed."""

    def __init__(self, ids: Iterator[int]) -> None:
        self.items: list[QueueItem] = []
        self._ids = ids

    def add(self, messages: Iterable[AgentMessage]) -> None:
        """Append `messages`, each under a new id."""
        self.items += [QueueItem(str(next(self._ids)), message) for message in messages]

    def claim(self, mode: QueueMode) -> list[QueueItem]:
        """Take out what may be used now."""
        end = 1 if mode == "one-at-a-time" else len(self.items)
        claimed, self.items = self.items[:end], self.items[end:]
        return claimed

    def put_back(self, items: Sequence[QueueItem]) -> None:
        """Have what was claimed and not used wait again, before the others."""
        self.items[:0] = items


class AgentQueues:
    """All queues of one agent. Ids are unique among them."""

    def __init__(self) -> None:
        ids = count(1)
        self.steering: AgentQueue = AgentQueue(ids)
        self.follow_up: AgentQueue = AgentQueue(ids)
        self.next_turn: AgentQueue = AgentQueue(ids)
        self.carried: AgentQueue = AgentQueue(ids)
        """Contexts of tool results, for the next step. Nobody edits them."""

    def edit(self, item_id: str, message: AgentMessage) -> None:
        """Put another message in the place of one that waits. Raises `UsageError` if it does not."""
        queue, place = self._find(item_id)
        queue.items[place] = evolve(queue.items[place], message=message)

    def remove(self, item_id: str) -> None:
        """Take one out for good. Raises `UsageError` if it does not wait."""
        queue, place = self._find(item_id)
        del queue.items[place]

    def move(self, item_id: str, place: int) -> None:
        """Put one in another place of its queue. Raises `UsageError` if it does not wait."""
        queue, old = self._find(item_id)
        item = queue.items.pop(old)
        queue.items.insert(max(place, 0), item)

    def clear(self) -> None:
        """Drop everything."""
        for queue in (self.steering, self.follow_up, self.next_turn, self.carried):
            queue.items.clear()

    def _find(self, item_id: str) -> tuple[AgentQueue, int]:
        for queue in (self.steering, self.follow_up, self.next_turn):
            for place, item in enumerate(queue.items):
                if item.id == item_id:
                    return queue, place
        raise UsageError(f"Nothing with the id {item_id} waits.")
