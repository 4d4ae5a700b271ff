"""The clipboard: what is copied out of the panes, and what is pasted as an image."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pi_tui.items.words import plural
from pi_tui.pictures import clipboard_image

if TYPE_CHECKING:
    from pi_tui.screens.view import SessionView

__all__ = ["Clipping"]


class Clipping:
    """Copies and pastes for a screen, and has it tell what became of that."""

    def __init__(self, screen: SessionView) -> None:
        self._screen = screen

    async def copy(self, text: str) -> None:
        """Copy a text, and say so."""
        lines = text.count("\n") + 1
        self._screen.tell(f"{plural(lines, 'line')} {await self.put(text)}")

    async def copy_selected(self) -> None:
        """Copy what is selected in the stream, and select nothing any more."""
        panes = self._screen.panes
        if panes.body is not None:
            await self.copy(panes.body.transcript.selected_text())
            panes.select_nothing()

    async def put(self, text: str) -> str:
        """Put a text into the clipboard, and give words about how."""
        from pi_tui.clipboard import Clipboard

        return await Clipboard(self._write).copy(text)

    async def paste_image(self) -> None:
        """An image of the clipboard; if there is none, what was copied here."""
        screen, prompt = self._screen, self._screen.prompt
        image = await asyncio.to_thread(clipboard_image) if prompt.takes_images else None
        if image is not None:
            prompt.attach(image)
        elif screen.app.clipboard:
            prompt.paste(screen.app.clipboard)
        elif prompt.takes_images:
            screen.tell("there is no image in the clipboard")
        else:
            screen.tell("this model takes no images")

    def _write(self, sequence: str) -> None:
        driver = self._screen.app._driver  # Textual's own way to a clipboard cannot speak through tmux
        if driver is not None:
            driver.write(sequence)
