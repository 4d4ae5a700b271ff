"""The base of everything unbounded on the screen: a view over lines, drawn when they are seen."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from pi_tui.keymap import Area, keys_of
from pi_tui.theme import Theme

__all__ = [
    "Copied",
    "LineView",
    "Missing",
    "OneLine",
    "bindings_for",
    "own_actions",
    "passed_on",
    "styled",
    "taken",
]


PLAIN = Style()
"""The terminal's own colours."""


def bindings_for(area: Area) -> list[BindingType]:
    """The key table's rows for a place, as Textual takes them."""
    return [
        Binding(key.keys, key.action, key.help, id=key.id, show=False, priority=key.priority)
        for key in keys_of(area)
    ]


def own_actions(widget: Widget, keymap: Mapping[str, str]) -> dict[str, str]:
    """The actions of a widget's keys, for it to run them itself as they come.

    Left to Textual, a bound key goes around by the app and would overtake, or be overtaken by,
    keys typed next to it.
    """
    bindings = widget._bindings.copy()
    bindings.apply_keymap(dict(keymap))
    return {key: bound[0].action for key, bound in bindings.key_to_bindings.items()}


def taken(event: events.Key, actions: Mapping[str, str]) -> str | None:
    """The action of a key, which then nobody else gets; None if it has none among `own_actions`."""
    action = actions.get(event.key)
    if action is not None:
        event.stop()
        event.prevent_default()
    return action


def passed_on(widget: Widget, event: events.Key) -> bool:
    """Give a key that came here before an earlier one turned to another widget to that widget."""
    focused = widget.screen.focused
    if focused is None or focused is widget or not widget.screen.is_current:
        return False
    event.stop()
    event.prevent_default()
    focused.post_message(events.Key(event.key, event.character))
    return True


def styled(strip: Strip, width: int) -> Strip:
    """A strip of exactly `width` cells in which everything has a style: Textual's filters need one."""
    segments = [Segment(text, style or PLAIN) for text, style, _ in strip]
    return Strip(segments, strip.cell_length).adjust_cell_length(width, PLAIN)


class Missing(Message):
    """Something came into view whose entries are not loaded."""

    def __init__(self, ids: list[str]) -> None:
        super().__init__()
        self.ids = ids


class Copied(Message):
    """The user wants a text copied."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


class LineView(ScrollView):
    """Draws only the lines in view. Subclasses say how many there are and give each.

    With a `keymap` it runs its keys in the order in which they were typed.
    """

    DEFAULT_CSS = """
    LineView {
        scrollbar-size-vertical: 1; overflow-x: hidden; overflow-y: auto;
        scrollbar-background: $pi-scrollbarTrack; scrollbar-background-hover: $pi-scrollbarTrack;
        scrollbar-background-active: $pi-scrollbarTrack;
        scrollbar-color: $pi-scrollbarThumb; scrollbar-color-hover: $pi-borderAccent;
        scrollbar-color-active: $pi-accent;
    }
    """
    ALLOW_SELECT: ClassVar[bool] = False

    def __init__(
        self,
        theme: Theme,
        keymap: Mapping[str, str] | None = None,
        *,
        id: str | None = None,  # noqa: A002  # Textual's name
    ) -> None:
        super().__init__(id=id)
        self.theme = theme
        self._actions = {} if keymap is None else own_actions(self, keymap)

    async def _on_key(self, event: events.Key) -> None:
        action = taken(event, self._actions)
        if action is not None:
            await self.run_action(action)

    @property
    def width(self) -> int:
        """Cells of a line."""
        return max(self.scrollable_content_region.width, 1)

    def line_at(self, y: int) -> Strip | None:
        """Line `y` of all, or None past the end."""
        raise NotImplementedError

    def restyle(self) -> None:
        """The theme has become another."""
        self.refresh()

    def watch_show_vertical_scrollbar(self) -> None:
        """The lines have a cell more or less, of which Textual tells nobody."""
        self.post_message(events.Resize(self.size, self.virtual_size, self.container_size))

    def set_line_count(self, count: int) -> None:
        """Tell how many lines there are now, and draw again."""
        self.resize_to(count)
        self.refresh()

    def resize_to(self, count: int) -> None:
        """Tell how many lines there are now.

        Textual lays the whole screen out when a virtual size changes, which costs more than
        drawing it; here that is needed only when the scrollbar comes or goes.
        """
        if self.show_vertical_scrollbar != (count > self.container_size.height):
            self.virtual_size = Size(0, count)
            return
        self.set_reactive(Widget.virtual_size, Size(0, count))
        self.scroll_y = self.validate_scroll_y(self.scroll_y)
        self._move_thumb()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """The view has moved, for Textual."""
        self._move_thumb()
        if round(old_value) != round(new_value):
            self.refresh()

    def _move_thumb(self) -> None:
        """Draw the scrollbar again when that can be seen: it costs as much as all the lines beside it."""
        if not self.show_vertical_scrollbar:
            return
        bar, height, total = self.vertical_scrollbar, self.size.height, self.virtual_size.height
        if _thumb(height, total, self.scroll_y) != _thumb(height, bar.window_virtual_size, bar.position):
            bar.window_virtual_size = total
            bar.position = self.scroll_y

    def render_line(self, y: int) -> Strip:
        """A line of the view, for Textual."""
        strip = self.line_at(round(self.scroll_offset.y) + y)
        return styled(strip or Strip([]), self.size.width)


def _thumb(height: int, total: float, above: float) -> tuple[int, int]:
    """Where a thumb begins and how long it is, in eighths of a cell: so finely Textual draws it."""
    size = max(1.0, height * height / max(total, 1))
    return int(8 * (height - size) * above / max(total - height, 1)), ceil(8 * size)


class OneLine(Widget):
    """A single line that is computed when it is drawn."""

    DEFAULT_CSS = """
    OneLine { height: 1; }
    """

    def __init__(self, theme: Theme, *, id: str | None = None) -> None:  # noqa: A002  # Textual's name
        super().__init__(id=id)
        self.theme = theme

    def strip(self, width: int) -> Strip:
        """The line."""
        raise NotImplementedError

    def render_line(self, y: int) -> Strip:
        """The line, for Textual."""
        return styled(self.strip(self.size.width) if y == 0 else Strip([]), self.size.width)
