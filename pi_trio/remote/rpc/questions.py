"""What a person is asked and told, in the words of pi's extension dialogs.

A question of the gate is a choice among options.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from pi_trio.approval import Answer, Question
from pi_trio.codec import dumps, to_json

__all__ = ["Dialogs"]

ALLOW = "Allow once"
DENY = "Deny"


class Dialogs:
    """The questions that were put to the client, by the ids of the requests."""

    def __init__(self) -> None:
        self._open: dict[str, Question] = {}

    def request(self, question: Question) -> dict[str, Any]:
        """The request that puts this question."""
        options = [ALLOW, *_always(question), DENY]
        request = _request("select", title=_title(question), options=options)
        self._open[request["id"]] = question
        return request

    def notice(self, text: str) -> dict[str, Any]:
        """The request that shows a text, and needs no answer."""
        return _request("notify", message=text)

    def answer(self, response: Mapping[str, Any]) -> tuple[str, Answer] | None:
        """The question's id and the answer to it; None if nothing of the kind waits.

        Whatever is not one of the options is a no.
        """
        question = self._open.pop(str(response.get("id")), None)
        if question is None:
            return None
        value = response.get("value")
        if value == ALLOW:
            return question.id, "once"
        return question.id, "always" if [value] == _always(question) else "no"

    def withdraw(self, question_id: str) -> None:
        """The question does not wait any more."""
        self._open = {key: each for key, each in self._open.items() if each.id != question_id}


def _request(method: str, **fields: Any) -> dict[str, Any]:
    return {"type": "extension_ui_request", "id": str(uuid.uuid4()), "method": method, **fields}


def _title(question: Question) -> str:
    """Why it is asked, and all of what would run."""
    what = f"{question.tool_name} {dumps(to_json(dict(question.args))).decode()}"
    return "\n".join(filter(None, [question.reason, what, question.preview]))


def _always(question: Question) -> list[str]:
    return [f"Always allow {', '.join(question.rules)}"] if question.rules else []
