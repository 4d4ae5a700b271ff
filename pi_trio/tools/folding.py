"""What a terminal would show of a line that was written over and over, as progress bars are."""

from __future__ import annotations

from functools import reduce

__all__ = ["Folding"]

MAX_OPEN_BYTES = 64 * 1024
"""What is kept back of a line that has not ended. What is before that is not written over any more."""


class Folding:
    """Takes bytes as they come and gives them line by line, each in its last state.

    A carriage return goes back to the start of the line, and what follows covers what is
    there. One before a line feed is gone after it, as on a terminal.
    """

    def __init__(self) -> None:
        self._open = b""

    def feed(self, chunk: bytes) -> bytes:
        """Take in the next bytes. Gives what is final now: the lines that have ended."""
        data = self._open + chunk
        end = data.rfind(b"\n") + 1
        done, rest = data[:end], data[end:]
        if b"\r" in done:
            done = b"\n".join(map(_last_state, done.split(b"\n")))
        if b"\r" in rest:
            covered, _, last = rest.rpartition(b"\r")
            rest = _last_state(covered) + b"\r" + last
        if len(rest) > MAX_OPEN_BYTES:
            done, rest = done + rest, b""
        self._open = rest
        return done

    @property
    def open(self) -> bytes:
        """The line that has not ended, as it is now."""
        return _last_state(self._open)


def _last_state(line: bytes) -> bytes:
    return reduce(_covered, line.split(b"\r")) if b"\r" in line else line


def _covered(below: bytes, above: bytes) -> bytes:
    if not above:
        return below
    if b"\x1b" in above + below:  # it erases the line, or its letters cannot be counted
        return above
    shown, hidden = (each.decode("utf-8", "surrogateescape") for each in (above, below))
    return (shown + hidden[len(shown) :]).encode("utf-8", "surrogateescape")
