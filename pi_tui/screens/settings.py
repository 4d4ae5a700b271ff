"""The settings as a form: all rows of the settings table, searched by typing, changed in place."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.strip import Strip
from textual.widgets import Input

from pi_trio.errors import PiError
from pi_trio.resources.setting_changes import Scope, SettingInfo, parse_value
from pi_tui.items.paint import BOLD, Look, Span, line, wrapped
from pi_tui.screens.dialog import Details, Dialog
from pi_tui.screens.pick import PickScreen, matching, searched
from pi_tui.theme import Theme
from pi_tui.widgets.chrome import Rule

__all__ = ["Change", "SettingsScreen"]

Change = Callable[[Scope, str, Any], Awaitable[None]]
"""Writes a setting into the file of a scope; None takes it out. Raises `PiError`s."""

KEY_CELLS = 34

_MARKS: Mapping[Scope | None, str] = {None: "default", "global": "yours", "project": "folder"}


class SettingsScreen(Dialog[frozenset[str]]):
    """Gives the keys that were changed. What is not right is said under its row, and nothing is written."""

    DEFAULT_CSS = """
    SettingsScreen Input { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", show=False),
        Binding("down", "move(1)", show=False),
        Binding("pageup", "move(-10)", show=False),
        Binding("pagedown", "move(10)", show=False),
        Binding("enter", "change", show=False),
        Binding("delete", "reset", show=False),
        Binding("tab", "scope", show=False, priority=True),
        Binding("escape,ctrl+c,f2", "leave", show=False, priority=True),
    ]

    def __init__(
        self,
        infos: Sequence[SettingInfo],
        change: Change,
        theme: Theme,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        hint = "↑ ↓ enter change · del default · tab yours or folder's · letters search · esc done"
        super().__init__("settings", hint, theme, clock, deaf=0.0)
        self._infos = {info.key: info for info in infos}
        self._change = change
        self._scope: Scope = "global"
        self._wanted = ""
        self._found = list(self._infos)
        self._at = 0
        self._wrong = ""
        self._changed: set[str] = set()

    def compose(self) -> ComposeResult:
        """The rows, the keys, and a line to write a value in."""
        yield from super().compose()
        yield Input(placeholder="nothing: the default")

    def on_mount(self) -> None:
        """Which file is changed stands in the title."""
        self._refresh()

    # ---------------------------------------------------------------- drawing

    def draw(self, look: Look) -> Sequence[Strip]:
        """A row for each setting; under the chosen one what it means, or what is wrong."""
        strips: list[Strip] = []
        for at, key in enumerate(self._found):
            strips += self._row(self._infos[key], look, chosen=at == self._at)
        return strips or [line(look.width, [("  there is no such setting", look.theme["muted"])])]

    def _row(self, info: SettingInfo, look: Look, *, chosen: bool) -> list[Strip]:
        theme = look.theme
        plain = info.scope is None
        left: list[Span] = [
            ("› " if chosen else "  ", theme["accent"]),
            (f"{info.key:<{KEY_CELLS}} ", theme["text"] + BOLD if chosen else theme["text"]),
            (_shown(info.value), theme["muted"] if plain else theme["accent"]),
        ]
        ground = theme["selectedBg"] if chosen else None
        row = line(look.width, left, [(f"{_MARKS[info.scope]} ", theme["muted"])], ground)
        if not chosen:
            return [row]
        below = (
            wrapped(f"    ✗ {self._wrong}", look.width, theme["error"])
            if self._wrong
            else wrapped(f"    {_told(info)}", look.width, theme["muted"])
        )
        return [row, *below]

    def _refresh(self) -> None:
        file = "your settings" if self._scope == "global" else "this folder's settings"
        title = f"settings · {file}" + (f" · {self._wanted}" if self._wanted else "")
        self.query_one(Rule).tell(title, "borderAccent")
        details = self.query_one(Details)
        details.sync()
        details.show_line(self._at + 1)
        details.show_line(self._at)

    # ---------------------------------------------------------------- keys

    @property
    def _info(self) -> SettingInfo | None:
        return self._infos[self._found[self._at]] if self._found else None

    @property
    def _writing(self) -> bool:
        return bool(self.query_one(Input).display)

    def typed(self, event: events.Key) -> bool:
        """Letters search."""
        wanted = searched(event, self._wanted)
        if wanted is not None:
            self._search(wanted)
        return wanted is not None

    def action_move(self, by: int) -> None:
        if not self._writing:
            self._at = min(max(self._at + by, 0), max(len(self._found) - 1, 0))
            self._wrong = ""
            self._refresh()

    def action_scope(self) -> None:
        if not self._writing:
            self._scope = "project" if self._scope == "global" else "global"
            self._wrong = ""
            self._refresh()

    def action_leave(self) -> None:
        if self._writing:
            self._write(False)
        else:
            self.dismiss(frozenset(self._changed))

    def action_reset(self) -> None:
        if self._info is not None and not self._writing:
            self.run_worker(self._keep(self._info, None))

    def action_change(self) -> None:
        info = self._info
        if info is None or self._writing:
            return
        if self._scope not in info.scopes:
            self._complain(f"{info.key} cannot be set for a folder: tab goes to your own settings")
        elif info.kind == "flag":
            self.run_worker(self._keep(info, not info.value))
        elif info.kind == "choice":
            self.run_worker(self._choose(info))
        else:
            self.query_one(Input).value = _written(info.value)
            self._write(True)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """A value is written."""
        event.stop()
        info = self._info
        if info is None:
            return
        try:
            value = parse_value(info, event.value)
        except PiError as error:
            self._complain(str(error))
            return
        self._write(False)
        self.run_worker(self._keep(info, value))

    # ---------------------------------------------------------------- inside

    def _search(self, wanted: str) -> None:
        keys, meanings = list(self._infos), [info.meaning for info in self._infos.values()]
        self._wanted, self._at, self._wrong = wanted, 0, ""
        self._found = [keys[index] for index in matching(wanted, keys, meanings)]
        self._refresh()

    def _write(self, writing: bool) -> None:
        field = self.query_one(Input)
        field.display = writing
        self._wrong = ""
        self._refresh()
        self.set_focus(field if writing else self.query_one(Details))

    def _complain(self, text: str) -> None:
        self._wrong = text
        self._refresh()

    async def _choose(self, info: SettingInfo) -> None:
        chosen = info.choices.index(info.value) if info.value in info.choices else 0
        picked = PickScreen(
            info.key, info.choices, self._theme, self._clock, text=info.meaning, chosen=chosen, deaf=0.0
        )
        index = await self.app.push_screen_wait(picked)
        if index is not None:
            await self._keep(info, info.choices[index])

    async def _keep(self, info: SettingInfo, value: Any) -> None:
        """Write a value into the file, and show it once it is there."""
        try:
            await self._change(self._scope, info.key, value)
        except PiError as error:
            self._complain(str(error))
            return
        self._changed.add(info.key)
        self._infos[info.key] = info.with_value(self._scope, value)
        self._wrong = ""
        self._refresh()


def _told(info: SettingInfo) -> str:
    """What a setting means, and what it may be."""
    may = f" ({', '.join(info.choices)})" if info.choices else ""
    default = "" if info.default is None else f" · default {_shown(info.default)}"
    both = info.values.get("project") is not None and info.values.get("global") is not None
    yours = f" · yours {_shown(info.values['global'])}" if both else ""
    return f"{info.meaning}{may}{default}{yours}"


def _shown(value: Any) -> str:
    return (
        "–" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    )


def _written(value: Any) -> str:
    """A value as one would write it."""
    if isinstance(value, list):
        plain = all(isinstance(each, str) and "," not in each and not each.startswith("[") for each in value)
        return ", ".join(value) if plain else json.dumps(value, ensure_ascii=False)
    return "" if value is None else _shown(value)
