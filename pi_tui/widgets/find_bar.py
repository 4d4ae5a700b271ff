"""The line in which one writes what is looked for in the stream."""

from __future__ import annotations

from collections.abc import Mapping

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Static

from pi_trio.text import sanitise
from pi_tui.keymap import hint, keys_of
from pi_tui.widgets.lines import bindings_for, own_actions, taken

__all__ = ["FindBar"]

_KEYS = {"tui.altScreen.searchNext": "next", "tui.altScreen.searchPrevious": "previous"}


class FindBar(Horizontal):
    """Seen only while it is used. `tell` says how many places there are."""

    DEFAULT_CSS = """
    FindBar { height: 1; display: none; }
    FindBar .label { width: auto; color: $pi-accent; }
    FindBar #found { width: auto; padding: 0 1; color: $pi-muted; }
    FindBar FindInput, FindBar FindInput:focus {
        width: 1fr; height: 1; border: none; padding: 0; background: transparent;
    }
    """

    class Changed(Message):
        """Something else is looked for."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Next(Message):
        """To the next place, or the one before; with `read` into the stream as well."""

        def __init__(self, by: int, *, read: bool = False) -> None:
            super().__init__()
            self.by = by
            self.read = read

    def __init__(self, keymap: Mapping[str, str]) -> None:
        super().__init__()
        self._keymap = keymap

    def compose(self) -> ComposeResult:
        """A label, the words, and what was found."""
        yield Static(" find ", classes="label", markup=False)
        yield FindInput(self._keymap)
        yield Static("", id="found", markup=False)

    def open(self) -> None:
        """Be seen, with what was looked for before."""
        self.display = True
        entry = self.query_one(FindInput)
        entry.focus()
        entry.select_all()

    def close(self) -> None:
        """Be gone."""
        self.display = False

    def tell(self, found: str) -> None:
        """Say what was found, and how to go on."""
        keys = hint(_KEYS, self._keymap)
        self.query_one("#found", Static).update(f"{found} · {keys}" if found else keys)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Every letter counts."""
        event.stop()
        self.post_message(self.Changed(sanitise(event.value, keep_newlines=False)))


class FindInput(Input):
    """Runs its own keys as they come, in the order in which they were typed."""

    BINDINGS = bindings_for("find")

    def __init__(self, keymap: Mapping[str, str]) -> None:
        super().__init__(compact=True, select_on_focus=False)
        self.cursor_blink = False
        own = {key.action.partition("(")[0] for key in keys_of("find")}
        bound = own_actions(self, keymap).items()
        self._actions = {key: action for key, action in bound if action.partition("(")[0] in own}

    async def _on_key(self, event: events.Key) -> None:
        action = taken(event, self._actions)
        if action is not None:
            await self.run_action(action)
        else:
            await super()._on_key(event)

    def action_find_next(self, by: int) -> None:
        """See the key table."""
        self.post_message(FindBar.Next(by))

    def action_read(self) -> None:
        """See the key table."""
        self.post_message(FindBar.Next(0, read=True))
