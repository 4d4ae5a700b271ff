"""Tables in Markdown: rows in columns, whose widths the first rows decide.

So a long table can be drawn in pieces, and a row that was drawn stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markdown_it.token import Token
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Markdown, TableElement
from rich.text import Text

__all__ = ["Table", "column_widths"]

GAP = "   "
"""What stands between two columns."""

NARROWEST = 3
"""Cells that every column keeps, however little room there is."""


class Table(TableElement):
    """Rich's element for a table. `columns` are the widths that an earlier piece found, if any."""

    columns: list[int]

    @classmethod
    def create(cls, markdown: Markdown, token: Token) -> Table:
        """See `MarkdownElement`. The widths belong to the text, for its next piece."""
        element = cls()
        element.columns = getattr(markdown, "columns", [])
        return element

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The rows; in the first piece the names of the columns above them."""
        head = self.header.row if self.header is not None else None
        names = [cell.content for cell in head.cells] if head is not None else []
        rows = [[cell.content for cell in row.cells] for row in self.body.rows] if self.body else []
        if not self.columns:
            self.columns[:] = column_widths([names, *rows], options.max_width)
            for name in names:
                name.stylize("markdown.table.header")
            yield from _lines(names, self.columns, console)
            rule = GAP.join("─" * width for width in self.columns)
            yield Text(rule, "markdown.table.border", no_wrap=True, overflow="crop")
        for row in rows:
            yield from _lines(row, self.columns, console)


def column_widths(rows: Sequence[Sequence[Text]], room: int) -> list[int]:
    """As wide as what is in them; if that is too wide, the widest give way."""
    widths: list[int] = []
    for row in rows:
        widths += [NARROWEST] * (len(row) - len(widths))
        for at, cell in enumerate(row):
            widths[at] = max(widths[at], cell_len(cell.plain))
    left = room - len(GAP) * (len(widths) - 1)
    for done, at in enumerate(sorted(range(len(widths)), key=widths.__getitem__)):
        widths[at] = min(widths[at], max(left // (len(widths) - done), NARROWEST))
        left -= widths[at]
    return widths


def _lines(row: Sequence[Text], widths: Sequence[int], console: Console) -> Iterator[Text]:
    """A row, as many lines as its longest cell needs."""
    sized = zip(row, widths, strict=False)
    cells = [cell.wrap(console, width, justify=cell.justify) for cell, width in sized]
    for at in range(max(map(len, cells), default=0)):
        line = Text(no_wrap=True, overflow="crop")
        for column, (cell, width) in enumerate(zip(cells, widths, strict=False)):
            part = cell[at].copy() if at < len(cell) else Text()
            part.truncate(width)
            part.pad_right(max(width - cell_len(part.plain), 0))
            line.append(GAP if column else "")
            line.append_text(part)
        yield line
