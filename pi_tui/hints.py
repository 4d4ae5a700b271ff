"""What the prompt may become: commands after a slash, files after an @. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from pi_trio.remote.interface import CommandInfo

__all__ = [
    "Hint",
    "argument_hints",
    "command_hints",
    "file_hints",
    "file_word",
    "wants_argument",
]

_FILE_WORD = re.compile(r'(?:^|\s)(@(?:"[^"\n]*|[^\s"]*))$')


@frozen
class Hint:
    """A line that the prompt may become, or a word after an `@`, and what it would do."""

    line: str
    note: str = ""


def wants_argument(text: str) -> bool:
    """Whether the command is written and something of it is still to come."""
    return text.startswith("/") and " " in text and "\n" not in text


def command_hints(text: str, commands: Iterable[CommandInfo]) -> list[Hint]:
    """The commands whose names hold what is written; those that begin so come first."""
    if not text.startswith("/") or any(character.isspace() for character in text):
        return []
    wanted = text[1:].lower()
    found = [each for each in commands if wanted in each.name.lower()]
    found.sort(key=lambda each: not each.name.lower().startswith(wanted))
    return [Hint(f"/{each.name}", _note(each)) for each in found]


def argument_hints(text: str, lines: Sequence[str]) -> list[Hint]:
    """The completions of a command's argument; none when it is whole."""
    return [] if text in lines else [Hint(each) for each in lines]


def file_word(before: str) -> str | None:
    """The `@word` that the text before the cursor ends in; None if it does not."""
    found = _FILE_WORD.search(before)
    return found[1] if found else None


def file_hints(word: str, paths: Sequence[str]) -> list[Hint]:
    """The files that a word may name; one with blanks stands in quotes. None when it is whole."""
    hints = [Hint(f'@"{path}"' if re.search(r"\s", path) else f"@{path}") for path in paths]
    return [] if len(hints) == 1 and hints[0].line == word else hints


def _note(info: CommandInfo) -> str:
    return "  ".join(part for part in (info.argument_hint, info.description) if part)
