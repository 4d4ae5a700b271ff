"""The values that a session is shown through: transcript items, tool calls, sums. Pure and light."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from attrs import define, field, frozen

from pi_trio.messages import AgentMessage, BashExecutionMessage
from pi_trio.text import printed

__all__ = ["Call", "CallState", "Item", "ItemKind", "LiveBlock", "Retry", "Shell", "Stats"]

ItemKind: TypeAlias = Literal["message", "entry", "summary", "turn", "notice", "live", "shell", "welcome"]
CallState: TypeAlias = Literal["waiting", "running", "done", "failed", "stopped", "not_started"]


@define(eq=False)
class Item:
    """One stretch of the transcript. `ids` are the entries that it shows, the first names it: those of
    the end of a turn are the end and, where it is written, the beginning.

    `calls` are those of the answer that it shows, by their ids.
    """

    key: str
    kind: ItemKind
    ids: list[str] = field(factory=list)
    message: AgentMessage | None = None
    text: str = ""
    version: int = 0
    calls: dict[str, Call] = field(factory=dict)

    @property
    def missing(self) -> bool:
        """Whether its body was not loaded yet."""
        return self.message is None and self.kind in ("message", "entry", "summary")

    @property
    def unseen(self) -> bool:
        """Whether there is something to load of it: its body, or when a turn began and ended."""
        return self.missing or (self.kind == "turn" and not self.version)


@define(eq=False)
class Call:
    """A tool call, waiting, running or over. `started` is on the store's clock, in seconds.

    `output` is the end of what it printed, and `cut` says how many characters before that there are.
    `result_id` is the entry that keeps its result; `dropped` says that this was let go of, and is
    to be loaded again where it is seen.
    """

    id: str
    name: str
    args: Mapping[str, Any]
    state: CallState = "waiting"
    started: float = 0.0
    output: str = ""
    cut: int = 0
    details: Any = None
    duration_ms: int | None = None
    item: Item | None = None
    result_id: str = ""
    dropped: bool = False

    @property
    def printed(self) -> str:
        """What of the output is to be seen. Untrusted."""
        return printed(self.name, self.output)

    @property
    def over(self) -> bool:
        """Whether nothing more will come of it."""
        return self.state not in ("waiting", "running")


@define
class LiveBlock:
    """A block of the streaming answer; its text only grows until its end replaces it."""

    kind: Literal["text", "thinking"]
    pieces: list[str] = field(factory=list)

    @property
    def text(self) -> str:
        """All of it so far."""
        if len(self.pieces) > 1:
            self.pieces = ["".join(self.pieces)]
        return self.pieces[0] if self.pieces else ""


@define(eq=False)
class Shell:
    """A command of the user, until its entry takes its place. `message` is there when it is over.

    `started` is on the store's clock, in seconds; `output` is the end of what it printed.
    """

    command: str
    started: float
    output: str = ""
    message: BashExecutionMessage | None = None

    @property
    def running(self) -> bool:
        """Whether it can still be stopped."""
        return self.message is None


@frozen
class Retry:
    """A failed request that will be sent again at `due`, on the store's clock."""

    attempt: int
    max_attempts: int
    due: float
    reason: str


@frozen
class Stats:
    """Sums over some answers. `complete` is false where bodies were not loaded."""

    tools: int = 0
    files: int = 0
    tokens: int = 0
    cost: float = 0.0
    seconds: float = 0.0
    complete: bool = True
