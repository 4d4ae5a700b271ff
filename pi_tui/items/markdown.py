"""Markdown as it is shown, whole or while it grows.

A text is split into blocks at blank lines (outside fences, before a line that is not
indented) and every block is rendered alone. So the picture of a text does not depend on how
it arrived, and while it streams only its last block is rendered again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import ClassVar

from attrs import define, field, frozen
from markdown_it import MarkdownIt
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown, MarkdownElement
from rich.padding import Padding
from rich.style import Style
from rich.styled import Styled
from rich.syntax import Syntax, SyntaxTheme
from rich.theme import Theme as RichTheme
from textual.strip import Strip

from pi_trio.text import sanitise
from pi_tui.items.paint import BOLD, ITALIC, Budget, Look, indented, painted, render, wrapped
from pi_tui.theme import Theme

__all__ = ["Block", "Growing", "Progress", "forget_colours", "markdown", "split_blocks"]

_CODE_INDENT = "  "

_MARKED = re.compile(r"[*_`#\[\]<>|~&\\]|^[ \t]|  $|^(?:[-+=]|\d+[.)])|https?:", re.MULTILINE)
"""Whether a block can mean anything else than its letters."""


# ------------------------------------------------------------------ splitting


@frozen
class Block:
    """A stretch of a text. It is `complete` when a line that cannot belong to it has begun."""

    begin: int
    end: int
    complete: bool
    in_fence: bool = False


def split_blocks(text: str, start: int = 0) -> Iterator[Block]:
    """The blocks of `text` from `start` on, where a block begins."""
    begin = at = start
    fence, blank = "", False
    while at < len(text):
        stop = text.find("\n", at) + 1 or len(text)
        content = text[at:stop].rstrip()
        bare = content.lstrip()
        if fence:
            fence = "" if bare.startswith(fence) and not bare.strip(fence[0]) else fence
        else:
            if blank and bare and bare == content:
                yield Block(begin, at, complete=True)
                begin = at
            fence = _fence_mark(bare)
        blank = not bare and not fence
        at = stop
    if begin < len(text):
        yield Block(begin, len(text), complete=False, in_fence=bool(fence))


def _fence_mark(bare: str) -> str:
    """The run of signs with which a line opens a fence, or nothing."""
    if bare[:3] not in ("```", "~~~"):
        return ""
    rest = bare.lstrip(bare[0])
    return "" if bare[0] == "`" and "`" in rest else bare[: len(bare) - len(rest)]


# ------------------------------------------------------------------ rendering


def markdown(text: str, look: Look, style: Style) -> list[Strip]:
    """A whole text as strips."""
    return Growing(look, style).strips(text, final=True)


@define
class Growing:
    """A text that grows at its end, as strips. Another look needs a new one."""

    look: Look
    style: Style
    _frozen: list[Strip] = field(factory=list)
    _done: int = 0
    _fence: _OpenFence | None = None

    def strips(self, text: str, *, final: bool = False, budget: Budget | None = None) -> list[Strip]:
        """The strips of `text`, which continues what was given before.

        When the budget is used up the rest is left out, and the budget says so.
        """
        tail: list[Strip] = []
        for block in split_blocks(text, self._done):
            if budget is not None and budget.used_up():
                break
            source = text[block.begin : block.end]
            if block.complete:
                self._extend(self._frozen, self._render(source))
                self._done, self._fence = block.end, None
            elif block.in_fence and not final and _fence_mark(source[:80].split("\n")[0]):
                tail = self._grow_fence(source)
            else:
                tail = self._render(source)
        out = list(self._frozen)
        self._extend(out, tail)
        return out

    def _extend(self, out: list[Strip], block: list[Strip]) -> None:
        if out and block:
            out.append(painted([], self.look.width))
        out.extend(block)

    def _render(self, source: str) -> list[Strip]:
        return _block_strips(source, self.look.width, self.look.theme, self.style)

    def _grow_fence(self, source: str) -> list[Strip]:
        if self._fence is None:
            self._fence = _OpenFence(self.look)
        return self._fence.strips(source)


@lru_cache(maxsize=4096)
def _block_strips(source: str, width: int, theme: Theme, style: Style) -> list[Strip]:
    """One block. Kept, so that a finished answer costs nothing once it was seen streaming."""
    if not _MARKED.search(source):  # most of what is written is plain, and Markdown costs ten times more
        return wrapped(" ".join(source.split("\n")).strip(), width, style)
    content = _Markdown(sanitise(source), _SyntaxColours(theme))
    strips = render(Styled(content, style), width, _rich_theme(theme))
    inked = [at for at, strip in enumerate(strips) if strip.text.strip()]
    return strips[inked[0] : inked[-1] + 1] if inked else []


@define
class Progress:
    """Where drawing one long answer was interrupted: to be given again until it is through."""

    budget: Budget
    growing: dict[int, Growing] = field(factory=dict)


@define
class _OpenFence:
    """A fence without its end, line by line and plain, so that its cost follows what is new."""

    look: Look
    _strips: list[Strip] = field(factory=list)
    _done: int = 0

    def strips(self, source: str) -> list[Strip]:
        self._done = self._done or source.find("\n") + 1 or len(source)
        last = source.rfind("\n") + 1
        if last > self._done:
            self._strips += self._lines(source[self._done : last - 1])
            self._done = last
        rest = source[self._done :]
        return self._strips + self._lines(rest) if rest else self._strips

    def _lines(self, code: str) -> list[Strip]:
        width = self.look.width - len(_CODE_INDENT)
        mark = (_CODE_INDENT, Style())
        return indented(wrapped(code, width, self.look.theme["mdCodeBlock"]), mark, mark)


class _Fence(CodeBlock):
    """A code block: indented, in the theme's colours, without a ground of its own."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = Syntax(str(self.text).rstrip(), self.lexer_name, theme=self.theme, word_wrap=True)
        yield Padding(code, (0, 0, 0, len(_CODE_INDENT)))


