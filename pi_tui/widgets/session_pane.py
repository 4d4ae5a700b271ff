"""The base of the panes: lines that show something of one session at a time."""

from __future__ import annotations

from collections.abc import Mapping

from pi_tui.store import SessionStore
from pi_tui.theme import Theme
from pi_tui.widgets.lines import LineView

__all__ = ["SessionPane"]


class SessionPane(LineView):
    """Shows what `store` has. There is one of each kind on a screen, which its id names."""

    def __init__(
        self,
        store: SessionStore,
        theme: Theme,
        keymap: Mapping[str, str],
        *,
        id: str,  # noqa: A002  # Textual's name
    ) -> None:
        super().__init__(theme, keymap, id=id)
        self.store = store
        self._tick = 0

    def show(self, store: SessionStore) -> None:
        """Show another session."""
        raise NotImplementedError

    def sync(self) -> None:
        """Take over what changed in the store."""
        raise NotImplementedError

    def animate_running(self) -> None:
        """Turn the spinners and count the seconds of what runs."""
        raise NotImplementedError
