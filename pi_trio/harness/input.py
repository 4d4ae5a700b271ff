"""What is said to a session: what waits for a turn or a step, and what came back unused."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

from pi_trio.errors import BusyError, StorageError, UsageError
from pi_trio.events import InboxClaimed, InboxDiscarded, InboxInserted, InputReturned, QueueUpdate
from pi_trio.extensions.host import Delivery
from pi_trio.harness.inbox import Inbox, InboxItem, Splice, Target
from pi_trio.harness.options import HarnessOptions
from pi_trio.hub import Hub
from pi_trio.messages import AgentMessage, ImageContent, UserMessage
from pi_trio.session import facts
from pi_trio.session.entries import Entry
from pi_trio.session.session import Session

__all__ = ["Input"]


class Input(ABC):
    """The commands that say something. It is a fact of the session before anything follows from it,
    and is told in events. `returned` was claimed and not used, until somebody takes it.
    """

    def __init__(self, session: Session, hub: Hub, options: HarnessOptions) -> None:
        self.session = session
        self.hub = hub
        self.inbox: Inbox = Inbox(self._record_splice, options.steering_mode, options.follow_up_mode)
        self.returned: list[AgentMessage] = []
        self._told_queue = self.inbox.summary()

    @property
    @abstractmethod
    def running(self) -> bool:
        """Whether a run is in progress."""

    @property
    @abstractmethod
    def busy(self) -> bool:
        """Whether what is said now has to wait."""

    @abstractmethod
    def _check_start(self) -> None:
        """Raise a `PiError` if a run that is not there yet could not start: nothing is taken then."""

    @abstractmethod
    def _close_interruption(self) -> None:
        """Write what makes a file whole that a crash left open, before anything else is written."""

    @abstractmethod
    def _wake(self) -> None:
        """Run what waits, now or as soon as that may be."""

    def prompt(self, text: str, images: Iterable[ImageContent] = ()) -> None:
        """Open a turn. Raises `BusyError` while a run is in progress.

        As all that starts a run, it raises `ConfigError` if the model cannot be asked, and
        `LimitError` if there is nothing left to spend; then nothing was taken.
        """
        if self.running:
            raise BusyError("The agent is already processing a prompt: steer, follow up, or abort first.")
        self._insert("next-turn", user_message(text, images), first=True, wakes=True)

    def steer(self, text: str, images: Iterable[ImageContent] = ()) -> None:
        """Say something before the next request; idle: open a turn with it."""
        self._insert("next-step", user_message(text, images), wakes=True)

    def follow_up(self, text: str, images: Iterable[ImageContent] = ()) -> None:
        """Say something when the agent would stop; idle: open a turn with it."""
        self._insert("next-turn", user_message(text, images), wakes=True)

    def inject(self, message: AgentMessage) -> None:
        """Add to the next step, or to the first step of the next turn. Wakes nobody."""
        self._insert("next-step", message)

    def next_turn(self, text: str, images: Iterable[ImageContent] = ()) -> None:
        """Park something until the next prompt or follow-up. Wakes nobody."""
        self._insert("next-turn", user_message(text, images), parked=True)

    def edit_queued(self, item_id: str, text: str) -> None:
        """Put another text in the place of one that waits; its images stay. Raises `UsageError` if it
        does not wait.
        """
        images = _images_of(self.inbox.message(item_id))
        self._tell_changes(self.inbox.replace(item_id, user_message(text, images)))

    def remove_queued(self, item_id: str) -> None:
        """Take one out that waits. Raises `UsageError` if it does not."""
        self._tell_changes(self.inbox.remove(item_id))

    def move_queued(self, item_id: str, place: int) -> None:
        """Put one that waits in another place of its list. Raises `UsageError` if it does not."""
        self._tell_changes(*self.inbox.move(item_id, place))

    def send(self, message: AgentMessage, deliver: Delivery) -> None:
        """Put any message into the inbox, as `steer`, `follow_up` or `next_turn` would."""
        target: Target = "next-step" if deliver == "steer" else "next-turn"
        parked = deliver == "next_turn"
        self._insert(target, message, parked=parked, wakes=not parked)

    def clear_queue(self) -> QueueUpdate:
        """Take out what waits, and hand it back."""
        waiting = self.inbox.summary()
        self._tell_changes(*self.inbox.clear())
        return waiting

    def take_returned(self) -> list[AgentMessage]:
        """What was claimed and not used, once."""
        taken, self.returned = self.returned, []
        return taken

    # ------------------------------------------------------------------ kept and told

    def append_fact(self, name: str, **data: Any) -> None:
        """Write a fact of this session."""
        self.session.append(facts.fact(name, self.session.id, **data))

    def write_or_keep(self, entry: Entry) -> None:
        """Write what has happened and cannot be undone. Without room for it the session keeps it:
        then it is written first, and whatever is written next raises `StorageError` until it is.
        """
        leaf = self.session.get_leaf_id()
        try:
            self.session.append(entry, keep=True)
        except StorageError:
            if self.session.get_leaf_id() == leaf:  # no disk would take it
                raise

    def _insert(
        self,
        target: Target,
        message: AgentMessage,
        *,
        first: bool = False,
        parked: bool = False,
        wakes: bool = False,
    ) -> None:
        if wakes:
            self._check_start()
        self._close_interruption()
        self._tell_change(self.inbox.add(target, InboxItem.new(message, parked=parked), first=first))
        if wakes:
            self._wake()

    def _record_splice(self, change: Splice) -> None:
        self.append_fact(facts.INBOX_SPLICED, **change.to_json())

    def _tell_change(self, change: Splice | None) -> None:
        if change is None:
            return
        for item in change.removed:
            self.hub.post(InboxDiscarded(item.id, item.message))
        for item in change.inserted:
            self.hub.post(InboxInserted(item.id, item.message))
        if self.busy:
            self.tell_queue()

    def _tell_changes(self, *changes: Splice | None) -> None:
        """Tell what somebody did with what waits; others who see it may not be who did."""
        for change in changes:
            self._tell_change(change)
        self.tell_queue()

    def tell_claimed(self, items: Iterable[InboxItem], turn: int) -> None:
        """Tell what a turn took out for use."""
        for item in items:
            self.hub.post(InboxClaimed(item.id, item.message, turn))
        self.tell_queue()

    def tell_queue(self) -> None:
        """Tell what waits, if that has changed."""
        waiting = self.inbox.summary()
        if waiting != self._told_queue:
            self._told_queue = waiting
            self.hub.post(waiting)

    def hand_back(self, items: Sequence[InboxItem]) -> None:
        """Tell, durably, that claimed input was not used; it is offered until somebody takes it."""
        data = [item.to_json() for item in items]
        self.write_or_keep(facts.fact(facts.INBOX_RETURNED, self.session.id, items=data))
        self._return(item.message for item in items)

    def _return(self, messages: Iterable[AgentMessage]) -> None:
        returned = tuple(messages)
        self.returned += returned
        self.hub.post(InputReturned(returned))


def user_message(text: str, images: Iterable[ImageContent]) -> UserMessage:
    """A person's input. Raises `UsageError` if there is nothing in it."""
    if not text.strip() and not images:
        raise UsageError("There is nothing to send: the text is blank.")
    return UserMessage.of(text, images)


def _images_of(message: AgentMessage) -> list[ImageContent]:
    content = message.content if isinstance(message, UserMessage) else ()
    return [] if isinstance(content, str) else [block for block in content if isinstance(block, ImageContent)]
