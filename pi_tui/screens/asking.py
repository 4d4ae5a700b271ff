"""What the program asks the user: whether calls may run, one at a time, and what is to be used or shown."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pi_trio.errors import UsageError
from pi_tui.theme import Theme

if TYPE_CHECKING:
    from pi_trio.approval import Question
    from pi_tui.live import LiveSession
    from pi_tui.screens.question import QuestionScreen, Reply
    from pi_tui.screens.view import SessionView

__all__ = ["Asking"]


class Asking:
    """Opens dialogs over a screen, and has its `work` do what they are answered."""

    def __init__(self, screen: SessionView, theme: Theme, keymap: Mapping[str, str]) -> None:
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
        models = await live.models()
        names = [model.reference for model in models]
        now = live.store.model.reference
        index = await self._pick("model", names, names.index(now) if now in names else 0)
        if index is not None:
            await self._screen.work.set_model(models[index])

    async def earlier_prompt(self) -> None:
        """Have an earlier prompt chosen, of any session, and put it into the prompt."""
        from pi_tui.items.paint import one_line

        prompt = self._screen.prompt
        texts = prompt.earlier()[::-1]
        index = await self._pick("earlier prompts", [one_line(text) for text in texts])
        if index is not None:
            prompt.bring(texts[index])

    async def sessions(self) -> None:
        """Have a session chosen, and show it."""
        from pi_tui.screens.sessions import SessionsScreen

        work = self._screen.work
        home = os.environ.get("HOME", "")
        screen = SessionsScreen(work.sessions, work.offered, work.close, self._theme, self._keymap, home)
        choice = await self._screen.app.push_screen_wait(screen)
        if choice is not None:
            await work.show_chosen(choice)

    async def login(self, live: LiveSession, provider: str = "", key: str = "") -> None:
        """Have a key written, or a `key` that was pasted confirmed, and store it."""
        from pi_tui.screens.text import SecretScreen

        work = self._screen.work
        places = await work.offered.key_places()
        place = next((each for each in places if each.id == provider), None)
        if provider and place is None:
            known = ", ".join(each.id for each in places)
            raise UsageError(f"There is no provider {provider!r} that needs a key; known are {known}.")
        if place is None:
            title = "whose key is this?" if key else "log in to"
            names = [f"{each.id}  {each.source or ''}".rstrip() for each in places]
            index = await self._pick(title, names)
            if index is None:
                return
            place = places[index]
        text = (
            "That looks like an API key; it was not sent. Enter stores it for you alone to read."
            if key
            else "It is stored for you alone to read, and shown nowhere."
        )
        screen = SecretScreen(f"API key of {place.name}", text, self._theme, live.store.clock, value=key)
        written = await self._screen.app.push_screen_wait(screen)
        if written is not None:
            await work.log_in(live, place.id, written)

    async def _pick(self, title: str, choices: list[str], chosen: int = 0) -> int | None:
        from pi_tui.screens.pick import PickScreen

        screen = PickScreen(title, choices, self._theme, time.monotonic, chosen=chosen, deaf=0.0)
        return await self._screen.app.push_screen_wait(screen)
