"""What Esc, ctrl+c and ctrl+d do on the main screen, as the ladder says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pi_tui.ladder import Situation, Step
from pi_tui.widgets.hints import Hints
from pi_tui.widgets.queue import QueueList

if TYPE_CHECKING:
    from pi_tui.screens.view import SessionView

__all__ = ["Stepping"]


class Stepping:
    """Tells the ladder how things stand on a screen, and takes the step that it names."""

    def __init__(self, screen: SessionView) -> None:
        self._screen = screen

    @property
    def situation(self) -> Situation:
        """How things stand."""
        screen, work, panes = self._screen, self._screen.work, self._screen.panes
        store = work.live.store if work.live is not None else None
        return Situation(
            pane=panes.current,
            running=work.sending or (store is not None and store.running),
            unsent=bool(work.unsent),
            summarising=work.summarising or (store is not None and store.summarising),
            shell=store is not None and store.shell is not None and store.shell.running,
            stopping=work.stopping,
            listing=bool(screen.query_one(Hints).chosen),
            finding=panes.finding,
            selected=panes.selected,
            stoppable=panes.stoppable,
            in_queue=screen.query_one(QueueList).has_focus,
            editing=work.queueing.editing is not None,
            searching=panes.searching,
            draft=bool(screen.prompt.text),
            owed=store is not None and store.owed,
            armed=screen.telling.armed,
        )

    def may_stop(self, what: str) -> bool:
        """Whether a turn that runs may be stopped for this: it is asked about once."""
        return not self.situation.running or self._screen.telling.confirmed(what, "this stops the turn")

    def take(self, step: Step) -> None:
        """Do what a step means."""
        screen, work, panes = self._screen, self._screen.work, self._screen.panes
        match step:
            case Step.DISARM:
                screen.telling.disarm()
            case Step.CLOSE_LIST:
                screen.completing.close()
            case Step.CLOSE_FIND:
                panes.end_finding()
            case Step.UNSELECT:
                panes.select_nothing()
            case Step.COPY:
                screen.do(screen.clipping.copy_selected())
            case Step.STOP_EDITING:
                work.queueing.stop()
                screen.refresh_chrome()
            case Step.END_SEARCH:
                panes.end_search()
            case Step.LEAVE_PANE:
                panes.turn_to("stream")
            case Step.TAKE_BACK:
                work.take_back()
            case Step.ABORT:
                screen.do(work.stop())
            case Step.STOP_SUMMARY:
                screen.do(work.stop_summary())
            case Step.STOP_SHELL:
                screen.do(work.stop_shell())
            case Step.CLEAR:
                screen.prompt.take()
            case Step.ASK_QUIT:
                screen.telling.confirmed("quit", "quit")
            case Step.QUIT:
                screen.leave()
            case Step.STOPPING | Step.NOTHING:
                pass
