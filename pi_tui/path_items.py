"""The items of the current path, and what can be told from them alone."""

from __future__ import annotations

from collections.abc import Mapping

from pi_trio.messages import AssistantMessage, UserMessage, text_of
from pi_tui.shown import Item

__all__ = ["PathItems"]


class PathItems(list[Item]):
    """Root to leaf. Only items whose bodies are loaded tell something."""

    def missing_ids(self, first: int, last: int) -> list[str]:
        """The entries without which items `first` to `last` (exclusive) cannot be drawn."""
        return [id_ for item in self[max(first, 0) : last] if item.unseen for id_ in item.ids]

    def notices(self) -> dict[str, list[Item]]:
        """What the program said, by the item behind which it did."""
        said: dict[str, list[Item]] = {}
        behind = "welcome"
        for item in self:
            if item.kind == "notice":
                said.setdefault(behind, []).append(item)
            elif item.ids:
                behind = item.key
        return said

    def with_notices(self, said: Mapping[str, list[Item]]) -> PathItems:
        """The items with what was said behind them, and before them all what was said before the first."""
        items = PathItems()
        if not any(item.kind == "welcome" for item in self):
            items += said.get("welcome", [])
        for item in self:
            items.append(item)
            items += said.get(item.key, [])
        return items

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
    def unanswered(self) -> tuple[str, UserMessage] | None:
        """The entry and the prompt that was said last, if nothing came of it."""
        last = next((item for item in reversed(self) if item.kind not in ("notice", "turn", "entry")), None)
        return (last.key, last.message) if last and isinstance(last.message, UserMessage) else None

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
