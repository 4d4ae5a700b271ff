"""Dialogs at the foot of the screen: a title, lines to read, and keys. What they ask about stays in sight."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from textual import events
from textual.app import ComposeResult
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.widgets import Input

from pi_tui.items.paint import Look
from pi_tui.theme import Theme
from pi_tui.widgets.chrome import KeyRows, Rule
from pi_tui.widgets.lines import LineView, own_actions

__all__ = ["DEAF", "Composed", "Details", "Dialog"]

T = TypeVar("T")

DEAF = 0.4
"""Seconds in which a dialog that comes by itself takes no answer: what was being typed must not be one."""


class Composed(ModalScreen[T]):
    """Takes no key before its parts are there: keys can come as fast as a hand holds one down."""

    DEFAULT_CSS = """
    Composed Input { border: none; height: 1; padding: 0 1; }
    Composed Input:focus { border: none; }
    """

    async def on_event(self, event: events.Event) -> None:
        """See `Screen`."""
        if self.children or not isinstance(event, events.Key | events.Paste):
            await super().on_event(event)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """See `Screen`: bindings go another way than keys."""
        return bool(self.children)

    async def take_key(self, event: events.Key) -> bool:
        """Run a key as it comes from the terminal, in the order in which keys are typed. False: Textual does.

        There a letter goes around by the part that has the focus, and the Enter behind it would overtake
        it. A line that is written in has the keys itself.
        """
        if not self.children or isinstance(self.focused, Input):
            return False
        action = own_actions(self, self.app._keymap).get(event.key)
        if action is None:
            return self.typed(event)
        await self.run_action(action)
        return True

    def typed(self, event: events.Key) -> bool:
        """Use a key that has no action, such as a letter. False if it is of no use here."""
        return False


class Dialog(Composed[T]):
    """Gives None when it is left. `clock` gives seconds; only its differences count."""

    DEFAULT_CSS = """
    Dialog { align: center bottom; background: ansi_default; }
    Dialog > * { background: ansi_default; width: 100%; }
    """
    answers: frozenset[str] = frozenset()
    """The actions that are answers."""
    most = 0.6
    """The part of the screen's height that the lines may take."""

    keys_for = "Details"
    """The part that keys are for at first."""

    def __init__(
        self, title: str, hint: str, theme: Theme, clock: Callable[[], float], *, deaf: float = DEAF
    ) -> None:
        super().__init__()
        self._deaf = deaf
        self._heading = title
        self._hint = hint
        self._theme = theme
        self._clock = clock
        self._shown_at = clock()

    def compose(self) -> ComposeResult:
        """The dialog, top to bottom."""
        yield Rule(self._theme, id="title")
        yield Details(self._theme, self.draw, self.most)
        yield KeyRows(self._theme, self._hint)

    def on_mount(self) -> None:
        """Nothing else takes keys now."""
        self.query_one(Rule).tell(self._heading, "borderAccent")
        self.query_one(self.keys_for).focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Answers are not heard at first."""
        heard = action not in self.answers or self._clock() - self._shown_at >= self._deaf
        return heard and super().check_action(action, parameters)

    def draw(self, look: Look) -> Sequence[Strip]:
        """What there is to read."""
        raise NotImplementedError


class Details(LineView, can_focus=True):
    """The lines of a dialog; as high as they need, up to the part `most` of the screen's height."""

    def __init__(self, theme: Theme, draw: Callable[[Look], Sequence[Strip]], most: float) -> None:
        super().__init__(theme)
        self._most = most
        self._draw = draw
        self._lines: Sequence[Strip] = ()

    def on_resize(self) -> None:
        """The width is known, or another."""
        self.sync()

    def sync(self) -> None:
        """Draw the lines again."""
        self._lines = self._draw(Look(self.width, self.theme))
        self.styles.height = max(min(len(self._lines), int(self.app.size.height * self._most)), 1)
        self.set_line_count(len(self._lines))

    def restyle(self) -> None:
        self.sync()

    def line_at(self, y: int) -> Strip | None:
        return self._lines[y] if y < len(self._lines) else None

    def show_line(self, y: int) -> None:
        """Scroll as little as brings a line into view."""
        top, height = round(self.scroll_offset.y), int(self.styles.height.value if self.styles.height else 1)
        if not top <= y < top + height:
            self.scroll_to(y=y if y < top else y - height + 1, animate=False)
