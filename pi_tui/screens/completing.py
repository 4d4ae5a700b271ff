"""The completions of what is written: found at once, or asked for and shown when they come."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, cast

from pi_trio.errors import PiError
from pi_tui.hints import Hint, wants_argument
from pi_tui.widgets.hints import Hints

if TYPE_CHECKING:
    from textual.worker import WorkType

    from pi_tui.screens.view import SessionView

__all__ = ["Completing"]


class Completing:
    """Tells the list above the prompt what there is to choose."""

    def __init__(self, screen: SessionView) -> None:
        self._screen = screen

    def find(self) -> None:
        """Find them for what is written now; some have to be asked for, and come later."""
        screen, work = self._screen, self._screen.work
        if not screen.query(Hints):
            return  # the program ends
        text = screen.prompt.text
        if screen.prompt.browsing:  # the arrows go on in the history
            self._tell((), text)
        elif work.live is not None and (word := screen.prompt.file_word) is not None:
            self._find_later(text, lambda: work.file_hints(word))
        elif work.live is not None and wants_argument(text):
            self._find_later(text, lambda: work.argument_hints(text))
        else:
            self._tell(work.hints(text), text)
        screen.refresh_chrome()

    def close(self) -> None:
        """Nothing is to be chosen until another letter comes."""
        self._tell((), self._screen.prompt.text)
        self._screen.refresh_chrome()

    def _find_later(self, text: str, find: Callable[[], Awaitable[list[Hint]]]) -> None:
        """One at a time: what was asked for before is not wanted any more."""
        # No coroutine yet: the worker may be cancelled before it begins.
        look = cast("WorkType[None]", partial(self._find, text, find))
        self._screen.run_worker(look, group="hints", exclusive=True)

    async def _find(self, text: str, find: Callable[[], Awaitable[list[Hint]]]) -> None:
        try:
            hints = await find()
        except PiError:
            hints = []  # the command itself will say what is wrong
        if self._screen.query(Hints) and text == self._screen.prompt.text:
            self._tell(hints, text)
            self._screen.refresh_chrome()

    def _tell(self, hints: Sequence[Hint], text: str) -> None:
        self._screen.query_one(Hints).tell(hints, text)
