"""The prompt: what the user writes, with history, chips, completion, and nothing ever lost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from textual import events
from textual.message import Message

from pi_trio.errors import StorageError
from pi_trio.llm.key_shapes import find_key
from pi_trio.messages import ImageContent, UserMessage, text_of
from pi_trio.text import sanitise
from pi_tui.hints import file_word
from pi_tui.history import PromptHistory
from pi_tui.keymap import keys_now
from pi_tui.pictures import pasted_image
from pi_tui.widgets.editor import Editor
from pi_tui.widgets.hints import Hints
from pi_tui.widgets.lines import bindings_for, own_actions, passed_on, taken

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


class Prompt(Editor):
    """Enter sends, ctrl+j makes a new line; up on an empty prompt brings earlier ones back."""

    DEFAULT_CSS = """
    Prompt { height: auto; max-height: 8; padding: 0; border: none; background: transparent; }
    Prompt:focus { border: none; }
    Prompt .text-area--cursor-line { background: transparent; }
    Prompt .text-area--placeholder { color: $pi-dim; }
    """
    BINDINGS = bindings_for("prompt")

    class Submitted(Message):
        """The user sends `text`, with the images whose chips are in it."""

        def __init__(self, text: str, delivery: Delivery, images: Sequence[Path] = ()) -> None:
            super().__init__()
            self.text = text
            self.delivery = delivery
            self.images = images

    class SentNothing(Message):
        """Enter, with nothing written."""

    class NotKept(Message):
        """What was sent could not be written into the history: why."""

        def __init__(self, problem: str) -> None:
            super().__init__()
            self.problem = problem

    class KeyCaught(Message):
        """An API key was pasted, or stood in what was to be sent. It went nowhere else."""

        def __init__(self, key: str, provider: str, *, pasted: bool) -> None:
            super().__init__()
            self.key = key
            self.provider = provider
            self.pasted = pasted

    def __init__(
        self,
        keymap: Mapping[str, str],
        hints: Hints,
        find_hints: Callable[[], None],
        history: PromptHistory,
        *,
        id: str | None = None,  # noqa: A002  # Textual's name
    ) -> None:
        super().__init__(id=id)
        self._actions = own_actions(self, keymap)
        self._hints = hints
        self._find_hints = find_hints
        self._question_mark_helps = "question_mark" in keys_now("app.help", keymap).split(",")
        self.suggestions: Sequence[str] = ()
        self.running = False
        self.takes_images = False
        self.waiting = False
        self._kept = history
        self._session: Sequence[str] = ()
        self._history: Sequence[str] = ()
        self._browsing: int | None = None
        self._draft = ""
        self._with_chips: dict[str, str] = {}
        """What was taken out of here, with its pastes unfolded, as it was written."""

    @property
    def browsing(self) -> bool:
        """Whether an earlier prompt is shown, which up and down leave again."""
        return self._browsing is not None

    @property
    def file_word(self) -> str | None:
        """The `@word` that is being written, if one is."""
        row, column = self.cursor_location
        return file_word(self.document.get_line(row)[:column])

    # ---------------------------------------------------------------- commands

    def can_have_back(self, message: UserMessage) -> bool:
        """Whether all of a message would be in the prompt again: images only where they were put in here."""
        text = text_of(message.content)
        images = self.chips.images_in(self._with_chips.get(text, ""))
        return len(images) == sum(isinstance(block, ImageContent) for block in message.content)

    def remember(self, texts: Iterable[str]) -> None:
        """Have the history end with these: the prompts of a session, oldest first."""
        self._session = [text for text in texts if text.strip()]
        self._browsing = None

    def earlier(self) -> list[str]:
        """All earlier prompts, oldest first, each once."""
        texts = [*self._kept.texts, *self._session]
        return list(dict.fromkeys(reversed(texts)))[::-1]

    def put_back(self, texts: Iterable[str]) -> None:
        """Put texts before what is written now, so that neither is lost."""
        parts = [self._with_chips.get(text) or self._written(text) for text in texts]
        if not any(parts):
            return
        self.write("\n\n".join([*parts, self.text] if self.text.strip() else parts))

    def bring(self, text: str) -> None:
        """Show an earlier prompt in the place of what is written."""
        self.write(self._written(text))

    def begin(self, text: str) -> None:
        """Write the beginning of a line, unless something is written already: then before that."""
        self.write(text + self.text)

    def take_draft(self) -> str:
        """What is written, with pastes unfolded, leaving the prompt empty."""
        written = self.text.strip()
        text = self.chips.unfold(written).strip()
        if text != written or self.chips.images_in(text):
            self._with_chips[text] = written
        self.write("")
        self._browsing = None
        return text

    def forget_edits(self) -> None:
        """Begin anew: undo goes back no further than this."""
        self.history.clear()

    def take(self) -> str:
        """The same, of what is sent or thrown away: it enters the history."""
        text = self.take_draft()
        self._session = [*self._session, text] if text else self._session
        try:
            self._kept.add(self.chips.spelled(text))
        except StorageError as error:
            self.post_message(self.NotKept(str(error)))
        return text

    # ---------------------------------------------------------------- keys

    def action_send(self) -> None:
        if self._completes():
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
        if self._chosen:
            self._complete()
        elif self.running:
            self._submit("follow_up")

    def action_newline(self) -> None:
        self.insert("\n", maintain_selection_offset=False)

    async def action_up(self) -> None:
        if self._chosen:
            self._hints.move(-1)
        elif self.waiting and not self.text:
            await self.screen.run_action("queue")
        elif self.browsing or self.cursor_at_start_of_text:
            self._browse(-1)
        else:
            self.action_cursor_up()

    def action_down(self) -> None:
        if self._chosen:
            self._hints.move(1)
        elif self.browsing:
            self._browse(1)
        else:
            self.action_cursor_down()

    async def _on_key(self, event: events.Key) -> None:
        """Run keys in the order in which they were typed."""
        if passed_on(self, event):
            return
        action = taken(event, self._actions)
        if action is not None:
            self.begin_key()
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
            self.write(chosen)
        return bool(chosen)

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        self.paste(event.text)

    def paste(self, text: str) -> None:
        """Take in a text from elsewhere: as it is, as a chip, or, if it is an API key, not at all."""
        found = find_key(text)
        if found is not None and found[0] == text.strip():
            self.post_message(self.KeyCaught(*found, pasted=True))
            return
        image = pasted_image(text) if self.takes_images else None
        if image is not None:
            self.attach(image)
            return
        text = sanitise(text.replace("\r\n", "\n").replace("\r", "\n"))
        if text.count("\n") >= FOLD_LINES or len(text) > FOLD_CHARACTERS:
            text = self.chips.fold(text)
        self._put(text)

    def attach(self, image: Path) -> None:
        """Put the chip of an image where the cursor is."""
        self._put(self.chips.attach(image))

    # ---------------------------------------------------------------- inside

    def _put(self, text: str) -> None:
        start, end = self.selection
        self.replace(text, start, end, maintain_selection_offset=False)

    def _submit(self, delivery: Delivery) -> None:
        found = find_key(self.chips.unfold(self.text))
        if found is not None:
            self.post_message(self.KeyCaught(*found, pasted=False))
            return
        images = self.chips.images_in(self.text)
        if text := self.take():
            self.post_message(self.Submitted(text, delivery, images))

    @property
    def _chosen(self) -> str:
        """The completion under the cursor, of what is written now: what was found for less is none."""
        if self._hints.about != self.text:
            self._find_hints()
        return self._hints.chosen if self._hints.about == self.text else ""

    def _completes(self) -> bool:
        """Whether Enter takes the completion. What is typed of an argument counts as it stands."""
        chosen = self._chosen
        if " " in chosen and not chosen.startswith("@") and not self._hints.moved:
            return False
        written = self.file_word if chosen.startswith("@") else self.text
        return bool(chosen) and written not in self._hints.lines

    def _complete(self) -> None:
        """Write the chosen completion; behind a command goes its argument, behind a file the next word."""
        chosen = self._hints.chosen
        if chosen.startswith("@"):
            row, column = self.cursor_location
            start = (row, column - len(self.file_word or ""))
            end = "" if chosen.endswith("/") else " "
            self.replace(chosen + end, start, (row, column), maintain_selection_offset=False)
        else:
            self.write(chosen if " " in chosen else f"{chosen} ")

    def _suggested(self, character: str | None) -> str:
        if character is None or character not in "123456789":
            return ""
        at = int(character) - 1
        return self.suggestions[at] if at < len(self.suggestions) else ""

    def _browse(self, by: int) -> None:
        """Go through the earlier prompts; past the latest one is what was being written."""
        if self._browsing is None:
            self._history, self._draft = self.earlier(), self.text
        at = (len(self._history) if self._browsing is None else self._browsing) + by
        if at < 0 or not self._history:
            return
        back = at >= len(self._history)
        self.write(self._draft if back else self._written(self._history[at]))
        self._browsing = None if back else at
        if by < 0:
            self.move_cursor((0, 0) if "\n" in self.text else self.document.end)

    def _has_images(self, text: str) -> bool:
        """Whether the marks of images in a text were put in here."""
        return bool(self.chips.images_in(self._with_chips.get(text, "")))

    def _written(self, text: str) -> str:
        """A text as it comes back: to be edited, unless each key would lay out far too much again."""
        text = sanitise(text if self._has_images(text) else self.chips.disarm(text))
        return text if len(text) <= MOST_CHARACTERS else self.chips.fold(text)
