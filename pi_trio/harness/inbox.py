"""Where input waits: the lists `next-step` and `next-turn`.

Claiming takes out for use; what was claimed and is handed back unused does not come in
again by itself. In the claim order next-step input comes first, then parked input, then
the prompt.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from attrs import define, field, frozen

from pi_trio.events import QueueUpdate
from pi_trio.messages import AgentMessage, UserMessage, text_of

__all__ = ["Inbox", "QueueMode"]

QueueMode: TypeAlias = Literal["one-at-a-time", "all"]


@frozen(eq=False)
class _Item:
    message: AgentMessage
    parked: bool = False


@define
class Inbox:
    """The two lists. `steering_mode` says how much of next-step one claim takes."""

    steering_mode: QueueMode = "all"
    _next_step: list[_Item] = field(factory=list, init=False)
    _next_turn: list[_Item] = field(factory=list, init=False)

    def add_step(self, message: AgentMessage) -> None:
        """Wait for the next step."""
        self._next_step.append(_Item(message))

    def add_turn(self, message: AgentMessage, *, first: bool = False, parked: bool = False) -> None:
        """Wait for a turn of its own (`first`: before those that wait), or for the next prompt."""
        item = _Item(message, parked)
        if first:
            self._next_turn.insert(0, item)
        else:
            self._next_turn.append(item)

    @property
    def wakes(self) -> bool:
        """Whether something waits that a turn could be opened for."""
        return bool(self._next_step) or any(not item.parked for item in self._next_turn)

    def claim_step(self) -> list[AgentMessage]:
        """Take the input of the open turn's next step."""
        count = 1 if self.steering_mode == "one-at-a-time" else len(self._next_step)
        claimed, self._next_step = self._next_step[:count], self._next_step[count:]
        return [item.message for item in claimed]

    def claim_turn(self) -> list[AgentMessage]:
        """Take the input of a new turn: next-step input, then parked input and one prompt.

        A turn that only steering opens leaves the parked input where it is.
        """
        claimed = self.claim_step()
        prompt = next((item for item in self._next_turn if not item.parked), None)
        if prompt is None:
            return claimed
        parked = [item for item in self._next_turn if item.parked]
        self._next_turn = [item for item in self._next_turn if not item.parked and item is not prompt]
        return [*claimed, *(item.message for item in parked), prompt.message]

    def clear(self) -> list[AgentMessage]:
        """Take everything out, next-step first."""
        items = [*self._next_step, *self._next_turn]
        self._next_step, self._next_turn = [], []
        return [item.message for item in items]

    def summary(self) -> QueueUpdate:
        """What waits, as texts."""
        return QueueUpdate(tuple(map(_text, self._next_step)), tuple(map(_text, self._next_turn)))


def _text(item: _Item) -> str:
    return text_of(item.message.content) if isinstance(item.message, UserMessage) else item.message.role
