"""The default way from the application's messages to the four roles that models know."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pi_trio.messages import (
    AgentMessage,
    AssistantMessage,
    BashExecutionMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    CustomMessage,
    LlmMessage,
    SystemMessage,
    TextContent,
    ToolResultMessage,
    UserMessage,
    sendable,
)
from pi_trio.prefix import Prefix

__all__ = ["LlmView", "convert_message", "convert_messages"]


def convert_message(message: AgentMessage) -> LlmMessage | None:
    """The form of `message` that goes into a request; None leaves it out.

    Failed answers are left out. An aborted answer keeps its visible text and thinking, but
    no calls, since they never ran. A message of an application's own class may offer
    `to_llm()`.
    """
    to_llm = getattr(message, "to_llm", None)
    if to_llm is not None:
        converted: LlmMessage | None = to_llm()
        return converted
    match message:
        case AssistantMessage():
            return sendable(message)
        case SystemMessage() | UserMessage() | ToolResultMessage():
            return message
        case BashExecutionMessage():
            return None if message.exclude_from_context else _user(_shell_text(message), message.timestamp)
        case CustomMessage():
            return UserMessage(message.content, timestamp=message.timestamp)
        case BranchSummaryMessage():
            text = f"What was done on the branch that was left:\n\n{_summary(message.summary)}"
            return _user(text, message.timestamp)
        case CompactionSummaryMessage():
            text = f"The conversation before this point, summarised:\n\n{_summary(message.summary)}"
            return _user(text, message.timestamp)
        case _:
            return None


def convert_messages(messages: Iterable[AgentMessage]) -> list[LlmMessage]:
    """All that `convert_message` leaves in."""
    return [converted for message in messages if (converted := convert_message(message)) is not None]


class LlmView:
    """The converted messages of a growing transcript, converting each message once."""

    def __init__(self) -> None:
        self._converted: list[LlmMessage] = []
        self._seen = 0

    def extend(self, messages: list[AgentMessage]) -> Sequence[LlmMessage]:
        """The conversion of `messages`, of which all but the new tail were given before."""
        self._converted += convert_messages(messages[self._seen :])
        self._seen = len(messages)
        return Prefix(self._converted)


def _user(text: str, timestamp: int) -> UserMessage:
    return UserMessage((TextContent(text),), timestamp=timestamp)


def _summary(text: str) -> str:
    return f"<summary>\n{text}\n</summary>"


def _shell_text(message: BashExecutionMessage) -> str:
    return "\n".join(_shell_lines(message))


def _shell_lines(message: BashExecutionMessage) -> Iterable[str]:
    yield f"Ran `{message.command}`"
    yield f"```\n{message.output}\n```" if message.output else "(no output)"
    if message.cancelled:
        yield "(stopped by the user)"
    elif message.exit_code:
        yield f"Exit code {message.exit_code}"
    if message.truncated and message.full_output_path:
        yield f"[Output cut. All of it: {message.full_output_path}]"
