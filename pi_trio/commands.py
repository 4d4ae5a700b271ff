"""The slash commands: one registry for screen, chat and RPC.

The built-in ones are functions over `Runtime`, so they work on any. Those of extensions run in
the runtime; templates and skills are texts that the runtime puts in their place when they are
sent as a prompt. A line that is no command, such as a path, is sent to the model as it is.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Literal, Protocol, TypeAlias

from attrs import field, frozen

from pi_trio.errors import UsageError
from pi_trio.remote.interface import CommandInfo, Runtime

__all__ = ["Command", "CommandContext", "Commands", "Complete", "Run", "View"]

_COMMAND = re.compile(r"/[A-Za-z][\w:-]*(?:\s|$)")
"""How a command begins; a path has one more slash, or a dot."""


class CommandContext(Protocol):
    """Whoever shows a session to a person, as commands see it."""

    @property
    def runtime(self) -> Runtime: ...

    @property
    def session_id(self) -> str:
        """The session that is shown."""

    def tell(self, text: str) -> None:
        """Show some lines to the person. They may hold text of a model or a file."""

    async def show(self, session_id: str) -> None:
        """Go over to another session, which is open."""

    def edit(self, text: str) -> None:
        """Offer a prompt to be changed and sent again."""

    def quit(self) -> None:
        """End the program when the command is done."""

    def open_view(self, view: View, argument: str) -> bool:
        """Open a view of the program's own when the command is done. False if it has none of the kind."""


View: TypeAlias = Literal["login", "mouse", "sessions", "settings", "theme"]
"""What only a screen has; all of it can be had in another way, too."""

Run: TypeAlias = Callable[[CommandContext, str], Awaitable[None]]
Complete: TypeAlias = Callable[[CommandContext], Awaitable[Sequence[str]]]


async def _no_choices(_context: CommandContext) -> Sequence[str]:
    return ()


@frozen
class Command:
    """A built-in command. `run` gets what follows the name and raises `PiError`s.

    `needs` is the protocol of what a runtime must offer besides `Runtime` for it to be possible.
    """

    info: CommandInfo
    run: Run
    complete: Complete = field(default=_no_choices)
    needs: type[Any] = object


class Commands:
    """The built-in commands, and over a runtime all others. A built-in name cannot be taken."""

    def __init__(self, builtins: Iterable[Command]) -> None:
        self._builtins = {command.info.name: command for command in builtins}

    @property
    def names(self) -> Iterable[str]:
        """The names of the built-in commands."""
        return self._builtins

    async def all(self, context: CommandContext) -> list[CommandInfo]:
        """All commands that are possible: built-in ones, then extensions, templates and skills."""
        builtins, runtime = self._builtins.values(), context.runtime
        own = [command.info for command in builtins if isinstance(runtime, command.needs)]
        return [*own, *await self._others(context)]

    async def complete(self, context: CommandContext, line: str) -> list[str]:
        """The lines that `line` may be the beginning of; none if it is no command."""
        if not line.startswith("/"):
            return []
        name, space, argument = line[1:].partition(" ")
        if not space:
            return [f"/{each.name}" for each in await self.all(context) if each.name.startswith(name)]
        choices = await self._choices(context, name)
        return [f"/{name} {each}" for each in choices if argument.lower() in each.lower()]

    async def run(self, context: CommandContext, line: str) -> bool:
        """Run the command that `line` is. False if it is to be sent to the model.

        Raises `PiError`s: one sentence for the person. What was meant as a command and is none is one.
        """
        if not line.startswith("/"):
            return False
        name, *rest = line[1:].split(maxsplit=1)[:2] or [""]
        arguments = rest[0].strip() if rest else ""
        if command := self._builtins.get(name):
            await command.run(context, arguments)
            return True
        known = next((each for each in await self._others(context) if each.name == name), None)
        if known is None and _COMMAND.match(line):
            raise UsageError(f"there is no command /{name}: /help lists them")
        if known is None or known.source != "extension":
            return False
        text = await context.runtime.run_command(context.session_id, name, arguments)
        if text:
            context.tell(text)
        return True

    async def _others(self, context: CommandContext) -> list[CommandInfo]:
        commands = await context.runtime.commands(context.session_id)
        return [each for each in commands if each.name not in self._builtins]

    async def _choices(self, context: CommandContext, name: str) -> Sequence[str]:
        if command := self._builtins.get(name):
            return await command.complete(context)
        return next((each.choices for each in await self._others(context) if each.name == name), ())
