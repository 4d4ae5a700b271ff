"""What extensions can reach of a harness. See `pi_trio.extensions.host`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

import attrs

from pi_trio.errors import UsageError
from pi_trio.events import AgentEvent, ConnectionChanged, ExtensionError, Gap
from pi_trio.extensions.host import Delivery, Handler, Undo
from pi_trio.harness.configured import ToolChoice
from pi_trio.harness.harness import AgentHarness
from pi_trio.harness.points import POINTS
from pi_trio.llm.registry import Models
from pi_trio.loop.hooks import (
    AfterToolCallContext,
    AfterToolCallResult,
    BeforeToolCallContext,
    BeforeToolCallResult,
    Hooks,
)
from pi_trio.messages import AgentMessage, CustomMessage, UserMessage
from pi_trio.session.entries import CustomEntry, LabelEntry
from pi_trio.tool import Tool

__all__ = ["HarnessHost"]

_EVENTS = frozenset(cls.type for cls in get_args(AgentEvent)) - {
    Gap.type,
    ConnectionChanged.type,
    ExtensionError.type,
}
"""The events that extensions hear. Their own failures would come back to them for ever."""
_POINTS = frozenset({"tool_call", "tool_result", "context", "input", "session_shutdown"})


class HarnessHost:
    """The extensions' side of one session. Their tools are offered to the model, or not."""

    def __init__(self, harness: AgentHarness, models: Models, *, offers_tools: bool = True) -> None:
        self._offers_tools = offers_tools
        self._harness = harness
        self._models = models
        self._base = harness.options
        self._tools: list[Tool] = []
        self._handlers: dict[str, list[Handler]] = {point: [] for point in _POINTS}

    # ------------------------------------------------------------------ hooks

    def on(self, point: str, handler: Handler) -> Undo:
        """See `ExtensionHost`."""
        if point in _EVENTS:
            return self._harness.hub.subscribe(lambda event: handler(event) if event.type == point else None)
        if point in POINTS:
            return self._harness.handlers.add(point, handler)
        if point not in _POINTS:
            raise UsageError(f"there is no hook point {point!r}")
        return self._added(self._handlers[point], handler)

    async def input(self, text: str) -> str:
        """What is sent in place of `text`, which the person wrote."""
        for handler in tuple(self._handlers["input"]):
            changed = await handler(text)
            text = text if changed is None else str(changed)
        return text

    async def shut_down(self) -> None:
        """Tell the extensions that their session ends."""
        for handler in tuple(self._handlers["session_shutdown"]):
            await handler()

    def _added(self, items: list[Any], item: Any) -> Undo:
        items.append(item)
        self._apply()

        def undo() -> None:
            items.remove(item)
            self._apply()

        return undo

    def set_tools(self, choice: ToolChoice) -> None:
        """Other tools below those of extensions."""
        self._base = attrs.evolve(self._base, tools=choice.tools, active_tool_names=choice.active)
        self._apply()

    def _apply(self) -> None:
        """Give the harness its own options with what is registered now over them."""
        own = {tool.name: tool for tool in self._tools}  # the last of a name hides the others
        tools = [tool for tool in self._base.tools if tool.name not in own]
        active = self._base.active_tool_names
        self._harness.options = attrs.evolve(
            self._base,
            tools=(*tools, *own.values()),
            active_tool_names=None if active is None else (*active, *own),
            hooks=self._hooks(self._base.hooks),
        )

    def _hooks(self, base: Hooks) -> Hooks:
        """Without a handler the harness's own hook stays, which may be none and then costs nothing."""
        handlers = self._handlers
        return attrs.evolve(
            base,
            before_tool_call=self._before if handlers["tool_call"] else base.before_tool_call,
            after_tool_call=self._after if handlers["tool_result"] else base.after_tool_call,
            transform_context=self._transform if handlers["context"] else base.transform_context,
        )

    async def _before(self, context: BeforeToolCallContext) -> BeforeToolCallResult | None:
        """The extensions first: the harness's own hook asks for permission, and has the last word."""
        for handler in tuple(self._handlers["tool_call"]):
            decision: BeforeToolCallResult | None = await handler(context)
            if decision is not None and decision.block:
                return decision
        own = self._base.hooks.before_tool_call
        return await own(context) if own else None

    async def _after(self, context: AfterToolCallContext) -> AfterToolCallResult | None:
        """Each sees what those before it made of the result."""
        own = self._base.hooks.after_tool_call
        whole: dict[str, Any] = {}
        for handler in ([own] if own else []) + list(self._handlers["tool_result"]):
            change: AfterToolCallResult | None = await handler(context)
            if change is not None:
                given = {name: value for name, value in _fields(change).items() if value is not None}
                context = attrs.evolve(
                    context,
                    result=attrs.evolve(context.result, **given),
                    is_error=given.get("is_error", context.is_error),
                )
                whole |= given
        return AfterToolCallResult(**whole) if whole else None

    async def _transform(self, messages: Sequence[AgentMessage]) -> Sequence[AgentMessage]:
        own = self._base.hooks.transform_context
        messages = await own(messages) if own else messages
        for handler in tuple(self._handlers["context"]):
            changed: Sequence[AgentMessage] | None = await handler(messages)
            messages = messages if changed is None else changed
        return messages

    # ------------------------------------------------------------------ adding

    def add_tool(self, tool: Tool) -> Undo:
        """See `ExtensionHost`."""
        return self._added(self._tools if self._offers_tools else [], tool)

    def add_provider(self, provider: str, entry: Mapping[str, Any]) -> Undo:
        """See `ExtensionHost`."""
        return self._models.overlay(provider, entry)

    # ------------------------------------------------------------------ acting

    def append_entry(self, custom_type: str, data: Any) -> str:
        """See `ExtensionHost`."""
        return self._harness.record(CustomEntry(custom_type, data))

    def send_message(
        self, custom_type: str, content: str, *, display: bool, details: Any, deliver: Delivery
    ) -> None:
        """See `ExtensionHost`."""
        self._harness.send(CustomMessage(custom_type, content, display, details), deliver)

    def send_user_message(self, text: str, *, deliver: Delivery) -> None:
        """See `ExtensionHost`."""
        self._harness.send(UserMessage.of(text), deliver)

    def set_label(self, entry_id: str, label: str | None) -> None:
        """See `ExtensionHost`."""
        self._harness.record(LabelEntry(self._harness.session.entry(entry_id).id, label))

    @property
    def session_name(self) -> str | None:
        """See `ExtensionHost`."""
        return self._harness.session.name

    def set_session_name(self, name: str | None) -> None:
        """See `ExtensionHost`."""
        self._harness.set_session_name(name)

    @property
    def tools(self) -> tuple[str, ...]:
        """See `ExtensionHost`."""
        return tuple(tool.name for tool in self._harness.options.tools)

    @property
    def active_tools(self) -> tuple[str, ...]:
        """See `ExtensionHost`."""
        return tuple(tool.name for tool in self._harness.active_tools)

    def set_active_tools(self, names: Iterable[str]) -> None:
        """See `ExtensionHost`."""
        self._harness.set_active_tools(names)

    def report(self, error: ExtensionError) -> None:
        """See `ExtensionHost`."""
        self._harness.hub.post(error)


def _fields(change: AfterToolCallResult) -> dict[str, Any]:
    return attrs.asdict(change, recurse=False)
