"""The terminal of a program that `pi-tui --serve` has started for one tab of a browser; see `web`."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
from typing import Any

from textual.app import App
from textual.drivers import web_driver
from textual.messages import ExitApp

from pi_tui.terminal import KeyParser

__all__ = ["TabDriver"]

web_driver.XTermParser = KeyParser  # type: ignore[attr-defined]  # see `terminal.install`

_TOLD = ("TEXTUAL_DRIVER", "TEXTUAL_FPS", "TEXTUAL_COLOR_SYSTEM", "COLUMNS", "ROWS")
"""What the server tells this program alone: commands would take it for their own."""


class TabDriver(web_driver.WebDriver):
    """Textual's driver for the web. A server that is gone ends the program."""

    def __init__(self, app: App[Any], **options: Any) -> None:
        super().__init__(app, **options)
        self._write = partial(_write_while_read, self.fileno)
        for name in _TOLD:
            os.environ.pop(name, None)

    def run_input_thread(self) -> None:
        """Read what the browser sends, to the end."""
        super().run_input_thread()
        if not self.exit_event.is_set():
            self.send_message(ExitApp())


def _write_while_read(descriptor: int, data: bytes) -> int:
    """Write to the server, and drop what one that is gone does not read."""
    with suppress(BrokenPipeError):
        return os.write(descriptor, data)
    return len(data)
