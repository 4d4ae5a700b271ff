"""The prompt: what the user writes, with history, folded pastes, and nothing ever lost."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

from textual import events
from textual.message import Message
from textual.widgets import TextArea

from pi_trio.text import sanitise
from pi_tui.keymap import keys_now
from pi_tui.widgets.hints import Hints
from pi_tui.widgets.lines import bindings_for, own_actions

__all__ = ["Delivery", "Prompt"]

Delivery: TypeAlias = Literal["send", "follow_up"]

FOLD_LINES = 10
FOLD_CHARACTERS = 1000
"""A paste with more than either is shown as one mark and sent whole."""

MOST_CHARACTERS = 20_000
"""A text with more of them becomes such a mark when it comes back from the history or the session."""

_SCREEN_ACTIONS = {
    "delete_right": "exit",
    "copy": "clear",
    "cursor_page_up": "page(-1)",
    "cursor_page_down": "page(1)",
}
"""Editing that has no object here, and what its key does instead."""

_MARK = re.compile(r"\[paste #(\d+) [^\]]*\]")


class Prompt(TextArea):
    """Enter sends, ctrl+j makes a new line; up on an empty prompt brings earlier ones back."""

    DEFAULT_CSS = """
    Prompt { height: auto; max-height: 8; padding: 0; border: none; background: transparent; }
    Prompt:focus { border: none; }
    Prompt .text-area--cursor-line { background: transparent; }
    Prompt .text-area--placeholder { color: $pi-dim; }
    """
    BINDINGS = bindings_for("prompt")

    class Submitted(Message):
        """The user sends `text`."""

        def __init__(self, text: str, delivery: Delivery) -> None:
            super().__init__()
            self.text = text
            self.delivery = delivery

    class SentNothing(Message):
        """Enter, with nothing written."""

    def __init__(self, keymap: Mapping[str, str], hints: Hints, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, compact=True, soft_wrap=True, highlight_cursor_line=False)
        self.cursor_blink = False  # a blinking cursor keeps an idle terminal, and its link, busy
        self._actions = own_actions(self, keymap)
        self._hints = hints
        self._question_mark_helps = "question_mark" in keys_now("app.help", keymap).split(",")
        self.suggestions: Sequence[str] = ()
        self.running = False
        self._history: list[str] = []
        self._browsing: int | None = None
        self._pastes: dict[str, str] = {}

    @property
    def browsing(self) -> bool:
        """Whether an earlier prompt is shown, which up and down leave again."""
        return self._browsing is not None

    # ---------------------------------------------------------------- commands

    def remember(self, texts: Iterable[str]) -> None:
        """Replace the history: the prompts of a session, oldest first."""
        self._history = [text for text in texts if text.strip()]
        self._browsing = None

    def put_back(self, texts: Iterable[str]) -> None:
        """Put texts before what is written now, so that neither is lost."""
        parts = [self._written(text) for text in texts]
        if not any(parts):
            return
        self._write("\n\n".join([*parts, self.text] if self.text.strip() else parts))

    def begin(self, text: str) -> None:
        """Write the beginning of a line, unless something is written already: then before that."""
        self._write(text + self.text)

    def take_draft(self) -> str:
        """What is written, with pastes unfolded, leaving the prompt empty."""
        text = _MARK.sub(lambda mark: self._pastes.get(mark[1], mark[0]), self.text).strip()
        self._write("")
        self._pastes.clear()
        self._browsing = None
        return text

    def take(self) -> str:
        """The same, of what is sent or thrown away: it enters the history."""
        text = self.take_draft()
        if text and (not self._history or self._history[-1] != text):
            self._history.append(text)
        return text

    # ---------------------------------------------------------------- keys

    def action_send(self) -> None:
        if self._hints.chosen and self.text not in self._hints.lines:
            self._complete()
        elif not self.text.strip():
            self.post_message(self.SentNothing())
        else:
            self._submit("send")

    def action_follow_up(self) -> None:
        if self.running:
            self._submit("follow_up")
        else:
            self.action_newline()

    def action_tab(self) -> None:
        if self._hints.chosen:
            self._complete()
        elif self.running:
            self._submit("follow_up")

    def action_newline(self) -> None:
        self.insert("\n")

    def action_delete_left(self) -> None:
        """A mark goes as a whole: a part of it would be sent as it stands there."""
        row, column = self.cursor_location
        marks = _MARK.finditer(self.document.get_line(row)) if self.selection.is_empty else ()
        mark = next((each for each in marks if each.end() == column and each[1] in self._pastes), None)
        if mark is None:
            super().action_delete_left()
        else:
            self.delete((row, mark.start()), (row, column))

    def action_up(self) -> None:
        if self._hints.chosen:
            self._hints.move(-1)
        elif self._browsing is not None or not self.text:
            self._browse(-1)
        else:
            self.action_cursor_up()

    def action_down(self) -> None:
        if self._hints.chosen:
            self._hints.move(1)
        elif self._browsing is not None:
            self._browse(1)
        else:
            self.action_cursor_down()

    async def _on_key(self, event: events.Key) -> None:
        """Run keys in the order in which they were typed."""
        action = self._actions.get(event.key)
        if action is not None:
            event.stop()
            event.prevent_default()
            await self._run_bound(action)
        else:
            await self._type(event)

    async def _run_bound(self, action: str) -> None:
        """Run an action here, or that of the screen which it means now."""
        passed_on = _SCREEN_ACTIONS.get(action)
        if (action == "delete_right" and self.text) or (action == "copy" and self.selected_text):
            passed_on = None
        if action == "tab" and not self.text:
            passed_on = "next_pane"
        await (self.screen.run_action(passed_on) if passed_on else self.run_action(action))

    async def _type(self, event: events.Key) -> None:
        self._browsing = None
        if self.text or not await self._on_empty(event.character):
            await super()._on_key(event)
            return
        event.stop()
        event.prevent_default()

    async def _on_empty(self, character: str | None) -> bool:
        """What some letters do while nothing is written. False for all others."""
        if character == "?" and self._question_mark_helps:
            await self.screen.run_action("help")
            return True
        chosen = self._suggested(character)
        if chosen:
            self._write(chosen)
        return bool(chosen)

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        text = sanitise(event.text.replace("\r\n", "\n").replace("\r", "\n"))
        if text.count("\n") >= FOLD_LINES or len(text) > FOLD_CHARACTERS:
            text = self._fold(text)
        self.insert(text)

    # ---------------------------------------------------------------- inside

    def _submit(self, delivery: Delivery) -> None:
        text = self.take()
        if text:
            self.post_message(self.Submitted(text, delivery))

    def _complete(self) -> None:
        """Write the chosen completion; behind a command goes its argument."""
        chosen = self._hints.chosen
        self._write(chosen if " " in chosen else f"{chosen} ")

    def _suggested(self, character: str | None) -> str:
        if character is None or character not in "123456789":
            return ""
        at = int(character) - 1
        return self.suggestions[at] if at < len(self.suggestions) else ""

    def _browse(self, by: int) -> None:
        at = (len(self._history) if self._browsing is None else self._browsing) + by
        if at < 0 or not self._history:
            return
        self._write(self._written(self._history[at]) if at < len(self._history) else "")
        self._browsing = at if at < len(self._history) else None

    def _written(self, text: str) -> str:
        """A text as it comes back: to be edited, unless each key would lay out far too much again."""
        text = sanitise(text)
        return text if len(text) <= MOST_CHARACTERS else self._fold(text)

    def _fold(self, text: str) -> str:
        number = str(len(self._pastes) + 1)
        self._pastes[number] = text
        lines = text.count("\n") + 1
        return f"[paste #{number} +{lines} lines]" if lines > 1 else f"[paste #{number} {len(text)} chars]"

    def _write(self, text: str) -> None:
        self.text = text
        self.move_cursor(self.document.end)
