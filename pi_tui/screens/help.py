"""The keys that are bound now, over everything else. Made from the key table and the user's keymap."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen
from textual.strip import Strip

from pi_tui.items.paint import BOLD, Span, indented, line, wrapped
from pi_tui.key_clashes import clashes
from pi_tui.keymap import KEYS, UNBOUND, Area, key_label
from pi_tui.theme import Theme
from pi_tui.widgets.lines import LineView

__all__ = ["HelpScreen"]

_TITLES: dict[Area, str] = {
    "prompt": "In the prompt",
    "queue": "In the messages that wait",
    "stream": "In the stream",
    "find": "While something is looked for",
    "tree": "In the session tree",
    "tools": "In the tool pane",
    "sessions": "In the list of sessions",
    "question": "When a call waits for your answer",
    "everywhere": "Everywhere",
}


class HelpScreen(ModalScreen[None]):
    """Any of its keys closes it."""

    DEFAULT_CSS = """
    HelpScreen { align: center middle; background: ansi_default; }
    HelpScreen KeyList { width: 76; max-width: 100%; height: 100%; padding: 1 2; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,f1,q,ctrl+c,enter", "dismiss", "close", show=False, priority=True)
    ]

    def __init__(self, theme: Theme, keymap: Mapping[str, str], here: Area = "prompt") -> None:
        super().__init__()
        self._theme = theme
        self._keymap = keymap
        self._here: Area = here

    def compose(self) -> ComposeResult:
        """The list."""
        yield KeyList(self._theme, self._keymap, self._here)


class KeyList(LineView, can_focus=True):
    """The table as lines."""

    def __init__(self, theme: Theme, keymap: Mapping[str, str], here: Area) -> None:
        super().__init__(theme)
        self._rows = _rows(keymap, here)
        self._widest = max(cell_len(keys) for keys, _ in self._rows)
        self._lines: list[Strip] = []

    def on_mount(self) -> None:
        """There is nothing else to focus."""
        self.focus()

    def on_resize(self) -> None:
        """What a key does is told in as many lines as it takes."""
        self._lines = [strip for row in self._rows for strip in self._row(*row)]
        self.set_line_count(len(self._lines))

    def restyle(self) -> None:
        self.on_resize()

    def line_at(self, y: int) -> Strip | None:
        return self._lines[y] if y < len(self._lines) else None

    def _row(self, keys: str, text: str) -> list[Strip]:
        if not keys:
            return [line(self.width, [(text, BOLD)])]
        cells = min(self._widest, self.width // 2)
        strips = wrapped(text, self.width - cells - 4, self.theme["text"])
        blank: Span = (" " * (cells + 4), self.theme["text"])
        if cell_len(keys) > cells:  # they take a line of their own
            return [line(self.width, [(f"  {keys}", self.theme["accent"])]), *indented(strips, blank, blank)]
        return indented(strips, (f"  {set_cell_size(keys, cells)}  ", self.theme["accent"]), blank)


def _rows(keymap: Mapping[str, str], here: Area) -> list[tuple[str, str]]:
    """Key and meaning; titles have no key. What the user gave to two actions is told first, then the keys
    of where they are.
    """
    rows = [("", "Keys · esc closes this, ↑ ↓ scroll"), *(("✗", clash) for clash in clashes(keymap))]
    for area in dict.fromkeys((here, *_TITLES)):
        rows += [("", ""), ("", _TITLES[area])]
        for key in KEYS:
            bound = keymap.get(key.id, key.keys)
            if key.area == area and bound != UNBOUND:
                rows.append((" ".join(dict.fromkeys(map(key_label, bound.split(",")[:2]))), key.help))
    return rows
