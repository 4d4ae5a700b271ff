"""`ExtensionApi`: what an extension's `extend(api)` is given."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, TypeAlias, TypeVar, overload

from attrs import frozen

from pi_trio.errors import UsageError
from pi_trio.events import ExtensionError
from pi_trio.extensions.failures import FAILURES, describe
from pi_trio.extensions.guards import called, guarded
from pi_trio.extensions.host import Delivery, ExtensionHost, Undo
from pi_trio.extensions.loading import Extension
from pi_trio.remote.interface import CommandInfo
from pi_trio.tool import Tool

__all__ = ["ExtensionApi", "ExtensionCommand", "RunCommand"]

RunCommand: TypeAlias = Callable[[str], "str | Awaitable[str | None] | None"]
"""The body of a command, plain or async: takes what follows its name, gives what the person is told."""

F = TypeVar("F", bound=Callable[..., Any])  # a decorator gives back the very type that it is given


@frozen
class ExtensionCommand:
    """A slash command of an extension."""

    info: CommandInfo
    run: RunCommand


class ExtensionApi:
    """One extension in one session. After the session ended, or a reload, it can do nothing more.

    Hooks, tools and commands run on the trio thread: they must not block it. What they raise is
    reported with file and line and goes no further, except that a failing `tool_call` handler
    blocks its call.
    """

    def __init__(self, extension: Extension, host: ExtensionHost) -> None:
        self.path: str = extension.path
        self.commands: dict[str, ExtensionCommand] = {}
        self.renderers: dict[str, str] = {}
        self._extension = extension
        self._host = host
        self._registered: ExitStack | None = ExitStack()

    # ------------------------------------------------------------------ registering

    @overload
    def on(self, point: str, handler: F) -> F: ...
    @overload
    def on(self, point: str) -> Callable[[F], F]: ...
    def on(self, point: str, handler: F | None = None) -> F | Callable[[F], F]:
        """Have `handler` called at a hook point; `@api.on("tool_call")` is the same.

        docs/extensions.md has the points. Raises `UsageError` for one that there is not.
        """
        if handler is None:
            return partial(self.on, point)
        self._add(self._active().on(point, guarded(point, handler, partial(self._failed, point))))
        return handler

    def register_tool(self, tool: Tool) -> None:
        """Make a tool available to the model; it hides another of its name."""
        self._add(self._active().add_tool(tool))

    def register_command(
        self,
        name: str,
        run: RunCommand,
        *,
        description: str = "",
        argument_hint: str = "",
        choices: Sequence[str] = (),
    ) -> None:
        """Add the slash command `/name`. `choices` are offered as its argument.

        Raises `UsageError` for a name with spaces, or one that the extension has already.
        """
        self._active()
        if not name or name.split() != [name] or name in self.commands:
            raise UsageError(f"/{name} cannot be a command: it needs a new name without spaces")
        info = CommandInfo(name, description, "extension", argument_hint, self.path, tuple(choices))
        self.commands[name] = ExtensionCommand(info, run)
        self._add(lambda: self.commands.pop(name))

    def register_provider(self, provider: str, entry: Mapping[str, Any]) -> None:
        """Add models: `entry` is what models.json would have for this provider.

        Raises `ConfigError` if it could not stand there.
        """
        self._add(self._active().add_provider(provider, entry))

    def register_renderer(self, custom_type: str, template: str) -> None:
        """Say how entries and messages of `custom_type` are shown: `{field}` stands for their data.

        It is a text and no function, because the screen may be in another process.
        """
        self._active()
        self.renderers[custom_type] = template
        self._add(lambda: self.renderers.pop(custom_type, None))

    # ------------------------------------------------------------------ acting

    def append_entry(self, custom_type: str, data: Any = None) -> str:
        """Keep data in the session, where the model does not see it. Gives the entry's id."""
        return self._active().append_entry(custom_type, data)

    def send_message(
        self,
        custom_type: str,
        content: str,
        *,
        display: bool = True,
        details: Any = None,
        deliver: Delivery = "steer",
    ) -> None:
        """Tell the model something: before its next step, in a turn of its own, or with the next prompt."""
        self._active().send_message(custom_type, content, display=display, details=details, deliver=deliver)

    def send_user_message(self, text: str, *, deliver: Delivery = "steer") -> None:
        """Say something as the person would."""
        self._active().send_user_message(text, deliver=deliver)

    def set_label(self, entry_id: str, label: str | None) -> None:
        """Label an entry of the session; None removes its label."""
        self._active().set_label(entry_id, label)

    @property
    def session_name(self) -> str | None:
        """The name of the session. Setting it names the session; None removes the name."""
        return self._active().session_name

    @session_name.setter
    def session_name(self, name: str | None) -> None:
        self._active().set_session_name(name)

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of all tools that there are, offered to the model or not."""
        return self._active().tools

    @property
    def active_tools(self) -> tuple[str, ...]:
        """The names of the tools that the next request offers. Setting it is kept in this branch of
        the session, and raises `UsageError` for a name that is not one of `tools`.
        """
        return self._active().active_tools

    @active_tools.setter
    def active_tools(self, names: Iterable[str]) -> None:
        self._active().set_active_tools(names)

    # ------------------------------------------------------------------ for the runtime

    async def run_command(self, name: str, arguments: str) -> str:
        """Run a command of this extension. What it raises is reported, and the answer is empty."""
        try:
            return await called(self.commands[name].run, arguments) or ""
        except FAILURES as error:
            self._failed(f"/{name}", error)
            return ""

    def start(self) -> str | None:
        """Call `extend`. If it fails, nothing that it registered stays, and the failure is told."""
        try:
            self._extension.extend(self)
        except FAILURES as error:
            self.unload()
            return describe(error, self.path)
        return None

    def unload(self) -> None:
        """Take away everything that was registered, the last first."""
        registered, self._registered = self._registered, None
        if registered is not None:
            registered.close()

    def _active(self) -> ExtensionHost:
        if self._registered is None:
            raise UsageError(f"{self.path} is not loaded any more")
        return self._host

    def _add(self, undo: Undo) -> None:
        assert self._registered is not None  # noqa: S101 - `_active` was asked just before
        self._registered.callback(undo)

    def _failed(self, event: str, error: BaseException) -> str:
        text = describe(error, self.path)
        self._host.report(ExtensionError(self.path, event, text))
        return text
