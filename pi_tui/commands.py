"""Slash commands: the registry of `pi_trio.builtin_commands`, run beside the runtime.

A command tells its context what the screen is to do; the screen does it when the command is
over, in its own thread.
"""

from __future__ import annotations

from functools import cache

from attrs import define, field

from pi_trio.commands import Commands, View
from pi_trio.remote.interface import CommandInfo, Runtime

__all__ = ["Told", "all_commands", "completions", "run_command"]


@define
class Told:
    """A `CommandContext` that keeps what a command wants, for the screen."""

    runtime: Runtime
    session_id: str
    lines: list[str] = field(factory=list)
    text: str = ""
    ended: bool = False
    view: tuple[View, str] | None = None

    def tell(self, text: str) -> None:
        """See `CommandContext`."""
        self.lines.append(text)

    async def show(self, session_id: str) -> None:
        """See `CommandContext`. The session before stays open."""
        self.session_id = session_id

    def edit(self, text: str) -> None:
        """See `CommandContext`."""
        self.text = text

    def quit(self) -> None:
        """See `CommandContext`."""
        self.ended = True

    def open_view(self, view: View, argument: str) -> bool:
        """See `CommandContext`."""
        self.view = (view, argument)
        return True


async def run_command(runtime: Runtime, session_id: str, line: str) -> Told | None:
    """Run a line. None if it is to be sent to the model. Raises `PiError`s."""
    told = Told(runtime, session_id)
    return told if await _registry().run(told, line) else None


async def all_commands(runtime: Runtime, session_id: str) -> list[CommandInfo]:
    """Everything that may follow a slash."""
    return await _registry().all(Told(runtime, session_id))


async def completions(runtime: Runtime, session_id: str, line: str) -> list[str]:
    """The lines that a line may become."""
    return await _registry().complete(Told(runtime, session_id), line)


@cache
def _registry() -> Commands:
    from pi_trio.builtin_commands import builtin_commands

    return builtin_commands()
