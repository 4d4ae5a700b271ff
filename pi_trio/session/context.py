"""From a branch to what a request needs. Pure: a function of the entries on the branch.

The latest compaction stands for what is before its first kept entry; the latest `context_edit`
of an entry replaces its content or leaves it out; labels, facts and other records add nothing.
System messages are folded into one state, since later ones only patch earlier ones. Custom
entries say nothing, unless a projector makes messages of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import TypeAlias

from attrs import define, frozen

from pi_trio import codec
from pi_trio.collector import paused_collector
from pi_trio.messages import (
    AgentMessage,
    AssistantMessage,
    CompactionSummaryMessage,
    SystemMessage,
    ToolSchema,
    text_of,
)
from pi_trio.session import facts
from pi_trio.session.entries import (
    ActiveToolsChangeEntry,
    CompactionEntry,
    CustomEntry,
    Entry,
    MessageEntry,
    ModelChangeEntry,
    ThinkingLevelChangeEntry,
    milliseconds,
)
from pi_trio.session.repair import Conversation
from pi_trio.session.speech import Read, Speech
from pi_trio.session.tree import EntryHead, Tree

__all__ = [
    "BranchSettings",
    "ContextBuilder",
    "EntryTransform",
    "Selection",
    "SessionContext",
    "context_before",
    "fold_system",
    "select",
]

EntryTransform: TypeAlias = Callable[[Sequence[Entry]], Sequence[Entry]]
"""Chooses or changes the entries that a context is made of; a compaction comes first."""


@frozen
class SessionContext:
    """What the branch says. `messages` are fit to be sent and hold no system messages.

    `model` is (provider, model id). `active_tool_names` is None where nothing chose tools.
    `system_message` is the state that all system messages of the branch add up to. `repairs`
    are sentences about what was changed to make the messages fit; the file was not.
    """

    messages: tuple[AgentMessage, ...] = ()
    model: tuple[str, str] | None = None
    thinking_level: str = "off"
    active_tool_names: tuple[str, ...] | None = None
    system_message: SystemMessage | None = None
    repairs: tuple[str, ...] = ()


# ------------------------------------------------------------------ the system message


def fold_system(messages: Iterable[SystemMessage]) -> SystemMessage | None:
    """The one message that says what these, in order, add up to; None for none."""
    contents: list[str] = []
    sections: dict[str, str] = {}
    tools: dict[str, ToolSchema] = {}
    last: SystemMessage | None = None
    for last in messages:
        if text := text_of(last.content):
            contents.append(text)
        _patch_sections(sections, last.sections or {})
        for removed in last.tools_removed or ():
            tools.pop(removed.get("name", ""), None)
        tools.update((tool.name, tool) for tool in last.tools_added or ())
    if last is None:
        return None
    return SystemMessage(
        "\n\n".join(contents), sections or None, tuple(tools.values()) or None, timestamp=last.timestamp
    )


def _patch_sections(sections: dict[str, str], patch: Mapping[str, str | None]) -> None:
    for name, text in patch.items():
        if text is None:
            sections.pop(name, None)
        else:
            sections[name] = text


# ------------------------------------------------------------------ what of a branch counts


@frozen
class Selection:
    """What of a branch counts: the latest compaction, if any, and then `heads`.

    `first` is the place of the first kept entry, `own` that of the compaction, -1 for none.
    """

    compaction: CompactionEntry | None
    first: int
    own: int
    heads: Sequence[EntryHead]


def select(branch: Sequence[EntryHead], read: Read) -> Selection:
    """What counts. What a summary stands for does not, nor do older summaries in what it kept."""
    own = next((place for place in range(len(branch) - 1, -1, -1) if branch[place].type == "compaction"), -1)
    if own < 0:
        return Selection(None, 0, -1, branch)
    entry = read(branch[own].id)
    if not isinstance(entry, CompactionEntry):  # a damaged one: better all than nothing
        return Selection(None, 0, -1, branch)
    first_kept = None if _RETAINED_TAIL in entry.extra else entry.first_kept_entry_id
    first = next((place for place in range(own) if branch[place].id == first_kept), own)
    kept = [head for head in branch[first:own] if head.type != "compaction" and not _is_system(head)]
    return Selection(entry, first, own, [*kept, *branch[own + 1 :]])


_RETAINED_TAIL = "retainedTail"
"""Where some writers have the kept messages: in the compaction itself."""


def _retained(entry: CompactionEntry) -> Iterator[AgentMessage]:
    tail = entry.extra.get(_RETAINED_TAIL)
    for each in tail if isinstance(tail, list) else ():
        message = each.get("message", each) if isinstance(each, dict) else None
        if isinstance(message, dict) and "role" in message:
            yield codec.message_from_json(message)


def context_before(branch: Sequence[EntryHead], end: str, speech: Speech) -> SessionContext:
    """The part of the branch's context that comes before entry `end`; edits made later count."""
    return _fold_branch(branch, speech, end).context()


