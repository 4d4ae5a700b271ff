"""Where input waits: the lists `next-step` and `next-turn`, durable in the session file.

Every change is one splice: a fact `inbox/spliced` that says what was removed and what was
inserted, written before the lists change. So the lists are a fold of the file, and what
waits survives a restart. A removal for use is a *claim*; any other is marked `canceled`.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from attrs import define, field, frozen

from pi_trio import codec
from pi_trio.errors import UsageError
from pi_trio.events import QueueUpdate
from pi_trio.loop.driver import QueueMode
from pi_trio.messages import AgentMessage, UserMessage, text_of

__all__ = ["TARGETS", "Inbox", "InboxItem", "Splice", "Target"]

Target: TypeAlias = Literal["next-step", "next-turn"]
TARGETS: tuple[Target, Target] = ("next-step", "next-turn")


@frozen
class InboxItem:
    """A message that waits. A `parked` one goes in with the next prompt, and wakes nobody."""

    id: str
    message: AgentMessage
    parked: bool = False

    @classmethod
    def new(cls, message: AgentMessage, *, parked: bool = False) -> InboxItem:
        """An item with an id of its own."""
        return cls(uuid.uuid4().hex, message, parked)

    def to_json(self) -> dict[str, Any]:
        """As the fact carries it."""
        data = {"id": self.id, "message": codec.to_json(self.message)}
        return {**data, "parked": True} if self.parked else data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> InboxItem:
        """From the fact. Raises `ValueError` or `KeyError` if it is malformed."""
        return cls(str(data["id"]), codec.message_from_json(data["message"]), bool(data.get("parked")))


@frozen
class Splice:
    """One change of one list. `canceled` tells a removal that is not a claim."""

    target: Target
    start: int
    removed: tuple[InboxItem, ...] = ()
    inserted: tuple[InboxItem, ...] = ()
    canceled: bool = False

    def to_json(self) -> dict[str, Any]:
        """The data of the fact: no `removedCount` of 0, no `outcome` of a claim."""
        data: dict[str, Any] = {"target": self.target, "start": self.start}
        if self.removed:
            data["removedCount"] = len(self.removed)
        data["inserted"] = [item.to_json() for item in self.inserted]
        if self.canceled:
            data["outcome"] = "canceled"
        return data


@define
class Inbox:
    """The two lists. `record` makes a splice durable, or raises; then nothing has changed.

    The modes say how much of next-step, and how many prompts, one claim takes.
    """

    record: Callable[[Splice], None]
    steering_mode: QueueMode = "all"
    follow_up_mode: QueueMode = "one-at-a-time"
    _lists: dict[Target, list[InboxItem]] = field(factory=lambda: {"next-step": [], "next-turn": []})

    # ------------------------------------------------------------------ what waits

    def items(self, target: Target) -> tuple[InboxItem, ...]:
        """What one list holds, first first."""
        return tuple(self._lists[target])

    @property
    def wakes(self) -> bool:
        """Whether something waits that a turn could be opened for."""
        return bool(self._lists["next-step"]) or any(not item.parked for item in self._lists["next-turn"])

    def summary(self) -> QueueUpdate:
        """What waits, as texts and ids."""
        steering, follow_up = (self._lists[target] for target in TARGETS)
        return QueueUpdate(
            tuple(map(_text, steering)),
            tuple(map(_text, follow_up)),
            tuple(item.id for item in steering),
            tuple(item.id for item in follow_up),
        )

    # ------------------------------------------------------------------ changing it

    def splice(
        self,
        target: Target,
        start: int,
        remove: int = 0,
        insert: Sequence[InboxItem] = (),
        *,
        canceled: bool = True,
    ) -> Splice | None:
        """Replace `remove` items from `start` on; coordinates outside the list are clipped.

        None, and no fact, if nothing changes. Raises `UsageError` for an id that waits already.
        """
        waiting = self._lists[target]
        start = min(max(start, 0), len(waiting))
        removed = tuple(waiting[start : start + max(remove, 0)])
        if not removed and not insert:
            return None
        self._refuse_known(insert, removed)
        change = Splice(target, start, removed, tuple(insert), canceled and bool(removed))
        self.record(change)
        self.apply(change)
        return change

    def apply(self, change: Splice) -> None:
        """Take in a splice that is recorded already, as when a file is read."""
        end = change.start + len(change.removed)
        self._lists[change.target][change.start : end] = change.inserted

    def add(self, target: Target, item: InboxItem, *, first: bool = False) -> Splice | None:
        """Insert one item at the end, or `first`."""
        return self.splice(target, 0 if first else len(self._lists[target]), insert=(item,))

    def replace(self, item_id: str, message: AgentMessage) -> Splice | None:
        """Put another message in the place of one that waits. Raises `UsageError` if it does not."""
        target, place = self._find(item_id)
        old = self._lists[target][place]
        return self.splice(target, place, 1, (InboxItem.new(message, parked=old.parked),))

    def message(self, item_id: str) -> AgentMessage:
        """One message that waits. Raises `UsageError` if it does not."""
        target, place = self._find(item_id)
        return self._lists[target][place].message

    def remove(self, item_id: str) -> Splice | None:
        """Take one item out for good. Raises `UsageError` if it does not wait."""
        target, place = self._find(item_id)
        return self.splice(target, place, 1)

    def move(self, item_id: str, place: int) -> list[Splice]:
        """Put an item in another place of its list. Raises `UsageError` if it does not wait."""
        target, old = self._find(item_id)
        item = self._lists[target][old]
        return _made(self.splice(target, old, 1), self.splice(target, place, insert=(item,)))

    def clear(self) -> list[Splice]:
        """Take everything out for good, next-step first."""
        return _made(*(self.splice(target, 0, len(self._lists[target])) for target in TARGETS))

    # ------------------------------------------------------------------ claiming

    def claim_step(self) -> list[InboxItem]:
        """Take the input of the open turn's next step, for use."""
        count = 1 if self.steering_mode == "one-at-a-time" else len(self._lists["next-step"])
        return self._claim("next-step", 0, count)

    def claim_turn(self) -> list[InboxItem]:
        """Take the input of a new turn: next-step input, then parked input and the prompt.

        A turn that only steering opens leaves the parked input where it is.
        """
        claimed = self.claim_step()
        waiting = self._lists["next-turn"]
        prompts = sum(not item.parked for item in waiting)
        left = prompts if self.follow_up_mode == "all" else min(prompts, 1)
        taken: list[InboxItem] = []
        while left:
            place = next(index for index, item in enumerate(waiting) if not item.parked)
            taken += self._claim("next-turn", place, 1)
            left -= 1
        parked: list[InboxItem] = []
        while taken and any(item.parked for item in waiting):
            place = next(index for index, item in enumerate(waiting) if item.parked)
            parked += self._claim("next-turn", place, 1)
        return [*claimed, *parked, *taken]

    def _claim(self, target: Target, start: int, count: int) -> list[InboxItem]:
        change = self.splice(target, start, count, canceled=False)
        return list(change.removed) if change is not None else []

    # ------------------------------------------------------------------ inside

    def _find(self, item_id: str) -> tuple[Target, int]:
        for target in TARGETS:
            for place, item in enumerate(self._lists[target]):
                if item.id == item_id:
                    return target, place
        raise UsageError(f"Nothing with the id {item_id} waits.")

    def _refuse_known(self, insert: Iterable[InboxItem], removed: Iterable[InboxItem]) -> None:
        known = {item.id for target in TARGETS for item in self._lists[target]}
        known -= {item.id for item in removed}
        for item in insert:
            if item.id in known:
                raise UsageError(f"A message with the id {item.id} waits already.")
            known.add(item.id)


def _made(*changes: Splice | None) -> list[Splice]:
    return [change for change in changes if change is not None]


def _text(item: InboxItem) -> str:
    return text_of(item.message.content) if isinstance(item.message, UserMessage) else item.message.role
