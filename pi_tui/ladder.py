"""What Esc, ctrl+c and ctrl+d do now: pure, so that the status line can say it beforehand."""

from __future__ import annotations

from enum import Enum

from attrs import frozen

__all__ = ["Situation", "Step", "clear_step", "escape_step", "exit_step"]


class Step(Enum):
    """One rung. The value is how the status line names it; empty is not worth naming."""

    DISARM = "keep on"
    CLOSE_LIST = "close list"
    STOP_EDITING = "leave it as it was"
    END_SEARCH = "end search"
    CLOSE_FIND = "close find"
    UNSELECT = "select nothing"
    LEAVE_PANE = "back to prompt"
    COPY = "copy"
    TAKE_BACK = "take back what is unsent"
    STOP_SHELL = "stop command"
    STOP_SUMMARY = "stop summary"
    ABORT = "stop turn"
    STOPPING = "stopping …"
    CLEAR = "clear prompt"
    ASK_QUIT = "press again to quit"
    QUIT = "quit"
    NOTHING = ""


@frozen(kw_only=True)
class Situation:
    """All that the rungs depend on. `armed` is the question that the next press would answer.

    `unsent` says that texts wait for their server to be there again, `listing` that completions
    are shown, `searching` that the pane is searched, `finding` that something is looked for in the
    stream, `selected` that text is selected, `stoppable` that the call in the tool pane runs, and
    `owed` that an empty Enter would continue the turn. `summarising` goes with or without a run,
    `shell` is a command of the user. `in_queue`: the keys go to the messages that wait; `editing`:
    one of them is in the prompt. The pane is `reading` when the cursor is in the stream.
    """

    pane: str = "stream"
    running: bool = False
    unsent: bool = False
    summarising: bool = False
    shell: bool = False
    stopping: bool = False
    listing: bool = False
    in_queue: bool = False
    editing: bool = False
    searching: bool = False
    finding: bool = False
    selected: bool = False
    stoppable: bool = False
    owed: bool = False
    draft: bool = False
    armed: str = ""

    @property
    def in_pane(self) -> bool:
        """Whether the keys go to another pane than the stream and its prompt."""
        return self.pane != "stream"

    @property
    def busy(self) -> bool:
        """Whether the agent works."""
        return self.running or self.summarising


def escape_step(now: Situation) -> Step:
    """Esc: take a question back, close the list, leave the pane, then stop what goes on."""
    if now.armed:
        return Step.DISARM
    if now.listing:
        return Step.CLOSE_LIST
    if now.selected:
        return Step.UNSELECT
    if now.finding:
        return Step.CLOSE_FIND
    if now.editing:
        return Step.STOP_EDITING
    if now.searching:
        return Step.END_SEARCH
    if now.in_pane:
        return Step.LEAVE_PANE
    stopping = _stopping(now)
    return Step.LEAVE_PANE if now.in_queue and stopping is Step.NOTHING else stopping


def _stopping(now: Situation) -> Step:
    """What the user began last is stopped first."""
    if now.unsent:
        return Step.TAKE_BACK
    if now.stopping:
        return Step.STOPPING
    if now.shell:
        return Step.STOP_SHELL
    if now.running:  # with the summary that its turn may be waiting for
        return Step.ABORT
    return Step.STOP_SUMMARY if now.summarising else Step.NOTHING


def clear_step(now: Situation) -> Step:
    """ctrl+c: copy what is selected; else clear the prompt, stop what goes on, ask, quit. Never at once."""
    if now.selected:
        return Step.COPY
    if now.draft:
        return Step.CLEAR
    if (now.busy or now.shell) and not now.stopping:
        return _stopping(now)
    return Step.QUIT if now.armed == "quit" else Step.ASK_QUIT


def exit_step(now: Situation) -> Step:
    """ctrl+d on an empty prompt: quit, after a question if that would stop a run."""
    if now.draft:
        return Step.NOTHING
    return Step.ASK_QUIT if (now.busy or now.shell) and now.armed != "quit" else Step.QUIT
