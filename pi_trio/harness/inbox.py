"""Where input waits: the lists `next-step` and `next-turn`.

Claiming takes out for use; what was claimed and is handed back unused does not come in
again by itself. In the claim order next-step input comes first, then parked input, then
the prompt.
"""

from __future__ import annotations

from attrs import define, field, frozen

from pi_trio.events import QueueUpdate
from pi_trio.loop.driver import QueueMode
from pi_trio.messages import AgentMessage, UserMessage, text_of

__all__ = ["Inbox"]


@frozen(eq=False)
class _Item:
    message: AgentMessage
    parked: bool = False


@define
class Inbox:
    """The two lists. The modes say how much of next-step, and how many prompts, one claim takes."""

    steering_mode: QueueMode = "all"
    follow_up_mode: QueueMode = "one-at-a-time"
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
        """Take the input of a new turn: next-step input, then parked input and the prompt.

        A turn that only steering opens leaves the parked input where it is.
        """
        claimed = self.claim_step()
        prompts = [item for item in self._next_turn if not item.parked]
        if not prompts:
            return claimed
        taken = prompts if self.follow_up_mode == "all" else prompts[:1]
        parked = [item for item in self._next_turn if item.parked]
        self._next_turn = prompts[len(taken) :]
        return [*claimed, *(item.message for item in (*parked, *taken))]

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
