"""Markdown as it is shown, whole or while it grows.

Every block is drawn alone and once; while a text streams only its last block is drawn again,
and that only as often as a small share of the time allows.
"""

from __future__ import annotations

import re
import time
from functools import cache, lru_cache
from typing import ClassVar

from attrs import define, field
from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown, MarkdownElement
from rich.padding import Padding
from rich.style import Style
from rich.styled import Styled
from rich.text import Text
from rich.theme import Theme as RichTheme
from textual.strip import Strip

from pi_trio.text import sanitise
from pi_tui.items.blocks import Block, Splitter
from pi_tui.items.code import INDENT, Fence, coloured, forget_fences
from pi_tui.items.paint import BOLD, ITALIC, Budget, Look, painted, render, wrapped
from pi_tui.items.table import Table
from pi_tui.theme import Theme

__all__ = ["Growing", "Progress", "forget_colours", "markdown"]

TAIL_REST = 4
"""The growing end of a text stays as it is for so many times as long as drawing it took."""

_MARKED = re.compile(r"[*_`#\[\]<>|~&\\]|^[ \t]|  $|^(?:[-+=]|\d+[.)])|https?:", re.MULTILINE)
"""Whether a block can mean anything else than its letters."""


def markdown(text: str, look: Look, style: Style) -> list[Strip]:
    """A whole text as strips."""
    return Growing(look, style).strips(text, final=True)


@define
class Growing:
    """A text that grows at its end, as strips. Another look needs a new one."""

    look: Look
    style: Style
    _splitter: Splitter = field(factory=Splitter)
    _frozen: list[Strip] = field(factory=list)
    _block: Block | None = None
    _last: Block | None = None
    _tail: list[Strip] = field(factory=list)
    _tail_due: float = 0.0
    _fence: Fence | None = None
    _columns: tuple[int, ...] = ()

    def strips(self, text: str, *, final: bool = False, budget: Budget | None = None) -> list[Strip]:
        """The strips of `text`, which continues what was given before.

        When the budget is used up the rest is left out, and the budget says so.
        """
        while (block := self._block or self._splitter.next_complete(text)) is not None:
            self._block = block
            if budget is not None and budget.used_up():
                break
            strips = self._draw(block, text, budget, growing=False)
            if budget is not None and budget.exceeded:  # in a long fence
                self._last, self._tail = block, strips
                break
            self._extend(self._frozen, block, strips)
            self._block, self._last, self._tail, self._fence = None, None, [], None
        else:
            self._draw_end(text, budget, final=final)
        out = list(self._frozen)
        if self._last is not None:
            self._extend(out, self._last, self._tail)
        return out

    def _draw_end(self, text: str, budget: Budget | None, *, final: bool) -> None:
        """Draw what follows the last complete block, unless that was done a moment ago."""
        block, now = self._splitter.rest(text), time.monotonic()
        if block is None:
            return
        if not final and budget is not None and now < self._tail_due and self._last is not None:
            budget.postponed = True
            return
        begun = time.thread_time()
        self._last, self._tail = block, self._draw(block, text, budget, growing=not final)
        self._tail_due = time.monotonic() + TAIL_REST * (time.thread_time() - begun)

    def _draw(self, block: Block, text: str, budget: Budget | None, *, growing: bool) -> list[Strip]:
        source = text[block.begin : block.end]
        if block.fence:
            self._fence = self._fence or Fence(self.look)
            return self._fence.strips(source, is_open=block.open and growing, budget=budget)
        columns = self._columns if block.head else ()
        strips, self._columns = _block_strips(
            block.head + source, self.look.width, self.look.theme, self.style, columns
        )
        return strips

    def _extend(self, out: list[Strip], block: Block, strips: list[Strip]) -> None:
        if out and strips and not block.joined:
            out.append(painted([], self.look.width))
        out.extend(strips)


@lru_cache(maxsize=2048)
def _block_strips(
    source: str, width: int, theme: Theme, style: Style, columns: tuple[int, ...]
) -> tuple[list[Strip], tuple[int, ...]]:
    """One block, and the widths of its columns if it is a table, which goes on in those it is given.

    Kept, so that a finished answer costs nothing once it was seen streaming.
    """
    if not _MARKED.search(source):  # most of what is written is plain, and Markdown costs ten times more
        return wrapped(" ".join(source.split("\n")).strip(), width, style), ()
    found = list(columns)
    content = _Markdown(sanitise(source), theme, found)
    strips = render(Styled(content, style), width, _rich_theme(theme))
    inked = [at for at, strip in enumerate(strips) if strip.text.strip()]
    return strips[inked[0] : inked[-1] + 1] if inked else [], tuple(found)


@define
class Progress:
    """Where drawing one long answer was interrupted: to be given again until it is through."""

    budget: Budget
    growing: dict[int, Growing] = field(factory=dict)


class _Code(CodeBlock):
    """Code that is indented, or in a list: in the theme's colours, without a ground of its own."""

    theme: Theme  # type: ignore[assignment]

    @classmethod
    def create(cls, markdown: Markdown, token: Token) -> _Code:
        """See `MarkdownElement`."""
        assert isinstance(markdown, _Markdown)  # noqa: S101  # it is the only one that knows this class
        return cls(token.info.partition(" ")[0], markdown.theme)  # type: ignore[arg-type]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The lines."""
        lines = coloured(str(self.text).rstrip(), self.lexer_name, self.theme)
        yield Padding(Text("\n").join(lines), (0, 0, 0, len(INDENT)))


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
        "fence": _Code,
        "code_block": _Code,
        "table_open": Table,
    }

    def __init__(self, source: str, theme: Theme, columns: list[int]) -> None:
        self.markup = source
        self.parsed = _parser().parse(source)
        self.theme = theme
        self.columns = columns
        self.justify = None
        self.style = "none"
        self.hyperlinks = False
        self.inline_code_lexer = None
        self.inline_code_theme = ""


def forget_colours() -> None:
    """The theme has become another: draw everything anew."""
    _block_strips.cache_clear()
    _rich_theme.cache_clear()
    forget_fences()


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
