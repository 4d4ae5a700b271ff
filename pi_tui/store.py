"""What is shown of a session: a pure reducer of snapshot and events, without Textual.

The transcript is a list of items over the entries of the current path; bodies that nobody
looked at stay unloaded (`message` is None) until `fill`. What changed is told by versions:
an item's own, and `structure` when items were replaced rather than appended.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, assert_never

from attrs import evolve

from pi_trio.events import (
    AgentEnd,
    AgentEvent,
    AgentSettled,
    AgentStart,
    ApprovalRequested,
    ApprovalResolved,
    AutoRetryEnd,
    AutoRetryStart,
    BashExecutionUpdate,
    CompactionEnd,
    CompactionStart,
    ConnectionChanged,
    EntryAppended,
    ExtensionError,
    Gap,
    InboxClaimed,
    InboxDiscarded,
    InboxInserted,
    InputReturned,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    QueueUpdate,
    SessionInfoChanged,
    ThinkingLevelChanged,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
    TurnEnd,
    TurnStart,
)
from pi_trio.hub import Envelope
from pi_trio.llm.protocol import Model, StreamEvent
from pi_trio.messages import (
    AssistantMessage,
    ToolResultMessage,
    UserMessage,
    text_of,
)
from pi_trio.remote.interface import CommandInfo, SessionInfo, Snapshot
from pi_trio.remote.offers import Surroundings
from pi_trio.session.facts import TURN_END
from pi_trio.session.scan import head_of
from pi_trio.session.tree import EntryHead
from pi_tui.bodies import (
    EMPTY,
    OUTPUT_CHARACTERS,
    Shelf,
    is_answer,
    item_kind,
    message_of,
    size_of,
    without_long_output,
)
from pi_tui.calls import Calls
from pi_tui.live_answer import LiveAnswer
from pi_tui.outline import Outline
from pi_tui.path_items import PathItems
from pi_tui.shown import Call, Item, Retry, Shell, Stats
from pi_tui.stats import turn_stats

__all__ = ["SessionStore"]


SHELL_CHARACTERS = 65_536
"""Of what a command of the user prints, so much of its end is kept while it runs."""

STAYING = 16
"""Items at the end whose bodies are never let go of."""


class SessionStore:
    """One session as a screen shows it. `clock` gives seconds and only its differences count.

    `items` are those of the path to the leaf; `in_sight` is told by the screen: the items whose bodies
    it would ask for again at once. `templates` say how entries of extensions are shown that come from now
    on, by their types.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        clock: Callable[[], float] = time.monotonic,
        templates: Mapping[str, str] = EMPTY,
    ) -> None:
        self.clock = clock
        self.templates = templates
        self.items = PathItems()
        self.structure = 0
        self._notices = 0
        self._waiting: list[Envelope] = []
        self.shell: Shell | None = None
        self.surroundings: Surroundings | None = None
        self.commands: Sequence[CommandInfo] | None = None
        self.lost: ConnectionChanged | None = None
        self.reset(snapshot)

    # ---------------------------------------------------------------- taking in

    def reset(self, snapshot: Snapshot) -> None:
        """Start again from a snapshot; events that came after it and wait here are applied."""
        self.session: SessionInfo = snapshot.session
        self.model: Model = snapshot.model
        self.thinking_level = snapshot.thinking_level
        self.mode = snapshot.mode
        self.notice = snapshot.notice
        self.running = snapshot.running
        self.turn_begun = snapshot.running
        """Whether something has come into the conversation since a turn was to begin."""
        self.run_started = self.clock()
        self.queue: QueueUpdate = snapshot.queue
        self.retry: Retry | None = None
        self.compacting_since: float | None = None
        self.interrupted = snapshot.interrupted
        self.questions = {question.id: question for question in snapshot.questions}
        self.shell = (self.shell or Shell("…", self.clock())) if snapshot.shell_running else None
        self.returned = list(snapshot.returned)
        self.live = LiveAnswer()
        self.calls = Calls(self.clock)
        self.leaf_id = snapshot.leaf_id
        self.bodies: dict[str, Mapping[str, Any]] = {}
        self.shelf = Shelf()
        self.in_sight = range(0)
        self._unseen_answers = {head.id for head in snapshot.heads if is_answer(head)}
        self._counted: set[str] = set()
        self._cost = 0.0
        self.spent, self.max_cost = snapshot.spent, snapshot.max_cost
        self.labels = dict(snapshot.labels)
        self.outline = Outline(snapshot.heads)
        self._items: dict[str, Item] = {}
        self._seq = snapshot.seq
        self.items = PathItems()
        self._rebuild()
        for finding in snapshot.findings:
            self.say(finding)
        if snapshot.streaming is not None:
            self._adopt_stream(snapshot.streaming)
        for start in snapshot.running_calls:
            self.calls.start(start)
        waiting, self._waiting = self._waiting, []
        self.stale = False
        self.apply(waiting)

    def apply(self, envelopes: Iterable[Envelope]) -> None:
        """Take in events in order. After a gap they wait for `reset`."""
        for envelope in envelopes:
            event = envelope.event
            if isinstance(event, ConnectionChanged):
                self.lost = None if event.connected else event
            elif self.stale:
                self._waiting.append(envelope)
            elif envelope.seq > self._seq or isinstance(event, Gap):  # behind it numbers may begin anew
                self._seq = envelope.seq
                self._reduce(event)

    def fill(self, entries: Iterable[Mapping[str, Any]]) -> None:
        """Take in the bodies of entries that were missing."""
        for entry in entries:
            self._learn(entry)
        self._make_room()

    def start_shell(self, command: str) -> Shell:
        """The user runs a command: show it until its entry is there."""
        self._drop_shell()
        self.shell = Shell(command, self.clock())
        self.items.append(Item("shell", "shell"))
        return self.shell

    def drop_shell(self, shell: Shell) -> None:
        """A command could not be run: it is not shown any more."""
        if self.shell is shell:
            self._drop_shell()

    def adopt(self, snapshot: Snapshot) -> None:
        """Take over what a command may have changed and no event tells."""
        self.model, self.thinking_level = snapshot.model, snapshot.thinking_level
        self.mode, self.session, self.notice = snapshot.mode, snapshot.session, snapshot.notice
        self.spent, self.max_cost = snapshot.spent, snapshot.max_cost
        self._renew_welcome()

    def look_around(self, surroundings: Surroundings | None) -> None:
        """Take in what there is around the session."""
        self.surroundings = surroundings
        self._renew_welcome()

    def learn_commands(self, commands: Sequence[CommandInfo]) -> None:
        """Take in what may follow a slash."""
        self.commands = commands
        self._renew_welcome()

    def _renew_welcome(self) -> None:
        for item in self.items:
            item.version += item.kind == "welcome"  # it tells all of these

    def say(self, text: str) -> None:
        """Add a line of the program's own to the transcript."""
        self._notices += 1
        self.items.append(Item(f"notice-{self._notices}", "notice", text=text))

    # ---------------------------------------------------------------- looking

    @property
    def has_file(self) -> bool:
        """Whether the session can be opened again: its file appears with the first input."""
        return self.session.path is not None and bool(self.outline)

    @property
    def turn_number(self) -> int:
        """The number of the last prompt on this path, from 1; 0 before the first."""
        return self.outline.turn_number(self.leaf_id)

    @property
    def summarising(self) -> bool:
        """Whether room is being made in the context."""
        return self.compacting_since is not None

    @property
    def owed(self) -> bool:
        """Whether an answer is owed, or was cut off, so that the turn can be continued."""
        if self.running or self.summarising:
            return False
        return self.interrupted or self.items.want_answer

    @property
    def running_calls(self) -> list[Call]:
        """The calls that run now."""
        return self.calls.running

    @property
    def cost(self) -> tuple[float, bool]:
        """US dollars spent in this session, and whether every answer was counted."""
        return self._cost, not self._unseen_answers

    def turn_stats(self, turn: Item) -> Stats:
        """Sums over the turn that ends at the item `turn`."""
        return turn_stats(self.items, turn, self._timestamp, self.outline.place)

    # ---------------------------------------------------------------- events

    def _reduce(self, event: AgentEvent) -> None:
        match event:
            case AgentStart():
                self.running, self.run_started = True, self.clock()
                self.interrupted = self.turn_begun = False
            case AgentEnd():
                self._drop_live()
                self.retry = None
            case AgentSettled():
                self.running = False
            case TurnStart() | TurnEnd():
                self._drop_live()
            case MessageStart(message):
                if isinstance(message, AssistantMessage):
                    self._adopt_stream(message)
            case MessageUpdate(piece, _):
                self._grow(piece)
            case MessageEnd(message):
                if isinstance(message, AssistantMessage):
                    self.spent += message.usage.cost.total
                    if message.stop_reason == "error":
                        self._drop_live()  # what is tried again has no entry that would replace it
            case ToolExecutionStart():
                self.calls.start(event)
            case ToolExecutionUpdate():
                self.calls.progress(event)
            case ToolExecutionEnd():
                self.calls.end(event)
            case EntryAppended(entry):
                self._add_entry(entry)
            case QueueUpdate():
                self.queue = event
            case CompactionStart():
                self.compacting_since = self.clock()
            case CompactionEnd(reason, result, error_message=error):
                self.compacting_since = None
                if result is not None and result.usage is not None:
                    self.spent += result.usage.cost.total
                if error and reason != "manual":  # whoever asked for it has the error for an answer
                    self.say(f"✗ not compacted: {error}")
            case InboxInserted() | InboxDiscarded() | InboxClaimed():
                pass  # the queue as a whole is told in `queue_update`
            case InputReturned(messages):
                self.returned += [
                    text_of(message.content) for message in messages if isinstance(message, UserMessage)
                ]
            case SessionInfoChanged(name):
                self.session = evolve(self.session, name=name)
            case ThinkingLevelChanged(level):
                self.thinking_level = level
            case AutoRetryStart(attempt, most, delay, reason):
                self.retry = Retry(attempt, most, self.clock() + delay / 1000, reason)
            case AutoRetryEnd():
                self.retry = None
            case ExtensionError(_, _, error):
                self.say(error)
            case ApprovalRequested(question):
                self.questions[question.id] = question
            case ApprovalResolved(id_):
                self.questions.pop(id_, None)
            case BashExecutionUpdate(delta):
                self._grow_shell(delta)
            case Gap():
                self.stale = True
            case ConnectionChanged():
                pass  # it concerns no session: see `apply`
            case _:
                assert_never(event)

    def _adopt_stream(self, message: AssistantMessage) -> None:
        """An answer begins, or is met in the middle."""
        self._drop_live()
        self.retry = None
        self.live.begin(message)
        self.items.append(Item("live", "live"))

    def _grow(self, piece: StreamEvent) -> None:
        if self.live.grow(piece) and self.items and self.items[-1].kind == "live":
            self.items[-1].version += 1

    def _grow_shell(self, delta: str) -> None:
        shell = self.shell or self.start_shell("…")
        shell.output = (shell.output + delta)[-SHELL_CHARACTERS:]

    def _drop_shell(self) -> None:
        self.shell = None
        self.items = PathItems(item for item in self.items if item.kind != "shell")

    def _drop_live(self) -> None:
        self.live.clear()
        for at in range(len(self.items) - 1, max(len(self.items) - 4, -1), -1):
            if self.items[at].kind == "live":
                del self.items[at]
                return

    # ---------------------------------------------------------------- entries

    def _add_entry(self, entry: Mapping[str, Any]) -> None:
        head = head_of(entry)
        if head.id in self.outline:
            return
        self.outline.add(head)
        if head.type == "label":
            self._relabel(str(head.detail), entry.get("label"))
        before, self.leaf_id = self.leaf_id, entry.get("targetId") if head.type == "leaf" else head.id
        if head.type == "leaf" or head.parent_id != before:
            self._rebuild()
            self._learn(entry)  # which gives the body to its item, so that has to be there
            self._make_room()
            return
        self.interrupted = False
        self.turn_begun = head.type == "message" or (self.turn_begun and head.detail != TURN_END)
        if head.detail == "assistant":
            self._drop_live()
        elif head.detail == "bashExecution":
            self._drop_shell()
        self._place(head)
        self._learn(entry)
        self._make_room()

    def _learn(self, entry: Mapping[str, Any]) -> None:
        """Take in a body, and give it to the item that shows it."""
        id_ = str(entry.get("id"))
        if id_ in self.bodies:
            return
        message = message_of(entry, self.templates)
        kept = self.bodies[id_] = without_long_output(entry)
        item = self._items.get(id_)
        if item is not None:
            self.shelf.put(item.key, min(size_of(entry), size_of(kept) + OUTPUT_CHARACTERS))
        if isinstance(message, ToolResultMessage):
            self.calls.settle(message, item, id_)
            return
        if isinstance(message, AssistantMessage):
            self._unseen_answers.discard(id_)
            if id_ not in self._counted:  # it may be loaded more than once
                self._counted.add(id_)
                self._cost += message.usage.cost.total
        if item is not None:
            if isinstance(message, AssistantMessage):
                self.calls.wanted(message, item)
            item.message, item.text = message, str(entry.get("summary", ""))
            item.version += 1

    def _make_room(self) -> None:
        """Let go of large bodies that were loaded long ago, out of sight and not at the end."""
        if not self.shelf.full:
            return
        near = self.items[self.in_sight.start : self.in_sight.stop] + self.items[-STAYING:]
        for key in self.shelf.overflow(frozenset(item.key for item in near)):
            item = self._items[key]
            for id_ in item.ids:
                self.bodies.pop(id_, None)
            self.calls.drop(item)
            item.message = None
            item.version += 1

    def _rebuild(self) -> None:
        """Make the items of the path to the leaf; items met before are kept with their bodies, and what
        the program said stays behind those that are there again.
        """
        said = self.items.notices()
        self.items = PathItems()
        self.structure += 1
        self._turn_start = ""
        for head in self.outline.path(self.leaf_id):
            self._place(head)
        if not self.items:
            self.items.append(Item("welcome", "welcome"))
        self.items = self.items.with_notices(said)
        if self.shell is not None:
            self.items.append(Item("shell", "shell"))

    def _relabel(self, target_id: str, label: Any) -> None:
        self.labels.pop(target_id, None)
        if isinstance(label, str) and label:
            self.labels[target_id] = label

    def _place(self, head: EntryHead) -> None:
        """Give an entry its item: a new one, that of the answer it belongs to, or none."""
        if head.detail == "toolResult":
            owner = next((item for item in reversed(self.items) if item.kind == "message"), None)
            if owner is not None and head.id not in owner.ids:
                owner.ids.append(head.id)
                self._items[head.id] = owner
            return
        if head.detail == "turn/start":
            self._turn_start = head.id
        kind = item_kind(head, self.templates)
        if kind is None:
            return
        item = self._items.get(head.id)
        if item is None:
            item = self._items[head.id] = Item(head.id, kind, [head.id])
            if kind == "turn" and self._turn_start:
                item.ids.append(self._turn_start)
                self._items[self._turn_start] = item
                self._turn_start = ""
        self.items.append(item)

    def _timestamp(self, entry_id: str) -> str:
        return str(self.bodies.get(entry_id, {}).get("timestamp", ""))
