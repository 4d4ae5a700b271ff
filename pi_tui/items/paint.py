"""From text to strips: the one way that letters reach the screen.

Every function here sanitises what it is given, so renderers pass on what models, tools and
files wrote as it is. Nothing is parsed as markup.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from io import StringIO
from typing import Any, TypeAlias

from attrs import evolve, frozen
from rich.cells import cell_len, set_cell_size
from rich.console import Console, RenderableType
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from rich.theme import Theme as RichTheme
from textual.strip import Strip

from pi_trio.text import sanitise
from pi_tui.keymap import NO_CHANGES
from pi_tui.theme import Theme

__all__ = [
    "BOLD",
    "DIM",
    "ITALIC",
    "Budget",
    "Look",
    "Span",
    "beginning",
    "fit",
    "folded",
    "indented",
    "line",
    "one_line",
    "painted",
    "render",
    "wrapped",
]

Span: TypeAlias = tuple[str, Style]
"""Text and how it looks."""

BOLD = Style(bold=True)
DIM = Style(dim=True)
ITALIC = Style(italic=True)

_CONSOLE = Console(
    file=StringIO(), force_terminal=True, color_system="truecolor", legacy_windows=False, _environ={}
)


@frozen
class Look:
    """How everything is drawn: the width in cells, the theme, and what the user unfolded.

    `now` is the store's clock in seconds and `tick` counts spinner frames; only what runs
    depends on them. `keymap` are the user's keys, for hints.
    """

    width: int
    theme: Theme
    expanded: bool = False
    now: float = 0.0
    tick: int = 0
    keymap: Mapping[str, str] = NO_CHANGES

    def narrower(self, cells: int) -> Look:
        """The same, `cells` narrower."""
        return evolve(self, width=max(self.width - cells, 1))

    def opened(self, expanded: bool) -> Look:
        """The same, unfolded or not."""
        return self if expanded == self.expanded else evolve(self, expanded=expanded)

    def fits(self, other: Look) -> bool:
        """Whether what does not run looks the same under both."""
        return (self.width, self.theme, self.expanded) == (other.width, other.theme, other.expanded)


class Line(Strip):
    """A strip without its seven caches, which weigh more than most lines, until one is asked for: of all
    lines that are drawn, few are ever on the screen.
    """

    __slots__ = ()

    def __init__(self, segments: Iterable[Segment], cell_length: int) -> None:
        self._segments = list(segments)
        self._cell_length = cell_length

    def __getattr__(self, name: str) -> Any:
        Strip.__init__(self, self._segments, self._cell_length)
        return object.__getattribute__(self, name)


class Budget:
    """Time for drawing, so that one long answer never holds up a key. Only this thread's own work
    counts: on a busy machine a frame shows as much as on an idle one.

    The first question is always answered with no: whatever the time, something gets done.
    `exceeded` tells that something was left out, `postponed` that it is not the newest state of it.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until = time.thread_time() + seconds
        self._asked = False
        self.exceeded = False
        self.postponed = False

    def used_up(self) -> bool:
        """Whether to stop here. Then something was left out, and `exceeded` is true."""
        if self._asked and time.thread_time() >= self._until:
            self.exceeded = True
        self._asked = True
        return self.exceeded

    def wait(self, work: Future[object]) -> bool:
        """Wait for another thread, no longer than this is for. False if it is not done, and is left out."""
        finished, _ = wait((work,), self._seconds)
        self.exceeded = self.exceeded or not finished
        return bool(finished)


_FIRST_LINE = re.compile(r"\S[^\n\r\v\f\x1c-\x1e\x85\u2028\u2029]{0,1999}")
"""More of a line is on no screen; and texts can be megabytes."""


def one_line(text: str) -> str:
    """Untrusted text on one line: the beginning of its first line with something on it."""
    first = _FIRST_LINE.search(text)
    return sanitise(first[0], keep_newlines=False).strip() if first else ""


