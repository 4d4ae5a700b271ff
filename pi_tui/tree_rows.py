"""The rows of a session tree: what of its outline is shown, folded and indented. Pure.

Only what was left behind is a level further in: of paths that part, the last one goes on below the
others, so a conversation of any length stays at the left. Branches are lettered by their tips, `A`
first in file order. A row is made when it is looked at.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

from attrs import define, frozen

from pi_tui.outline import SUBSTANCE, Code, Outline, Segment, letter
from pi_tui.tree_shown import Show, Shown

__all__ = ["Row", "RowKind", "Rows"]

RowKind: TypeAlias = Literal["prompt", "summary", "compaction", "entry"]

DEEPEST = 16
"""Cells of branch lines that are kept; deeper ones lose their outermost."""

MOST_COMPARED = 8
"""Rows before and after one that count as its siblings."""

MOST_MADE = 1000
"""Rows that are kept made: more than are ever in view."""

_KINDS: Mapping[int, RowKind] = {
    Code.PROMPT: "prompt",
    Code.SUMMARY: "summary",
    Code.COMPACTION: "compaction",
}
_GOES_ON = frozenset({Code.TURN_END, *SUBSTANCE})
"""What a turn can end with: where going to it leads."""


@frozen
class Row:
    """One row. `prefix` is drawn before it and `rest` before its further lines.

    `number` counts the prompts of the branch from 1; `members` are the entries that it stands
    for, of which `tools` are results of calls; `end` is where going to it leads. `hidden` rows
    are folded into it.
    """

    id: str
    kind: RowKind
    code: Code
    number: int
    prefix: str
    rest: str
    active: bool
    tools: int
    end: str
    members: Sequence[str]
    hidden: int = 0


@define(eq=False)
class _Stretch:
    """The rows of one segment. `head` is the stretch that its level begins with, perhaps itself."""

    segment: Segment
    places: Sequence[int]
    prefix: str
    rest: str
    offset: int
    head: _Stretch | None
    hidden: int = 0
    forks: bool = False


class Rows:
    """Grows with its outline: call `sync` after that, and after a change of what is to be seen."""

    def __init__(self, outline: Outline, show: Show = "turns") -> None:
        self.outline = outline
        self.folded: set[Segment] = set()
        self._stretches: list[_Stretch] = []
        self._offsets: list[int] = []
        self._of: dict[Segment, _Stretch] = {}
        self._shown = Shown(show)
        self._limits: dict[Segment, int] = {}
        self._made: dict[int, Row] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def show(self) -> Show:
        """What has a row."""
        return self._shown.show

    def choose(self, show: Show) -> None:
        """Show something else."""
        self._shown.choose(show)

    def sync(self, leaf_id: str | None, labels: Iterable[str] = ()) -> None:
        """Bring the rows up to date. `labels` are the entries that have one."""
        outline = self.outline
        outline.number()
        order = list(outline.walk())
        self._shown.sync(outline, order, labels)
        self._limits = self._path(leaf_id)
        self._lay_out(order)

    def __getitem__(self, at: int) -> Row:
        row = self._made.get(at)
        if row is None:
            if len(self._made) >= MOST_MADE:
                self._made.clear()
            row = self._made[at] = self._row(at)
        return row

    def index(self, entry_id: str | None) -> int | None:
        """The row that shows an entry, or the nearest above it; None if there is no such row."""
        place = self.outline.place(entry_id)
        if place is None:
            return None
        segment: Segment | None = self.outline.segment(place)
        while segment is not None:
            stretch = self._of.get(segment)
            if stretch is not None and stretch.places:
                at = bisect_right(stretch.places, place) - 1
                if at >= 0 or self._shown.stands_in(stretch.segment):
                    return stretch.offset + max(at, 0)
            segment = segment.parent
        return None

    def siblings(self, at: int) -> list[int]:
        """The rows that part from the same place as a row does; only those near it where there are many."""
        stretch = self._stretch(at)
        if at != stretch.offset:
            return []
        parent = stretch.segment.parent
        segments = parent.children if parent is not None else self.outline.roots
        place = segments.index(stretch.segment)
        near = segments[max(place - MOST_COMPARED, 0) : place + MOST_COMPARED + 1]
        others = (self._of.get(segment) for segment in near if segment is not stretch.segment)
        return [other.offset for other in others if other is not None]

    # ---------------------------------------------------------------- moving and folding

    def next_fork(self, at: int, by: int) -> int | None:
        """The next row, or with a negative `by` the one before, below which paths part."""
        forks = [each.offset + len(each.places) - 1 for each in self._stretches if each.forks]
        later = [fork for fork in forks if (fork > at if by > 0 else fork < at)]
        return (later[0] if by > 0 else later[-1]) if later else None

    def fold_or_up(self, at: int) -> int:
        """Fold the level that begins at a row; from elsewhere go to where a level begins."""
        head = self._level(at)
        if head is None:
            return at
        if at != head.offset:
            return head.offset
        if head.segment in self.folded:
            above = self._above(head)
            return above.offset if above is not None else at
        if self._count > 1:
            self.folded.add(head.segment)
        return at

    def unfold_or_down(self, at: int) -> int:
        """Unfold what is folded at a row; elsewhere go to the next level."""
        head = self._level(at)
        if head is not None and at == head.offset and head.segment in self.folded:
            self.folded.discard(head.segment)
            return at
        later = (each.offset for each in self._stretches if each.head is each and each.offset > at)
        return next(later, max(self._count - 1, 0))

    def reveal(self, entry_id: str) -> None:
        """Unfold whatever hides an entry."""
        place = self.outline.place(entry_id)
        segment = self.outline.segment(place) if place is not None else None
        while segment is not None:
            self.folded.discard(segment)
            segment = segment.parent

    def _level(self, at: int) -> _Stretch | None:
        return self._stretch(at).head if self._count else None

    def _above(self, head: _Stretch) -> _Stretch | None:
        segment = head.segment.parent
        while segment is not None:
            stretch = self._of.get(segment)
            if stretch is not None:
                return stretch.head
            segment = segment.parent
        return None

    # ---------------------------------------------------------------- laying out

    def _path(self, leaf_id: str | None) -> dict[Segment, int]:
        """How far each segment on the way to the leaf is on it."""
        place = self.outline.place(leaf_id)
        if place is None:
            return {}
        segment = self.outline.segment(place)
        limits = {segment: place}
        while segment.parent is not None:
            segment = segment.parent
            limits[segment] = segment.places[-1]
        return limits

    def _lay_out(self, order: Sequence[Segment]) -> None:
        counts: dict[Segment, int] = {}
        for segment in reversed(order):
            counts[segment] = len(self._shown.of(segment)) + sum(counts[child] for child in segment.children)
        self._stretches, self._made, self._count = [], {}, 0
        stack = self._fan_out(self.outline.roots, "", counts)
        while stack:
            stretch = stack.pop()
            stack += self._place_stretch(stretch, counts)
        self._offsets = [each.offset for each in self._stretches]
        self._of = {each.segment: each for each in self._stretches}

    def _place_stretch(self, stretch: _Stretch, counts: Mapping[Segment, int]) -> list[_Stretch]:
        """Put a stretch below the others. Gives those that follow it, the first one last."""
        segment = stretch.segment
        stretch.offset = self._count
        places = self._shown.of(segment)
        if segment in self.folded and places:
            stretch.places, stretch.hidden = places[:1], counts[segment] - 1
            following = []
        else:
            stretch.places = places
            following = self._fan_out(segment.children, stretch.rest, counts, stretch)
            stretch.forks = len(following) > 1
        if places:
            self._stretches.append(stretch)
            self._count += len(stretch.places)
        return following

    def _fan_out(
        self,
        segments: Sequence[Segment],
        rest: str,
        counts: Mapping[Segment, int],
        above: _Stretch | None = None,
    ) -> list[_Stretch]:
        """What follows on a row, the first one last. The last of several goes on at the same level."""
        shown = [segment for segment in segments if counts[segment]]
        if len(shown) == 1:
            if above is None:
                return [_begin(shown[0], rest, rest)]
            prefix = above.rest if above.places else above.prefix
            head = above.head if above.places else None
            return [_begin(shown[0], prefix, above.rest, head)]
        marks = [("├─", "│  ")] * (len(shown) - 1) + [("└─", "")]
        levels = [
            _begin(
                segment,
                _deeper(rest, mark) + (letter(segment.tip) if segment.tips else ""),
                _deeper(rest, blank),
            )
            for segment, (mark, blank) in zip(shown, marks, strict=bool(shown))
        ]
        return levels[::-1]

    def _stretch(self, at: int) -> _Stretch:
        return self._stretches[bisect_right(self._offsets, at) - 1]

    def _row(self, at: int) -> Row:
        if not 0 <= at < self._count:
            raise IndexError(at)
        stretch = self._stretch(at)
        segment, within = stretch.segment, at - stretch.offset
        place = stretch.places[within]
        index = segment.index(place)
        start, stop = self._extent(stretch, within, index)
        withdrawn = segment.codes.find(Code.WITHDRAWN, start, stop)
        if withdrawn > start:  # it is not of the turn before it, nor is its end
            stop = withdrawn
        members = [self.outline.heads[each].id for each in segment.places[start:stop]]
        code = Code(segment.codes[index])
        return Row(
            id=self.outline.heads[place].id,
            kind=_KINDS.get(code, "entry"),
            code=code,
            number=segment.number(index),
            prefix=stretch.rest if within else stretch.prefix,
            rest=stretch.rest,
            active=place <= self._limits.get(segment, -1),
            tools=segment.codes.count(Code.RESULT, start, stop) if self.show == "turns" else 0,
            end=members[_end(segment.codes[start:stop])],
            members=members,
            hidden=0 if within else stretch.hidden,
        )

    def _extent(self, stretch: _Stretch, within: int, index: int) -> tuple[int, int]:
        """From where to where in its segment a row reaches."""
        if self.show != "turns":
            return index, index + 1
        segment = stretch.segment
        if self._shown.stands_in(stretch.segment):
            return 0, len(segment.places)
        if stretch.hidden:
            places = self._shown.of(segment)
            return index, segment.index(places[1]) if len(places) > 1 else len(segment.places)
        if within + 1 < len(stretch.places):
            return index, segment.index(stretch.places[within + 1])
        return index, len(segment.places)


def _begin(segment: Segment, prefix: str, rest: str, head: _Stretch | None = None) -> _Stretch:
    """A stretch; without a `head` it begins a level."""
    stretch = _Stretch(segment, (), prefix, rest, 0, head)
    stretch.head = head or stretch
    return stretch


def _deeper(rest: str, mark: str) -> str:
    text = rest + mark
    return text if len(text) <= DEEPEST else "…" + text[1 - DEEPEST :]


def _end(codes: Sequence[int]) -> int:
    """The last entry of a turn that one can go on from."""
    return next((at for at in range(len(codes) - 1, -1, -1) if codes[at] in _GOES_ON), 0)
