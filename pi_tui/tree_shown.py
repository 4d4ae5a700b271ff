"""Which entries of a session tree have a row: by what they are, or because they have a label. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import compress
from typing import Literal, TypeAlias, get_args

from pi_tui.outline import SUBSTANCE, TURNS, Code, Outline, Segment

__all__ = ["SHOWS", "Show", "Shown"]

Show: TypeAlias = Literal["turns", "default", "no-tools", "user-only", "labeled-only", "all"]

SHOWS: tuple[Show, ...] = get_args(Show)
"""`turns` has a row for each prompt with all that followed; the others have one for each entry."""


def _table(codes: Iterable[Code]) -> bytes:
    """For `bytes.translate`: 1 for what is shown."""
    chosen = frozenset(codes)
    return bytes(code in chosen for code in range(256))


_TABLES: Mapping[Show, bytes] = {
    "turns": _table(TURNS),
    "default": _table(SUBSTANCE),
    "no-tools": _table(code for code in SUBSTANCE if code != Code.RESULT),
    "user-only": _table([Code.PROMPT]),
    "all": _table(code for code in Code if code != Code.USAGE),
}


class Shown:
    """The places that are shown, by segment. Of a segment that has grown, only what is new is read."""

    def __init__(self, show: Show) -> None:
        self.show: Show = show
        self._places: dict[Segment, tuple[int, list[int]]] = {}
        self._withdrawals = 0

    def choose(self, show: Show) -> None:
        """Show something else."""
        self.show = show
        self._places = {}

    def sync(self, outline: Outline, order: Iterable[Segment], labels: Iterable[str]) -> None:
        """Take over what has changed. `labels` are the entries that have one."""
        if self._withdrawals != outline.withdrawals:
            self._withdrawals = outline.withdrawals
            self._places = {}
        if self.show == "labeled-only":
            self._places = {}
            for place in sorted(place for each in labels if (place := outline.place(each)) is not None):
                self._places.setdefault(outline.segment(place), (0, []))[1].append(place)
        else:
            for segment in order:
                self._look_at(segment)

    def of(self, segment: Segment) -> Sequence[int]:
        """What is shown of a segment, ascending."""
        return self._places[segment][1] if segment in self._places else ()

    def stands_in(self, segment: Segment) -> bool:
        """Whether its only row is the end of a turn that begins further up, for want of a prompt."""
        places = self.of(segment)
        alone = self.show == "turns" and len(places) == 1
        return alone and segment.codes[segment.index(places[0])] not in TURNS

    def _look_at(self, segment: Segment) -> None:
        seen, places = self._places.get(segment, (0, []))
        size = len(segment.places)
        if seen == size and (segment.is_tip or not self.stands_in(segment)):
            return
        if seen > size:  # its end has become a segment of its own
            seen, places = 0, []
        elif self.stands_in(segment):
            places = []
        places += compress(segment.places[seen:], segment.codes[seen:].translate(_TABLES[self.show]))
        if self.show == "turns" and not places and segment.is_tip:
            places = [_last_of_substance(segment)]
        self._places[segment] = size, places


def _last_of_substance(segment: Segment) -> int:
    at = next(at for at in range(len(segment.codes) - 1, -1, -1) if segment.codes[at] in SUBSTANCE)
    return segment.places[at]