class _Heading(Heading):
    """A heading at the left, told by colour and weight."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        yield self.text


class _Markdown(Markdown):
    """Rich's Markdown with one parser for all blocks: making one takes longer than most blocks do."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _Heading,
        "fence": _Fence,
        "code_block": _Fence,
    }

    def __init__(self, source: str, colours: SyntaxTheme) -> None:
        self.markup = source
        self.parsed = _parser().parse(source)
        self.code_theme = colours  # type: ignore[assignment]  # it goes on to Syntax, which takes both
        self.justify = None
        self.style = "none"
        self.hyperlinks = False
        self.inline_code_lexer = None
        self.inline_code_theme = ""


class _SyntaxColours(SyntaxTheme):
    """The theme's syntax tokens, for Pygments' token types (tuples of names, general first)."""

    _TOKENS = (
        (("Comment",), "syntaxComment"),
        (("Keyword",), "syntaxKeyword"),
        (("Name", "Function"), "syntaxFunction"),
        (("Name", "Decorator"), "syntaxFunction"),
        (("Name", "Class"), "syntaxType"),
        (("Name", "Builtin"), "syntaxType"),
        (("Name",), "syntaxVariable"),
        (("Literal", "String"), "syntaxString"),
        (("Literal", "Number"), "syntaxNumber"),
        (("Operator",), "syntaxOperator"),
        (("Punctuation",), "syntaxPunctuation"),
        (("Generic", "Inserted"), "toolDiffAdded"),
        (("Generic", "Deleted"), "toolDiffRemoved"),
    )

    def __init__(self, theme: Theme) -> None:
        self._theme = theme

    def get_style_for_token(self, token_type: tuple[str, ...]) -> Style:
        for known, name in self._TOKENS:
            if token_type[: len(known)] == known:
                return self._theme[name]
        return self._theme["mdCodeBlock"]

    def get_background_style(self) -> Style:
        return Style()


def forget_colours() -> None:
    """The theme has become another: draw everything anew."""
    _block_strips.cache_clear()
    _rich_theme.cache_clear()


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt().enable("strikethrough").enable("table")


@lru_cache(maxsize=4)
def _rich_theme(theme: Theme) -> RichTheme:
    heading = theme["mdHeading"] + BOLD
    styles = {f"markdown.h{level}": heading for level in range(1, 8)}
    styles["markdown.h1"] = heading + Style(underline=True)
    return RichTheme(
        {
            **styles,
            "markdown.strong": BOLD,
            "markdown.em": ITALIC,
            "markdown.code": theme["mdCode"],
            "markdown.code_block": theme["mdCodeBlock"],
            "markdown.block_quote": theme["mdQuote"],
            "markdown.item.bullet": theme["mdListBullet"],
            "markdown.item.number": theme["mdListBullet"],
            "markdown.hr": theme["mdHr"],
            "markdown.link": theme["mdLink"],
            "markdown.link_url": theme["mdLinkUrl"],
            "markdown.table.border": theme["mdHr"],
            "markdown.table.header": BOLD,
        }
    )
