"""The list of sessions: those that are open and how they stand, and the files, to be looked after."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from attrs import evolve, frozen
from textual import events, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Input

from pi_trio.errors import PiError
from pi_tui.items.paint import one_line
from pi_tui.keymap import hint
from pi_tui.open_sessions import State, state_of
from pi_tui.screens.dialog import Composed
from pi_tui.screens.pick import searched
from pi_tui.session_rows import SessionRow, threaded
from pi_tui.theme import Theme
from pi_tui.widgets.chrome import KeyRows, Rule
from pi_tui.widgets.lines import bindings_for
from pi_tui.widgets.session_list import Preview, SessionList

if TYPE_CHECKING:
    from pi_tui.live import LiveSession
    from pi_tui.offered import Offered
    from pi_tui.open_sessions import OpenSessions

__all__ = ["Choice", "SessionsScreen"]

ROOMY = 18
"""Lines of a window from which on the end of the chosen session is shown."""

_WORDS = {
    "app.sessions.open": "open",
    "app.session.rename": "rename",
    "app.session.delete": "delete",
    "app.session.copyTo": "copy to a folder",
    "app.session.toggleSort": "threads",
    "app.session.toggleScope": "all folders",
    "app.session.close": "close",
}


@frozen
class Choice:
    """A session to be shown: one that is open, a file, or a copy of a file in another `folder`."""

    row: SessionRow
    folder: str = ""


class SessionsScreen(Composed[Choice | None]):
    """Letters search; everything else is done with the keys of the table. `close` ends an open session."""

    DEFAULT_CSS = """
    SessionsScreen { background: ansi_default; layout: vertical; }
    SessionsScreen > * { background: ansi_default; }
    SessionsScreen Input { display: none; }
    SessionsScreen #list { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("sessions")

    def __init__(
        self,
        opened: OpenSessions,
        offered: Offered,
        close: Callable[[LiveSession], Coroutine[Any, Any, None]],
        theme: Theme,
        keymap: Mapping[str, str],
        home: str,
    ) -> None:
        super().__init__()
        self._opened = opened
        self._offered = offered
        self._close = close
        self._theme = theme
        self._keys = hint(_WORDS, keymap)
        self._home = home
        self._words = ""
        self._everywhere = False
        self._by_thread = True
        self._doomed = ""
        self._asked = ""
        self._rows: list[SessionRow] = []

    def compose(self) -> ComposeResult:
        """Title, list, preview, keys, and a line to write in."""
        yield Rule(self._theme, id="title")
        yield SessionList(self._theme, self._home, id="list")
        yield Rule(self._theme, id="about")
        yield Preview(self._theme, id="preview")
        yield KeyRows(self._theme, id="said")
        yield Input()

    def on_mount(self) -> None:
        """Show what is open at once; the files come."""
        self._list.focus()
        self._say("")
        self._show(())
        self._find()

    def on_resize(self, event: events.Resize) -> None:
        """In a small window the list needs the lines."""
        self.query_one(Preview).display = event.size.height >= ROOMY
        self.query_one("#about").display = event.size.height >= ROOMY

    @property
    def _list(self) -> SessionList:
        return self.query_one(SessionList)

    # ---------------------------------------------------------------- finding

    @work(exclusive=True, group="find")
    async def _find(self) -> None:
        """Look for the files; what is typed meanwhile begins anew."""
        self._tell_title("…")
        try:
            kept = await self._offered.sessions(self._words, everywhere=self._everywhere)
        except PiError as error:
            self._say(f"✗ {error}")
            kept = ()
        if self._by_thread and not self._words:
            self._show(threaded(kept))
        else:
            nothing = "nothing has these words" + ("" if self._everywhere else ", in this folder")
            self._show([SessionRow.of(each) for each in kept], nothing)
        self._tell_title(str(len(self._rows)))

    def _show(self, files: Sequence[SessionRow], nothing: str = "") -> None:
        open_ids = {live.id for live in self._opened}
        found = {row.id: row.excerpt for row in files}
        self._rows = [*self._open_rows(found), *(row for row in files if row.id not in open_ids)]
        self._list.show(self._rows, nothing)
        self._look()

    def _open_rows(self, found: Mapping[str, str]) -> list[SessionRow]:
        """Those whose title fits, and those in whose file the words were found: with the excerpt."""
        rows = [_row_of(live, shown=live is self._opened.shown) for live in self._opened]
        wanted = self._words.lower().split()
        return [
            evolve(row, excerpt=found.get(row.id, ""))
            for row in rows
            if row.id in found or all(word in f"{row.title} {row.folder}".lower() for word in wanted)
        ]

    @work(exclusive=True, group="preview")
    async def _look(self) -> None:
        """Show how the chosen session ended."""
        row, preview = self._list.chosen, self.query_one(Preview)
        try:
            preview.show(*(await self._ending(row) if row is not None else ("", "")))
        except PiError as error:
            preview.show("", f"✗ {error}")

    async def _ending(self, row: SessionRow) -> tuple[str, str]:
        """The last prompt and the last answer. A session that is open may have no file yet."""
        live = self._opened.get(row.id)
        if live is not None:
            return "".join(live.store.items.prompts[-1:]), live.store.items.last_answer
        return await self._offered.preview(row.path) if row.path is not None else ("", "")

    def _tell_title(self, count: str) -> None:
        place = "all folders" if self._everywhere else "this folder"
        order = "threads" if self._by_thread and not self._words else "latest first"
        search = f" · {self._words}" if self._words else ""
        self.query_one("#title", Rule).tell(f"sessions · {place} · {order} · {count}{search}", "borderAccent")

    def _say(self, text: str) -> None:
        keys = f"{self._keys} · letters search · esc leave"
        self.query_one(KeyRows).tell(text or keys, "warning" if text else "muted")

    # ---------------------------------------------------------------- keys

    def typed(self, event: events.Key) -> bool:
        """Letters search."""
        words = "" if event.key == "ctrl+u" else searched(event, self._words)
        if words is not None:
            self._search(words)
        return words is not None

    def _search(self, words: str) -> None:
        self._words, self._doomed = words, ""
        self._show([row for row in self._rows if row.state is None])
        self._find()

    def action_move(self, by: int) -> None:
        self._doomed = ""
        self._list.move(by)
        self._say("")
        self._look()

    def action_open(self) -> None:
        if self._asked:
            return
        if (row := self._list.chosen) is not None:
            self.dismiss(Choice(row))

    def action_leave(self) -> None:
        if self._asked:
            self._ask("")
        elif self._doomed:
            self._doomed = ""
            self._say("")
        elif self._words:
            self._search("")
        else:
            self.dismiss(None)

    def action_scope(self) -> None:
        self._everywhere = not self._everywhere
        self._find()

    def action_sort(self) -> None:
        self._by_thread = not self._by_thread
        self._find()

    def action_rename(self) -> None:
        self._ask("rename", "the session's new name (empty takes it away)")

    def action_copy(self) -> None:
        self._ask("copy", "the folder that a copy of this session works in")

    def action_delete(self) -> None:
        row = self._list.chosen
        if row is None or row.path is None:
            return
        if self._doomed != row.path:
            self._doomed = row.path
            self._say(f"delete {one_line(row.title)[:40]}? press again to delete it, esc keeps it")
            return
        self._doomed = ""
        self._do(self._delete(row.path))

    def action_close(self) -> None:
        row = self._list.chosen
        live = self._opened.get(row.id) if row is not None else None
        if live is None or live is self._opened.shown:
            self._say("only a session that is open and not the one behind this list can be closed")
        elif state_of(live) is State.RUNNING and self._doomed != live.id:
            self._doomed = live.id
            self._say("closing it stops its turn: press again, esc keeps it")
        else:
            self._doomed = ""
            self._do(self._close(live))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """What was asked for is written."""
        row, asked = self._list.chosen, self._asked
        self._ask("")
        if row is None or row.path is None:
            return
        if asked == "copy" and event.value.strip():
            self.dismiss(Choice(row, event.value.strip()))
        elif asked == "rename":
            self._do(self._offered.rename(row.path, event.value.strip()))

    # ---------------------------------------------------------------- inside

    def _ask(self, what: str, placeholder: str = "") -> None:
        """Ask for a line about the chosen session; nothing: no more."""
        row, field = self._list.chosen, self.query_one(Input)
        if what and (row is None or row.path is None):
            self._say("this session has no file yet")
            return
        self._asked = what
        field.value, field.placeholder, field.display = "", placeholder, bool(what)
        self.set_focus(field if what else self._list)

    async def _delete(self, path: str) -> None:
        in_trash = await self._offered.delete(path)
        self._say("put into the trash" if in_trash else "deleted; there is no trash here")

    def _do(self, task: Coroutine[Any, Any, None]) -> None:
        """Run something, say what is wrong with it, and look again."""

        async def guarded() -> None:
            self._say("")
            try:
                await task
            except PiError as error:
                self._say(f"✗ {error}")
            self._find()

        self.run_worker(guarded())


def _row_of(live: LiveSession, *, shown: bool) -> SessionRow:
    session = live.store.session
    prompts = live.store.items.prompts
    title = session.name or (prompts[0] if prompts else "(nothing said yet)")
    return SessionRow(
        id=session.id,
        title=title,
        folder=session.cwd,
        path=session.path if live.store.has_file else None,
        state=state_of(live),
        shown=shown,
    )
