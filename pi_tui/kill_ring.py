"""What was killed in the prompt, to be yanked again, as Emacs and shells do it: pure."""

from __future__ import annotations

from collections import deque

__all__ = ["KillRing"]

MOST = 60
"""Kills that are kept."""


class KillRing:
    """The newest kill is yanked first; `older` goes around the others."""

    def __init__(self) -> None:
        self._kills: deque[str] = deque(maxlen=MOST)

    def add(self, text: str, *, before: bool, joined: bool) -> None:
        """Keep a killed text; one that was killed right after another is `joined` to that.

        `before`: it stood before the cursor, so it comes before what it is joined to.
        """
        if not text:
            return
        if joined and self._kills:
            last = self._kills.pop()
            text = text + last if before else last + text
        self._kills.append(text)

    @property
    def current(self) -> str:
        """What is yanked now; empty if nothing was killed."""
        return self._kills[-1] if self._kills else ""

    def older(self) -> str:
        """Go to the kill before, around the end, and give it."""
        self._kills.rotate(1)
        return self.current
