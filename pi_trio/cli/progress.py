"""What goes on, for a person who watches standard error; a file or a pipe gets nothing of it."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from pi_trio.cli.chat_text import ChatText
from pi_trio.cli.words import tell
from pi_trio.events import AgentEvent, AutoRetryStart, CompactionStart, ToolExecutionStart

__all__ = ["Progress"]

_SHOWN = (ToolExecutionStart, AutoRetryStart, CompactionStart)


class Progress:
    """Tells of calls, retries and compactions, a line each."""

    def __init__(self) -> None:
        self._text = ChatText()

    @staticmethod
    def say(sentence: str) -> None:
        """Tell something, if somebody watches."""
        if sentence and sys.stderr is not None and sys.stderr.isatty():
            tell(sentence)

    def events(self, events: Iterable[AgentEvent]) -> None:
        """Tell of those that take long."""
        for event in events:
            if isinstance(event, _SHOWN):
                self.say(self._text.event(event).strip())
