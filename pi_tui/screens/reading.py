"""The part of the main screen that is about reading: finding, selecting and copying."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from textual.screen import Screen

from pi_tui.items.words import plural
from pi_tui.layout import Pane

if TYPE_CHECKING:
    from pi_tui.live import LiveSession
    from pi_tui.screens.finding import Finding
    from pi_tui.widgets.body import Body
    from pi_tui.widgets.find_bar import FindBar
    from pi_tui.widgets.lines import Copied

__all__ = ["ReadingScreen"]


class ReadingScreen(Screen[None]):
    """The panes are made later, so everything here may come before they are there."""

    def __init__(self) -> None:
        super().__init__()
        self._body: Body | None = None
        self._finding: Finding | None = None
        self._pane: Pane = "stream"

    @property
    @abstractmethod
    def live(self) -> LiveSession | None:
        """The session that is shown."""

    @abstractmethod
    def tell(self, message: str) -> None:
        """Say something for a moment."""

    @abstractmethod
    def do(self, task: Coroutine[Any, Any, None]) -> None:
        """Run something beside the keys."""

    @abstractmethod
    def _focus_pane(self, pane: Pane, *, whole: bool = False) -> None: ...

    @abstractmethod
    def _arrange(self) -> None: ...

    @abstractmethod
    def _refresh_chrome(self) -> None: ...

    def action_find(self) -> None:
        if self._finding is not None:
            if self._pane in ("tree", "tools"):
                self._focus_pane("stream")
            self._finding.open()
            self._refresh_chrome()

    def on_find_bar_changed(self, event: FindBar.Changed) -> None:
        """Something is looked for."""
        if self._finding is not None and self.live is not None:
            self._finding.look_for(event.text, self.live)

    def on_find_bar_next(self, event: FindBar.Next) -> None:
        """A key of the find bar."""
        if self._finding is None:
            return
        if event.read:
            self._focus_pane("reading")
        else:
            self._finding.go(event.by)

    def on_stream_find(self) -> None:
        """A key of the stream."""
        self.action_find()

    def on_selectable_selecting(self) -> None:
        """What Esc and ctrl+c do has changed."""
        self._refresh_chrome()

    def on_copied(self, event: Copied) -> None:
        """A key of a pane."""
        self.do(self._copy(event.text))

    async def _copy_selected(self) -> None:
        if self._body is not None:
            await self._copy(self._body.transcript.selected_text())
            self._select_nothing()

    async def _copy(self, text: str) -> None:
        from pi_tui.clipboard import Clipboard

        lines = text.count("\n") + 1
        self.tell(f"{plural(lines, 'line')} {await Clipboard(self._write).copy(text)}")

    def _write(self, sequence: str) -> None:
        driver = self.app._driver  # Textual's own way to a clipboard cannot speak through tmux
        if driver is not None:
            driver.write(sequence)

    def _select_nothing(self) -> None:
        if self._body is not None:
            self._body.transcript.select(None)
            self._refresh_chrome()

    def _end_finding(self) -> None:
        if self._finding is not None and self._finding.active:
            self._finding.close()
            self._arrange()
