"""The question whether a tool call may run."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from attrs import frozen
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.strip import Strip
from textual.widgets import Input

from pi_trio.approval import Answer, Question
from pi_trio.text import sanitise
from pi_tui.items.diff import diff_strips
from pi_tui.items.paint import Look, one_line, wrapped
from pi_tui.keymap import hint
from pi_tui.screens.dialog import Details, Dialog
from pi_tui.theme import Theme
from pi_tui.widgets.lines import bindings_for

__all__ = ["QuestionScreen", "Reply"]


LONG = 8
"""Lines from which on the end of an argument is shown before all of it: it may be out of view."""

_GAP = re.compile(r"(?<=\S) {9,}")
"""Blanks that push what follows out of sight."""

_INDENTED = re.compile(r"[-+ ] *\d+ {1,40}(?=\S)")
"""What is before the text of a line in a diff: a sign, a number, and the usual blanks."""


@frozen
class Reply:
    """What was answered, and with a no perhaps why. `stop`: the whole turn is to end."""

    answer: Answer = "no"
    reason: str = ""
    stop: bool = False


class QuestionScreen(Dialog[Reply | None]):
    """Shows all of what would run. Gives None when the question was withdrawn meanwhile."""

    DEFAULT_CSS = """
    QuestionScreen Input { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("question")
    answers = frozenset({"answer", "reason"})

    def __init__(
        self, question: Question, theme: Theme, keymap: Mapping[str, str], clock: Callable[[], float]
    ) -> None:
        words = {"app.question.once": "once", "app.question.no": "no", "app.question.reason": "no, because …"}
        if question.rules:
            words["app.question.session"] = "for this session"
        words["app.question.stop"] = "stop turn"
        super().__init__(f"may {one_line(question.tool_name)} run?", hint(words, keymap), theme, clock)
        self.question = question

    def compose(self) -> ComposeResult:
        """The call, the keys, and a line for a reason."""
        yield from super().compose()
        yield Input(placeholder="why not? (enter sends it, esc goes back)")

    def draw(self, look: Look) -> Sequence[Strip]:
        """The reason of the question, the change that would be made, and every argument."""
        asked, theme = self.question, look.theme
        strips = wrapped(_shown(asked.reason), look.width, theme["warning"])
        if asked.preview:
            strips += diff_strips("\n".join(map(_diff_line, asked.preview.split("\n"))), look)
        for name, value in asked.args.items():
            shown = wrapped(f"{_shown(name)}: {_value(value)}", look.width, theme["text"])
            if len(shown) > LONG:
                end = f"{_shown(name)} has {len(shown)} lines and ends with:"
                strips += [*wrapped(end, look.width, theme["warning"]), shown[-1]]
            strips += shown
        if asked.rules:
            rules = _shown(", ".join(asked.rules))
            strips += wrapped(f"for this session would allow {rules}", look.width, theme["muted"])
        return strips

    # ---------------------------------------------------------------- keys

    def action_answer(self, answer: Answer) -> None:
        if self._asking_why:
            self._ask_why(False)
        elif answer != "always" or self.question.rules:
            self.dismiss(Reply(answer))

    def action_reason(self) -> None:
        self._ask_why(True)

    def action_stop(self) -> None:
        self.dismiss(Reply(stop=True))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """The reason is written."""
        self.dismiss(Reply("no", event.value.strip()))

    @property
    def _asking_why(self) -> bool:
        return bool(self.query_one(Input).display)

    def _ask_why(self, asking: bool) -> None:
        self.query_one(Input).display = asking
        self.set_focus(self.query_one(Input) if asking else self.query_one(Details))


def _diff_line(text: str) -> str:
    """A line of a diff; how far its text is indented is no gap."""
    indented = _INDENTED.match(text)
    start = indented.end() if indented else 0
    return text[:start] + _shown(text[start:])


def _shown(text: str) -> str:
    """Text that is approved: nothing of it may be hidden."""
    return _GAP.sub(lambda gap: f" <{len(gap[0])} blanks> ", sanitise(text, show_all=True))


def _value(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return _shown(text if "\n" not in text else f"\n{text}")
