"""Which panes are seen at which width: pure."""

from __future__ import annotations

from typing import Literal, TypeAlias

from attrs import frozen

__all__ = ["COLUMNS_FROM", "Arrangement", "Pane", "arrange"]

Pane: TypeAlias = Literal["stream", "reading", "tree", "tools"]
"""Where the keys go: to the prompt below the stream, into the stream itself, or to a pane beside it."""

COLUMNS_FROM = 110
"""From this width on the tree stands beside the stream; below there is one pane at a time."""

THREE_FROM = 150
"""From this width on the tools can stand beside both."""


@frozen
class Arrangement:
    """What is seen. `strip` is the line that names the panes where only one is seen."""

    tree: bool
    stream: bool
    tools: bool
    strip: bool


def arrange(width: int, pane: Pane, *, tools: bool, whole: bool) -> Arrangement:
    """`pane` has the focus, `tools` are wanted, and with `whole` the focused pane takes everything."""
    if width < COLUMNS_FROM:
        return Arrangement(pane == "tree", pane in ("stream", "reading"), pane == "tools", strip=True)
    if whole and pane in ("tree", "tools"):
        return Arrangement(pane == "tree", stream=False, tools=pane == "tools", strip=False)
    tools = tools or pane == "tools"
    if width >= THREE_FROM:
        return Arrangement(tree=True, stream=True, tools=tools, strip=False)
    tools = tools and pane != "tree"
    return Arrangement(tree=not tools, stream=True, tools=tools, strip=False)
