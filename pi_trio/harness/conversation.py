"""The conversation of a branch, as the next request will have it."""

from __future__ import annotations

from collections.abc import Sequence

from pi_trio.loop.convert import LlmView
from pi_trio.messages import AgentMessage, LlmMessage, SystemMessage
from pi_trio.session.context import SessionContext, fold_system
from pi_trio.session.repair import fit

__all__ = ["Conversation"]


class Conversation:
    """Starts as what the file says, and grows with what is committed."""

    def __init__(self, context: SessionContext) -> None:
        self.transcript: list[AgentMessage] = list(context.messages)
        self.system = context.system_message
        self.model: tuple[str, str] | None = context.model
        self.thinking_level: str = context.thinking_level
        self.active_tool_names: tuple[str, ...] | None = context.active_tool_names
        self._view = LlmView()

    def add(self, message: AgentMessage) -> None:
        """The next message of the branch, of which stays what can be sent, as when the file is read."""
        if isinstance(message, SystemMessage):
            self.system = fold_system([message] if self.system is None else [self.system, message])
        elif (kept := fit(message)) is not None:
            self.transcript.append(kept)

    def llm_messages(self) -> Sequence[LlmMessage]:
        """The transcript as models know it."""
        return self._view.extend(self.transcript)
