"""The ground of themes that have one, under everything that is drawn.

All widgets leave the ground to the terminal; here it is filled in, in one place, in the last
step before the letters go out.
"""

from __future__ import annotations

from functools import lru_cache

from rich.color import Color as RichColor
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter

__all__ = ["Ground"]


class Ground(LineFilter):
    """Puts colours in the place of the terminal's own."""

    def __init__(self, ground: Style) -> None:
        super().__init__(enabled=bool(ground))
        self._ground = ground

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """See `LineFilter`."""
        ground = self._ground
        return [
            Segment(text, _on(ground, style) if style else ground, control)
            for text, style, control in segments
        ]


@lru_cache(4096)
def _on(ground: Style, style: Style) -> Style:
    """A style whose terminal colours are those of the ground."""
    return style + Style(
        color=ground.color if _is_default(style.color) else None,
        bgcolor=ground.bgcolor if _is_default(style.bgcolor) else None,
    )


def _is_default(colour: RichColor | None) -> bool:
    return colour is None or colour.is_default