class ContextBuilder:
    """Builds contexts of one tree. From an earlier leaf to a later one only what is new is read,
    and never an entry that no context needs.
    """

    def __init__(self, tree: Tree, speech: Speech) -> None:
        self._tree = tree
        self._speech = speech
        self._fold: _Fold | None = None
        self._leaf: str | None = None

    def build(self, leaf: str | None, transforms: Iterable[EntryTransform] = ()) -> SessionContext:
        """The context of a request that would hang on `leaf`."""
        chosen = tuple(transforms)
        if chosen:
            return self._transformed(leaf, chosen)
        fold = self._extended(leaf)
        if fold is None:
            fold = _fold_branch(self._tree.branch(leaf), self._speech)
        self._fold, self._leaf = fold, leaf
        return fold.context()

    def _transformed(self, leaf: str | None, transforms: Iterable[EntryTransform]) -> SessionContext:
        branch = self._tree.branch(leaf)
        fold = _Fold(branch, select(branch, self._speech.read), self._speech)
        entries: Sequence[Entry] = fold.entries()
        for transform in transforms:
            entries = transform(entries)
        for entry in entries:
            fold.take(entry)
        return fold.context()

    def _extended(self, leaf: str | None) -> _Fold | None:
        """The fold at the last leaf with what came since; None where that would not be the same."""
        fold, self._fold = self._fold, None  # not to be used again should reading fail half way
        if fold is None or self._leaf is None:
            return None
        new: list[EntryHead] = []
        for head in self._tree.up(leaf):
            if head.id == self._leaf:
                for each in reversed(new):
                    fold.add(each)
                return fold
            if head.type in ("compaction", "context_edit"):
                return None
            new.append(head)
        return None


def _fold_branch(branch: Sequence[EntryHead], speech: Speech, end: str | None = None) -> _Fold:
    chosen = select(branch, speech.read)
    fold = _Fold(branch, chosen, speech)
    with paused_collector():
        if chosen.compaction is not None:
            fold.take(chosen.compaction)
        for head in takewhile(lambda head: head.id != end, chosen.heads):
            fold.add(head)
    return fold


def _system_messages(heads: Iterable[EntryHead], read: Read) -> Iterator[SystemMessage]:
    for head in heads:
        if _is_system(head):
            entry = read(head.id)
            if isinstance(entry, MessageEntry) and isinstance(entry.message, SystemMessage):
                yield entry.message


def _is_system(head: EntryHead) -> bool:
    return head.type == "message" and head.detail == "system"


# ------------------------------------------------------------------ the fold


_SETTINGS = frozenset({"model_change", "thinking_level_change", "active_tools_change"})
"""The types whose bodies a context needs although they say nothing to the model."""


@define
class BranchSettings:
    """What the branch says of the next request; None where it says nothing."""

    model: tuple[str, str] | None = None
    thinking: str | None = None
    tools: tuple[str, ...] | None = None

    def note(self, entry: Entry) -> None:
        """A later entry: what it says replaces what was said."""
        match entry:
            case ModelChangeEntry(provider=provider, model_id=model):
                self.model = (provider, model)
            case MessageEntry(message=AssistantMessage(provider=provider, model=model)):
                if provider != "unknown":
                    self.model = (provider, model)
            case ThinkingLevelChangeEntry(thinking_level=level):
                self.thinking = level
            case ActiveToolsChangeEntry(active_tool_names=names):
                self.tools = names
            case _:
                pass  # it says something to the model, not about it

    def look_back(self, older: Sequence[EntryHead], read: Read) -> None:
        """Fill what is still open from older entries, newest first."""
        for head in reversed(older):
            if self._lacks(head):
                earlier = BranchSettings()
                earlier.note(read(head.id))
                self.model = self.model or earlier.model
                self.thinking = self.thinking or earlier.thinking
                self.tools = earlier.tools if self.tools is None else self.tools

    def _lacks(self, head: EntryHead) -> bool:
        kind = head.type
        if kind == "model_change" or (kind == "message" and head.detail == "assistant"):
            return self.model is None
        if kind == "thinking_level_change":
            return self.thinking is None
        return kind == "active_tools_change" and self.tools is None