def fit(text: str, width: int) -> str:
    """`text` cut to `width` cells, with an ellipsis where something is missing."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, max(width - 1, 0)).rstrip() + "…" if width > 0 else ""


def line(width: int, left: Sequence[Span], right: Sequence[Span] = (), ground: Style | None = None) -> Strip:
    """One line of exactly `width` cells. `left` is cut where it would run into `right`."""
    right_cells = sum(cell_len(_safe(text)) for text, _ in right)
    room = width - right_cells - (1 if right else 0)
    if room < 8 and right:
        return line(width, left, (), ground)
    segments: list[Segment] = []
    for at, (text, style) in enumerate(left):
        whole = _safe(text)
        cut = fit(whole, room)
        if cell_len(whole) == room and any(more.strip() for more, _ in left[at + 1 :]):
            cut = fit(f"{whole}…", room)  # all that is missing is what follows
        segments.append(Segment(cut, style))
        room -= cell_len(cut)
        if room <= 0 or cut != whole:  # one ellipsis says it, also where blanks before it went
            break
    if right:
        segments.append(Segment(" " * (room + 1)))
        segments += [Segment(_safe(text), style) for text, style in right]
    return painted(segments, width, ground)


def wrapped(text: str, width: int, style: Style, ground: Style | None = None) -> list[Strip]:
    """Running text, wrapped at words; its own line ends stay."""
    if width < 1:
        return []
    lines = [part for own in sanitise(text).split("\n") for part in _folded(own, width)]
    return [painted([Segment(part, style)], width, ground) for part in lines]


def _folded(text: str, width: int) -> Iterable[str]:
    """One line, wrapped. Most fit as they are, which is told far faster than Rich would."""
    if text.isascii() and len(text) <= width:
        return (text,)
    return (part.plain for part in Text(text).wrap(_CONSOLE, width))


def folded(text: Text, width: int) -> list[Strip]:
    """A line of several styles, wrapped at words. Its letters are sanitised already."""
    fits = text.plain.isascii() and len(text.plain) <= width
    parts = [text] if fits else text.wrap(_CONSOLE, width)
    return [painted(part.render(_CONSOLE), width) for part in parts]


def beginning(
    text: str, lines: int, width: int, style: Style, ground: Style | None = None
) -> tuple[list[Strip], int]:
    """The first lines of running text, and how many are left out.

    Only what is shown is laid out, however long the text is; so the number is an estimate
    where long lines follow. Nothing is left out for a single line, which the number would take.
    """
    if width < 1:
        return [], 0
    most = width * (lines + 1)
    head = "\n".join(text[:most].split("\n", lines + 1)[: lines + 1])
    strips = wrapped(head, width, style, ground)
    cut = len(text) - len(head)
    if not cut and len(strips) <= lines + 1:
        return strips, 0
    unseen = max(text.count("\n", len(head)), -(-cut // width))
    return strips[:lines], max(len(strips) - lines, 0) + unseen


def render(renderable: RenderableType, width: int, theme: RichTheme) -> list[Strip]:
    """What Rich makes of something; its letters are sanitised once more, after it resolved entities."""
    options = _CONSOLE.options.update(width=max(width, 1), height=None, highlight=False)
    with _CONSOLE.use_theme(theme):
        lines = _CONSOLE.render_lines(renderable, options, pad=False)
    return [painted([Segment(_safe(text), style) for text, style, _ in parts], width) for parts in lines]


def painted(segments: Iterable[Segment], width: int, ground: Style | None = None) -> Strip:
    """A strip of exactly `width` cells on `ground`."""
    line = Segment.adjust_line_length(list(segments), width)
    return Line(line if ground is None else Segment.apply_style(line, ground), width)


def indented(strips: Iterable[Strip], first: Span, rest: Span) -> list[Strip]:
    """The strips behind a mark; `first` and `rest` are equally wide."""
    out: list[Strip] = []
    for strip in strips:
        text, style = rest if out else first
        out.append(Line([Segment(text, style), *strip], cell_len(text) + strip.cell_length))
    return out


def _safe(text: str) -> str:
    return text if text.isprintable() else sanitise(text, keep_newlines=False)
