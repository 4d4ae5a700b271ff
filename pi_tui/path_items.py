"""The items of the current path, and what can be told from them alone."""

from __future__ import annotations

from pi_trio.messages import AssistantMessage, TextContent, UserMessage, text_of
from pi_tui.shown import Item

__all__ = ["PathItems"]


class PathItems(list[Item]):
    """Root to leaf. Only items whose bodies are loaded tell something."""

    def missing_ids(self, first: int, last: int) -> list[str]:
        """The entries without which items `first` to `last` (exclusive) cannot be drawn."""
        return [id_ for item in self[max(first, 0) : last] if item.missing for id_ in item.ids]

    @property
    def prompts(self) -> list[str]:
        """The texts of the user's prompts."""
        return [text_of(item.message.content) for item in self if isinstance(item.message, UserMessage)]

    @property
    def last_answer(self) -> str:
        """The text of the last answer that has one."""
        said = (item.message for item in reversed(self) if isinstance(item.message, AssistantMessage))
        return next((text for answer in said if (text := text_of(answer.content).strip())), "")

    @property
    def want_answer(self) -> bool:
        """Whether what was said last has no answer, or one that was cut off."""
        last = next((item for item in reversed(self) if item.kind in ("message", "summary")), None)
        if last is None:
            return False
        match last.message:
            case UserMessage():
                return True
            case AssistantMessage(stop_reason=reason):
                return reason == "aborted" or len(last.ids) > 1  # a result is the last that was said
            case _:
                return False

    @property
    def unanswered(self) -> str | None:
        """The entry of the prompt that was said last, if nothing came of it and its text is all of it."""
        last = next((item for item in reversed(self) if item.kind not in ("notice", "turn", "entry")), None)
        if last is None or not isinstance(last.message, UserMessage):
            return None
        content = last.message.content
        plain = isinstance(content, str) or all(isinstance(block, TextContent) for block in content)
        return last.key if plain else None

    @property
    def context_tokens(self) -> int | None:
        """The size of the last request and its answer; None while it is not known."""
        for item in reversed(self):
            if item.kind == "summary" or item.missing:
                return None
            message = item.message
            if isinstance(message, AssistantMessage) and message.usage.total_tokens:
                return message.usage.total_tokens
        return 0

    @property
    def turn_cost(self) -> float:
        """US dollars spent since the last prompt."""
        cost = 0.0
        for item in reversed(self):
            if isinstance(item.message, UserMessage):
                break
            if isinstance(item.message, AssistantMessage):
                cost += item.message.usage.cost.total
        return cost
