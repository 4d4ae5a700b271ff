"""What the keys of the tree do: some ask something first, and none stops a turn without asking once."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from pi_tui.theme import Theme

if TYPE_CHECKING:
    from pi_tui.screens.view import SessionView
    from pi_tui.store import SessionStore
    from pi_tui.tree_rows import Row
    from pi_tui.widgets.session_tree import Choice

__all__ = ["TreeKeys"]


class TreeKeys:
    """Has the screen's `work` do what was chosen."""

    def __init__(self, screen: SessionView, theme: Theme) -> None:
        self._screen = screen
        self._theme = theme
        self._work = screen.work.tree

    def run(self, what: Choice, row: Row | None) -> None:
        """Do something with a row."""
        screen, work = self._screen, self._work
        if what == "back":
            screen.do(work.back())
        elif row is None:
            screen.tell("there is nothing here yet")
        elif what in ("go", "summarise", "instruct", "branch"):
            if screen.stepping.may_stop(f"{what} {row.id}"):
                self._move(what, row)
        elif what in ("fork", "clone"):
            screen.do(work.fork(row) if what == "fork" else work.clone(row))
        elif what == "label":
            screen.do(self._label(row))
        elif what == "copy":
            screen.do(self._copy(row))
        else:
            screen.do(self._export(row))

    def _move(self, what: Choice, row: Row) -> None:
        if what == "instruct":
            self._screen.do(self._instruct(row))
        else:
            target = row.id if what == "branch" else row.end
            self._screen.do(self._work.go(target, summarise=what == "summarise"))

    async def _instruct(self, row: Row) -> None:
        text = "What should the summary of the branch that you leave look at in particular?"
        wanted = await self._ask("go there with a summary", text)
        if wanted is not None:
            await self._work.go(row.end, summarise=True, instructions=wanted.strip())

    async def _label(self, row: Row) -> None:
        now = self._store.labels.get(row.id, "")
        label = await self._ask("label", "An empty one takes it away.", now)
        if label is not None and label.strip() != now:
            await self._work.label(row, label)

    async def _copy(self, row: Row) -> None:
        text = await self._work.text(row)
        self._screen.tell(f"{len(text):,} characters {await self._screen.clipping.put(text)}")

    async def _export(self, row: Row) -> None:
        text = (
            "The ending of the name says how: .md for reading, .jsonl for other programs, both of the "
            "branch; .html has all branches and opens here. It is not encrypted, and has all that was said."
        )
        name = f"session-{PurePath(self._store.session.id).name}-{PurePath(row.end).name}.md"
        path = await self._ask("export this branch to a file", text, name)
        if path is not None and path.strip():
            await self._work.export(row, path.strip())

    @property
    def _store(self) -> SessionStore:
        live = self._screen.live
        assert live is not None  # noqa: S101  # there are keys of a tree only with a session
        return live.store

    async def _ask(self, title: str, text: str, value: str = "") -> str | None:
        from pi_tui.screens.text import TextScreen

        screen = TextScreen(title, text, self._theme, self._store.clock, value=value)
        return await self._screen.app.push_screen_wait(screen)
