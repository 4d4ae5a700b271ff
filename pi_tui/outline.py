"""The shape of a session tree: which entries follow each other, and where paths part. Pure, without Textual.

Entries stand in segments: stretches in which each entry has one follower. Only where paths part
does a segment end, so there are as many segments as a person would draw lines, and a question
about a row costs what is in sight of it, not what is in the file. An entry is known by its place
in file order; `leaf` entries are pointers and stand for the entry that they point at.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum

from attrs import define, field

from pi_trio.session.facts import INBOX_FACTS, TURN_END, TURN_START
from pi_trio.session.tree import EntryHead

__all__ = ["SUBSTANCE", "TURNS", "Code", "Outline", "Segment", "letter"]


class Code(IntEnum):
    """What an entry is, as far as a list of entries tells them apart."""

    PROMPT = 0
    ANSWER = 1
    RESULT = 2
    SAID = 3
    SUMMARY = 4
    COMPACTION = 5
    SYSTEM = 6
    TURN_END = 7
    RECORD = 8
    USAGE = 9
    WITHDRAWN = 10


SUBSTANCE = (Code.PROMPT, Code.ANSWER, Code.RESULT, Code.SAID, Code.SUMMARY, Code.COMPACTION)
"""What makes a path a branch that somebody may want to go back to: records alone do not."""

TURNS = (Code.PROMPT, Code.SUMMARY, Code.COMPACTION)
"""What a turn, or what stands for turns, begins with."""

_PROMPT, _WITHDRAWN = bytes([Code.PROMPT]), bytes([Code.WITHDRAWN])
_PROMPT_ALONE = bytes([Code.PROMPT, Code.SYSTEM, Code.TURN_END, Code.RECORD, Code.USAGE])
"""What is written of a prompt although nothing came of it."""

_WITHDRAWN_ALONE = _PROMPT_ALONE.replace(_PROMPT, _WITHDRAWN)
"""The same of one that is withdrawn."""

_OF_ROLE: Mapping[str | None, int] = {
    "user": Code.PROMPT.value,
    "assistant": Code.ANSWER.value,
    "toolResult": Code.RESULT.value,
    "system": Code.SYSTEM.value,
}
_OF_TYPE: Mapping[str, int] = {
    "custom_message": Code.SAID.value,
    "branch_summary": Code.SUMMARY.value,
    "compaction": Code.COMPACTION.value,
    "usage": Code.USAGE.value,
}
_ASIDE = INBOX_FACTS | {TURN_START, TURN_END}
"""Records that no context and no choice of a branch depends on."""

_SAID, _TURN_END, _RECORD = Code.SAID.value, Code.TURN_END.value, Code.RECORD.value


@define(eq=False)
class Segment:
    """Entries without a fork between them: their places, ascending, and what each is.

    `tip` is the number of the first tip below it and `tips` how many there are; a segment
    without any has nothing of substance and leads nowhere.
    """

    parent: Segment | None
    places: array[int] = field(factory=lambda: array("i"))
    codes: bytearray = field(factory=bytearray)
    children: list[Segment] = field(factory=list)
    base: int = 0
    tip: int = 0
    tips: int = 0

    @property
    def is_tip(self) -> bool:
        """Whether a branch ends here."""
        return bool(self.tips) and not any(child.tips for child in self.children)

    def index(self, place: int) -> int:
        """Where in the segment an entry of it stands."""
        return bisect_left(self.places, place)

    def number(self, index: int) -> int:
        """How many prompts there are from the root up to an entry."""
        return self.base + self.codes.count(Code.PROMPT, 0, index + 1)


class Outline:
    """Grows by `add` and `extend`, in file order. `version` tells that it has.

    A prompt from which the leaf went back before anything came of it is withdrawn: no branch. It is
    one again when the conversation returns to it. `withdrawals` tells that an entry has become another
    thing by this.
    """

    def __init__(self, heads: Iterable[EntryHead] = ()) -> None:
        self.heads: list[EntryHead] = []
        self.roots: list[Segment] = []
        self.version = 0
        self.withdrawals = 0
        self._branches = 0
        self._places: dict[str, int] = {}
        self._segments: list[Segment] = []
        self._numbered = -1
        self.extend(heads)

    def __len__(self) -> int:
        return len(self.heads)

    def __contains__(self, entry_id: object) -> bool:
        return entry_id in self._places

    # ---------------------------------------------------------------- growing

    def add(self, head: EntryHead) -> None:
        """Take in the next entry. One with an id already seen is ignored."""
        self.extend((head,))

    def extend(self, heads: Iterable[EntryHead]) -> None:
        """Take in more entries."""
        places, kept, segments = self._places, self.heads, self._segments
        segment = segments[-1] if segments else None
        for head in heads:
            id_, parent = head.id, head.parent_id
            if id_ in places:
                continue
            above = places.get(parent) if parent is not None else None
            if head.type == "leaf":
                if above is not None:
                    places[id_] = above
                if above is not None or parent is None:
                    self._leave(above)
                continue
            place = len(kept)
            if segment is None or above != place - 1 or segment.children:  # else it follows the one before
                segment = self._segment_after(above)
            places[id_] = place
            kept.append(head)
            segments.append(segment)
            segment.places.append(place)
            segment.codes.append(_code(head))
        self.version += 1

    def _leave(self, target: int | None) -> None:
        """The leaf moves. Prompts that stand between the target and the end of the file are withdrawn if
        they are all there is.
        """
        self._return(target)
        segment = self._segments[-1] if self._segments else None
        if segment is None or segment.children:
            return
        if target is not None and self._segments[target] is segment:
            start = segment.index(target) + 1
        elif target == (segment.parent.places[-1] if segment.parent is not None else None):
            start = 0
        else:
            return
        left = segment.codes[start:]
        if Code.PROMPT in left and not left.strip(_PROMPT_ALONE):
            segment.codes[start:] = left.replace(_PROMPT, _WITHDRAWN)
            self.withdrawals += 1

    def _return(self, target: int | None) -> None:
        """A prompt that nothing but the target follows is not withdrawn any more."""
        if target is None:
            return
        segment = self._segments[target]
        end = segment.index(target) + 1
        start = len(segment.codes[:end].rstrip(_WITHDRAWN_ALONE))
        if Code.WITHDRAWN in segment.codes[start:end]:
            segment.codes[start:end] = segment.codes[start:end].replace(_WITHDRAWN, _PROMPT)
            self.withdrawals += 1

    def _segment_after(self, above: int | None) -> Segment:
        """The segment that a follower of an entry goes into."""
        if above is None:
            return self._open(None, self.roots)
        segment = self._segments[above]
        if segment.places[-1] != above:
            self._part(segment, segment.index(above) + 1)
        elif not segment.children:
            return segment
        return self._open(segment, segment.children)

    def _open(self, parent: Segment | None, among: list[Segment]) -> Segment:
        segment = Segment(parent)
        among.append(segment)
        return segment

    def _part(self, segment: Segment, at: int) -> None:
        """End a segment before `at`; what followed becomes its first child."""
        rest = Segment(segment, segment.places[at:], segment.codes[at:], segment.children)
        for child in rest.children:
            child.parent = rest
        del segment.places[at:], segment.codes[at:]
        segment.children = [rest]
        first, last = rest.places[0], rest.places[-1]
        if last - first == len(rest.places) - 1:
            self._segments[first : last + 1] = [rest] * len(rest.places)
        else:
            for place in rest.places:
                self._segments[place] = rest

    # ---------------------------------------------------------------- looking

    def place(self, entry_id: str | None) -> int | None:
        """The place of an entry, or of what a pointer stands for; None for one that is not there."""
        return self._places.get(entry_id) if entry_id is not None else None

    def path(self, leaf_id: str | None) -> list[EntryHead]:
        """Root to leaf. A loop in a damaged file ends the walk."""
        path: list[EntryHead] = []
        seen: set[int] = set()
        at = self.place(leaf_id)
        while at is not None and at not in seen:
            seen.add(at)
            path.append(self.heads[at])
            at = self.place(path[-1].parent_id)
        return path[::-1]

    def is_at(self, entry_id: str, leaf_id: str | None) -> bool:
        """Whether one is at an entry already: behind it are only records of what waits and of empty turns."""
        at, target = self.place(leaf_id), self.place(entry_id)
        while at is not None and at != target and self.heads[at].detail in _ASIDE:
            at = self.place(self.heads[at].parent_id)
        return at is not None and at == target and (leaf_id == entry_id or self.heads[at].detail != "user")

    def segment(self, place: int) -> Segment:
        """The segment that an entry stands in."""
        return self._segments[place]

    def number(self) -> None:
        """Bring the numbers of turns and tips up to date. Costs what there are segments."""
        if self._numbered == self.version:
            return
        self._numbered = self.version
        order = list(self.walk())
        for segment in reversed(order):
            below = sum(child.tips for child in segment.children)
            segment.tips = below or any(code in segment.codes for code in SUBSTANCE)
        self._branches = 0
        for segment in order:
            parent = segment.parent
            segment.base = parent.base + parent.codes.count(Code.PROMPT) if parent is not None else 0
            segment.tip = self._branches
            self._branches += segment.is_tip

    @property
    def branches(self) -> int:
        """How many tips there are."""
        self.number()
        return self._branches

    def walk(self) -> Iterator[Segment]:
        """All segments, each before those that follow it, in file order."""
        stack = self.roots[::-1]
        while stack:
            segment = stack.pop()
            yield segment
            stack.extend(reversed(segment.children))

    def turn_number(self, leaf_id: str | None) -> int:
        """The number of the last prompt on the way to the leaf, from 1; 0 before the first."""
        place = self.place(leaf_id)
        if place is None:
            return 0
        self.number()
        segment = self._segments[place]
        return segment.number(segment.index(place))

    def letter(self, entry_id: str) -> str:
        """The letter of the first branch that an entry is on."""
        place = self.place(entry_id)
        self.number()
        return letter(self._segments[place].tip) if place is not None and self._branches > 1 else ""

    def branch(self, leaf_id: str | None) -> str:
        """The letter of the tip that the leaf is at, `""` inside the tree."""
        place = self.place(leaf_id)
        if place is None:
            return ""
        self.number()
        segment = self._segments[place]
        later = segment.codes[segment.index(place) + 1 :]
        return letter(segment.tip) if segment.is_tip and not any(code in later for code in TURNS) else ""


def letter(number: int) -> str:
    """The name of a branch by its number from 0: A, B, … Z, AA, AB."""
    letters, rest = "", number + 1
    while rest:
        rest, digit = divmod(rest - 1, 26)
        letters = chr(ord("A") + digit) + letters
    return letters


def _code(head: EntryHead) -> int:
    """Plain numbers, since there are as many as entries."""
    if head.type == "message":
        return _OF_ROLE.get(head.detail, _SAID)
    if head.type == "custom" and head.detail == TURN_END:
        return _TURN_END
    return _OF_TYPE.get(head.type, _RECORD)
