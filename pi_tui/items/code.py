"""Code in a fence: plain while it arrives, then in colours, a few lines at a time."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any

from attrs import define, field
from rich.style import Style
from rich.syntax import Syntax
from rich.text import Text
from textual.cache import LRUCache
from textual.strip import Strip

from pi_trio.text import sanitise
from pi_tui.items.paint import Budget, Look, folded, indented
from pi_tui.theme import Theme

__all__ = ["INDENT", "Fence", "coloured", "forget_fences", "prepare_colours"]

INDENT = "  "
"""What stands before every line of code."""

STRETCH = 16
"""Lines that are coloured between two looks at the clock."""

_TOKENS = (
    ("Comment", "syntaxComment"),
    ("Keyword", "syntaxKeyword"),
    ("Name.Function", "syntaxFunction"),
    ("Name.Decorator", "syntaxFunction"),
    ("Name.Class", "syntaxType"),
    ("Name.Builtin", "syntaxType"),
    ("Name", "syntaxVariable"),
    ("Literal.String", "syntaxString"),
    ("Literal.Number", "syntaxNumber"),
    ("Operator", "syntaxOperator"),
    ("Punctuation", "syntaxPunctuation"),
    ("Generic.Inserted", "toolDiffAdded"),
    ("Generic.Deleted", "toolDiffRemoved"),
)
"""Pygments' types of tokens, special before general, and the theme's words for them."""

_finished: LRUCache[tuple[str, int, Theme], list[Strip]] = LRUCache(256)
"""Coloured fences. An answer that was seen streaming is drawn again when it is finished."""


_loader = ThreadPoolExecutor(max_workers=1, thread_name_prefix="colours")


@cache
def _loading(language: str) -> Future[object]:
    """Once for each language its rules are put together, which takes as long as a frame: not here."""
    return _loader.submit(_lexer, language)


def prepare_colours() -> None:
    """Have the languages ready that answers have most often."""
    for language in ("python", "bash", "json"):
        _loading(language)


def _lexer(language: str) -> Any:
    return Syntax("", language or "text").lexer


def forget_fences() -> None:
    """The theme has become another."""
    _finished.clear()


def coloured(code: str, language: str, theme: Theme) -> Iterator[Text]:
    """Code as lines of tokens. Reads on only as far as lines are taken."""
    line = Text()
    for token_type, value in _lexed(code, language):
        style = _style(token_type, theme)
        for part, following in pairwise([*value.split("\n"), None]):
            line.append(part or "", style)
            if following is not None:
                yield line
                line = Text()
    if line.plain:  # a lexer ends the last line too
        yield line


def _style(token_type: tuple[str, ...], theme: Theme) -> Style:
    """How a token looks."""
    name = ".".join(token_type)
    for known, token in _TOKENS:
        if name == known or name.startswith(known + "."):
            return theme[token]
    return theme["mdCodeBlock"]


@define
class Fence:
    """One fence, for one look. Its cost follows what is new."""

    look: Look
    _plain: list[Strip] = field(factory=list)
    _done: int = 0
    _closed: bool = False
    _colouring: Iterator[list[Strip]] | None = None
    _coloured: list[Strip] = field(factory=list)

    def strips(self, source: str, *, is_open: bool, budget: Budget | None = None) -> list[Strip]:
        """The fence from its first line on, which continues what was given before.

        What the budget left without colours stands there plain; the budget says so.
        """
        if is_open:
            return self._grow(source)
        source = source.rstrip()
        key = (source, self.look.width, self.look.theme)
        if (known := _finished.get(key)) is not None:
            return known
        if self._colouring is None:
            if not self._closed:
                self._plain, self._closed = self._lines(_code(source)), True
            language = _language(source)
            if budget is not None and not budget.wait(_loading(language)):
                return self._plain
            self._colouring = self._colour(source, language)
        while budget is None or not budget.used_up():
            more = next(self._colouring, None)
            if more is None:
                _finished[key] = self._coloured
                return self._coloured
            self._coloured = self._coloured + more
        return self._coloured + self._plain[len(self._coloured) :]

    def _grow(self, source: str) -> list[Strip]:
        self._done = self._done or source.find("\n") + 1 or len(source)
        last = source.rfind("\n") + 1
        if last > self._done:
            self._plain += self._lines(source[self._done : last - 1])
            self._done = last
        rest = source[self._done :]
        return self._plain + self._lines(rest) if rest else self._plain

    def _lines(self, code: str) -> list[Strip]:
        style = self.look.theme["mdCodeBlock"]
        return [strip for line in sanitise(code).split("\n") for strip in self._fold(Text(line, style))]

    def _colour(self, source: str, language: str) -> Iterator[list[Strip]]:
        """The lines in colours, a stretch at a time."""
        stretch: list[Strip] = []
        for count, line in enumerate(coloured(sanitise(_code(source)), language, self.look.theme), 1):
            stretch += self._fold(line)
            if count % STRETCH == 0:
                yield stretch
                stretch = []
        yield stretch

    def _fold(self, line: Text) -> list[Strip]:
        strips = folded(line, self.look.width - len(INDENT))
        return indented(strips, (INDENT, Style()), (INDENT, Style()))


def _language(source: str) -> str:
    """What the first line of a fence says."""
    return source.split("\n", 1)[0].strip().lstrip("`~").strip().partition(" ")[0]


def _code(source: str) -> str:
    """What stands between the marks of a fence, without the indent of the fence itself."""
    first, _, rest = source.partition("\n")
    bare = first.lstrip()
    indent, mark = first[: len(first) - len(bare)], bare[:3]
    inside, _, last = rest.rpartition("\n")
    closed = last.strip().startswith(mark) and not last.strip().strip(mark[:1])
    body = (inside if closed else rest).rstrip()
    if not indent:
        return body
    return "\n".join(line.removeprefix(indent) for line in body.split("\n"))


def _lexed(code: str, language: str) -> Iterator[tuple[Any, str]]:
    lexer = _lexer(language)
    return iter((((), code),)) if lexer is None else iter(lexer.get_tokens(code))
