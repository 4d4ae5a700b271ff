"""What Esc, ctrl+c and ctrl+d do now: pure, so that the status line can say it beforehand."""

from __future__ import annotations

from enum import Enum

from attrs import frozen

__all__ = ["Situation", "Step", "clear_step", "escape_step", "exit_step"]


class Step(Enum):
    """One rung. The value is how the status line names it; empty is not worth naming."""

    DISARM = "keep on"
    LEAVE_PANE = "back to prompt"
    ABORT = "stop turn"
    STOPPING = "stopping …"
    CLEAR = "clear prompt"
    ASK_QUIT = "press again to quit"
    QUIT = "quit"
    NOTHING = ""


@frozen(kw_only=True)
class Situation:
    """All that the rungs depend on. `armed` is the question that the next press would answer."""

    pane: str = "stream"
    running: bool = False
    stopping: bool = False
    draft: bool = False
    armed: str = ""

    @property
    def in_pane(self) -> bool:
        """Whether the keys go to another pane than the stream and its prompt."""
        return self.pane != "stream"


def escape_step(now: Situation) -> Step:
    """Esc: take a question back, then leave the pane, then stop the run."""
    if now.armed:
        return Step.DISARM
    if now.in_pane:
        return Step.LEAVE_PANE
    if now.stopping:
        return Step.STOPPING
    return Step.ABORT if now.running else Step.NOTHING


def clear_step(now: Situation) -> Step:
    """ctrl+c: clear the prompt, then stop the run, then ask, then quit. Never quits at once."""
    if now.draft:
        return Step.CLEAR
    if now.running and not now.stopping:
        return Step.ABORT
    return Step.QUIT if now.armed == "quit" else Step.ASK_QUIT


def exit_step(now: Situation) -> Step:
    """ctrl+d on an empty prompt: quit, after a question if that would stop a run."""
    if now.draft:
        return Step.NOTHING
    return Step.ASK_QUIT if now.running and now.armed != "quit" else Step.QUIT
