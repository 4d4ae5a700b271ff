"""What an extension can reach: the seam between extensions and the session that has them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Literal, Protocol, TypeAlias

from pi_trio.events import ExtensionError
from pi_trio.tool import Tool

__all__ = ["Delivery", "ExtensionHost", "Handler", "Undo"]

Delivery: TypeAlias = Literal["steer", "follow_up", "next_turn"]
Undo: TypeAlias = Callable[[], object]


class Handler(Protocol):
    """What an extension does at a hook point. Each point says what it gives and what it takes back."""

    def __call__(self, *arguments: Any) -> Awaitable[Any]: ...


class ExtensionHost(Protocol):
    """One session, as its extensions see it. What adds something returns what takes it away."""

    def on(self, point: str, handler: Handler) -> Undo:
        """Call `handler` at a hook point, after those that were added before.

        Raises `UsageError` for a point that there is not.
        """

    def add_tool(self, tool: Tool) -> Undo:
        """Make a tool available from the next request on; it hides another of its name."""

    def add_provider(self, provider: str, entry: Mapping[str, Any]) -> Undo:
        """Lay an entry, as models.json has it, over what is known of a provider. Raises `ConfigError`."""

    def append_entry(self, custom_type: str, data: Any) -> str:
        """Add data to the session that the model does not see. Gives the entry's id."""

    def send_message(
        self, custom_type: str, content: str, *, display: bool, details: Any, deliver: Delivery
    ) -> None:
        """Put a message for the model into the inbox."""

    def send_user_message(self, text: str, *, deliver: Delivery) -> None:
        """Say something as the person would. `steer` and `follow_up` wake an idle agent."""

    def set_label(self, entry_id: str, label: str | None) -> None:
        """Label an entry; None removes its label."""

    @property
    def session_name(self) -> str | None:
        """The name of the session."""

    def set_session_name(self, name: str | None) -> None:
        """Name the session."""

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of all tools."""

    @property
    def active_tools(self) -> tuple[str, ...]:
        """The names of the tools that the next request offers."""

    def set_active_tools(self, names: Iterable[str]) -> None:
        """Offer these tools from the next request on."""

    def report(self, error: ExtensionError) -> None:
        """Tell everybody that an extension failed."""
