"""What the program asks the user: whether calls may run, one at a time, and which model to use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pi_tui.theme import Theme

if TYPE_CHECKING:
    from pi_trio.approval import Question
    from pi_tui.live import LiveSession
    from pi_tui.screens.main import MainScreen
    from pi_tui.screens.question import QuestionScreen, Reply

__all__ = ["Asking"]


class Asking:
    """Opens dialogs over a screen, and has its `work` do what they are answered."""

    def __init__(self, screen: MainScreen, theme: Theme, keymap: Mapping[str, str]) -> None:
        self._screen = screen
        self._theme = theme
        self._keymap = keymap
        self._shown: QuestionScreen | None = None

    def sync(self, live: LiveSession) -> None:
        """Show the oldest question that waits, and take one away that waits no more."""
        waiting = live.store.questions
        if self._shown is None:
            if waiting:
                self._show(live, next(iter(waiting.values())))
        elif self._shown.question.id not in waiting and self._shown.is_current:
            self._shown.dismiss(None)

    def _show(self, live: LiveSession, question: Question) -> None:
        from pi_tui.screens.question import QuestionScreen

        def answered(reply: Reply | None) -> None:
            self._shown = None
            if reply is not None:
                live.store.questions.pop(question.id, None)
                self._screen.do(self._screen.work.answer(live, question, reply))
            if self._screen.live is not None:  # it may be another session by now
                self.sync(self._screen.live)

        self._shown = QuestionScreen(question, self._theme, self._keymap, live.store.clock)
        self._screen.app.push_screen(self._shown, answered)

    async def model(self, live: LiveSession) -> None:
        """Have a model chosen, and use it from the next request on."""
        from pi_tui.screens.pick import PickScreen

        models = await live.models()
        names = [model.reference for model in models]
        now = live.store.model.reference
        chosen = names.index(now) if now in names else 0
        screen = PickScreen("model", names, self._theme, live.store.clock, chosen=chosen, deaf=0.0)
        index = await self._screen.app.push_screen_wait(screen)
        if index is not None:
            await self._screen.work.set_model(models[index])