_STEP_FACTS = frozenset({facts.STEP_START, facts.STEP_END, facts.TURN_END})


class _Fold:
    """What the entries that count on a branch add up to so far."""

    def __init__(self, branch: Sequence[EntryHead], selection: Selection, speech: Speech) -> None:
        self._selection = selection
        self._summarised = branch[: max(selection.own, 0)]
        self._older = branch[: selection.first]  # looked at only for what nothing later has changed
        self._edits = {head.detail: head.id for head in selection.heads if head.type == "context_edit"}
        self._speech = speech
        self._conversation = Conversation(self._started)
        self._system: SystemMessage | None = None
        self._settings = BranchSettings()
        last = next(
            (head for head in reversed(self._older) if head.type == "custom" and head.detail in _STEP_FACTS),
            None,
        )
        if last is not None:  # what is kept may begin in the middle of a step
            self._fact(last.detail, last.id)

    def entries(self) -> list[Entry]:
        """All that counts, as the edits have it, the compaction first."""
        heads = (self._edited(head.id) for head in self._selection.heads if head.type != "context_edit")
        entries = [entry for entry in heads if entry is not None]
        compaction = self._selection.compaction
        return entries if compaction is None else [compaction, *entries]

    def add(self, head: EntryHead) -> None:
        """The next entry of the branch. It is read only if a context needs its body."""
        if self._speech.speaks(head) or head.type in _SETTINGS:
            entry = self._edited(head.id)
            if entry is not None:
                self.take(entry)
        elif head.type == "custom":
            self._fact(head.detail, head.id)

    def take(self, entry: Entry) -> None:
        """The next entry that counts."""
        self._settings.note(entry)
        if isinstance(entry, CompactionEntry):
            self._compaction(entry)
        elif isinstance(entry, CustomEntry) and not self._speech.projects(entry.custom_type):
            self._fact(entry.custom_type, entry.id)
        else:
            for message in self._speech.messages(entry):
                self._say(message)

    def _edited(self, entry_id: str) -> Entry | None:
        return self._speech.entry(entry_id, self._edits.get(entry_id))

    def _say(self, message: AgentMessage) -> None:
        if isinstance(message, SystemMessage):
            self._system = fold_system([message] if self._system is None else [self._system, message])
        else:
            self._conversation.add(message)

    def _compaction(self, entry: CompactionEntry) -> None:
        """The summary that comes first. Old ones do not carry the system state at their place."""
        self._system = entry.system_message or fold_system(
            _system_messages(self._summarised, self._speech.read)
        )
        at = milliseconds(entry.timestamp)
        self._say(CompactionSummaryMessage(entry.summary, entry.tokens_before, at))
        for message in _retained(entry):
            self._conversation.add(message)

    def context(self) -> SessionContext:
        """The context as of now."""
        settings = self._settings
        settings.look_back(self._older, self._speech.read)
        self._older = ()  # what is not there now never will be
        return SessionContext(
            self._conversation.messages(),
            settings.model,
            settings.thinking or "off",
            settings.tools,
            self._system,
            self._conversation.repairs(),
        )

    def _fact(self, name: str | None, entry_id: str) -> None:
        match name:
            case facts.STEP_START:
                self._conversation.step_begins()
            case facts.STEP_END | facts.TURN_END:
                self._conversation.step_ends()
            case facts.TOOL_CALL:
                self._conversation.call_begins(entry_id)
            case _:
                pass  # the data of somebody else

    def _started(self, fact_ids: Sequence[str]) -> set[str]:
        entries = (self._speech.read(each) for each in fact_ids)
        return {
            call for entry in entries if isinstance(entry, CustomEntry) and (call := facts.call_of(entry))
        }
