"""Questions that come before a tool call, and their answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, TypeAlias

from attrs import field, frozen

from pi_trio.messages import as_tuple

__all__ = ["Answer", "Ask", "GateMode", "Question"]

GateMode: TypeAlias = Literal["auto", "ask", "read-only"]
"""What may happen unasked: all but odd things, reading alone; or reading is all that may happen."""

Answer: TypeAlias = Literal["once", "always", "no"]
"""`always` holds as long as the session is open, for what the question's `rules` say."""


@frozen(kw_only=True)
class Question:
    """May this call run? `id` is that of the call, `reason` a sentence, and `args` what will run.

    A screen shows the arguments with `sanitise(…, show_all=True)`, all of them. `rules` are
    what an answer `always` allows; without any it is the same as `once`. `preview` is the
    diff that an edit would make now.
    """

    id: str
    tool_name: str
    args: Mapping[str, Any]
    reason: str
    rules: tuple[str, ...] = field(default=(), converter=as_tuple)
    preview: str | None = None


Ask: TypeAlias = Callable[[Question], Awaitable[Answer]]
"""Gets the answer of a person. Cancelled when the run is stopped meanwhile."""
