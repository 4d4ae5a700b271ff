"""A choice among some lines; where there are many, letters narrow them down, the best match first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.fuzzy import FuzzySearch
from textual.strip import Strip

from pi_tui.items.paint import BOLD, Look, line, wrapped
from pi_tui.screens.dialog import DEAF, Details, Dialog
from pi_tui.theme import Theme
from pi_tui.widgets.chrome import Rule

__all__ = ["PickScreen", "matching", "searched"]


_IN_NOTE = 0.1
"""How much a word in a note counts, against some ones for letters in a line."""


class PickScreen(Dialog[int | None]):
    """Gives the index of the chosen line. `text` is shown above them; both may be anybody's words.

    `notes` stand at the right of the lines, and are searched too. `looked_at` is called with
    the index of the line under the cursor whenever that becomes another. Without `letters` nothing that
    is typed moves the cursor: the chosen line is the answer of somebody who meant to write a prompt.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", show=False, priority=True),
        Binding("down", "move(1)", show=False, priority=True),
        Binding("pageup", "move(-10)", show=False, priority=True),
        Binding("pagedown", "move(10)", show=False, priority=True),
        Binding("enter", "choose", show=False, priority=True),
        Binding("escape,ctrl+c", "leave", show=False, priority=True),
    ]
    answers = frozenset({"choose"})

    def __init__(
        self,
        title: str,
        choices: Sequence[str],
        theme: Theme,
        clock: Callable[[], float],
        *,
        text: str = "",
        chosen: int = 0,
        deaf: float = DEAF,
        notes: Sequence[str] = (),
        looked_at: Callable[[int], None] | None = None,
        letters: bool = True,
    ) -> None:
        hint = f"↑ ↓ enter choose · {'letters search · ' if letters else ''}esc leave"
        super().__init__(title, hint, theme, clock, deaf=deaf)
        self._choices = choices
        self._notes = notes or [""] * len(choices)
        self._looked_at = looked_at
        self._text = text
        self._letters = letters
        self._wanted = ""
        self._found = list(range(len(choices)))
        self._at = chosen

    def draw(self, look: Look) -> Sequence[Strip]:
        """The text, and below it the lines that match."""
        strips = wrapped(self._text, look.width, look.theme["text"]) if self._text else []
        if not self._found:
            strips.append(line(look.width, [("  nothing has these letters", look.theme["muted"])]))
        for at, index in enumerate(self._found):
            here = at == self._at
            mark = ("› " if here else "  ", look.theme["accent"])
            style = look.theme["text"] + BOLD if here else look.theme["muted"]
            ground = look.theme["selectedBg"] if here else None
            note = [(f"{self._notes[index]} ", look.theme["muted"])] if self._notes[index] else []
            strips.append(line(look.width, [mark, (self._choices[index], style)], note, ground))
        return strips

    def typed(self, event: events.Key) -> bool:
        """Letters search."""
        wanted = searched(event, self._wanted) if self._letters else None
        if wanted is not None:
            self._search(wanted)
        return wanted is not None

    def action_move(self, by: int) -> None:
        self._at = min(max(self._at + by, 0), max(len(self._found) - 1, 0))
        self._show_place()

    def on_mount(self) -> None:
        """The chosen line may be far down."""
        self.call_after_refresh(self._show_place)

    def _show_place(self) -> None:
        if self._looked_at is not None and self._found:
            self._looked_at(self._found[self._at])
        details = self.query_one(Details)
        details.sync()
        details.show_line(details.virtual_size.height - len(self._found) + self._at)

    def action_choose(self) -> None:
        if self._found:
            self.dismiss(self._found[self._at])

    def action_leave(self) -> None:
        self.dismiss(None)

    def _search(self, wanted: str) -> None:
        self._wanted = wanted
        self._found = matching(wanted, self._choices, self._notes)
        self._at = 0
        title = f"{self._heading} · {wanted}" if wanted else self._heading
        self.query_one(Rule).tell(title, "borderAccent")
        self._show_place()


def searched(event: events.Key, wanted: str) -> str | None:
    """What is looked for after a key; None if that has nothing to do with it."""
    if event.key == "backspace":
        return wanted[:-1]
    return wanted + event.character if event.is_printable and event.character else None


def matching(wanted: str, lines: Sequence[str], notes: Sequence[str]) -> list[int]:
    """The lines that hold every word, best first: its letters in order, or it is in the note."""
    search, scores = FuzzySearch(), {}
    for index, (each, note) in enumerate(zip(lines, notes, strict=True)):
        parts = [
            search.match(word, each)[0] or _IN_NOTE * (word.lower() in note.lower())
            for word in wanted.split()
        ]
        if all(parts):
            scores[index] = sum(parts)
    return sorted(scores, key=lambda index: -scores[index])
