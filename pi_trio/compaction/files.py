"""Which files a stretch of conversation read and changed, told from its tool calls."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from attrs import frozen

from pi_trio.messages import AgentMessage, AssistantMessage, ToolResultMessage

__all__ = ["Files", "files_of", "without_lists"]

_CHANGES: Mapping[str, bool] = {"read": False, "edit": True, "write": True}
"""The tools that name a file as `path`, and whether they change it."""


@frozen
class Files:
    """Paths as the model wrote them. What was changed is not listed as read."""

    read: frozenset[str] = frozenset()
    modified: frozenset[str] = frozenset()

    @classmethod
    def from_details(cls, details: Any) -> Files:
        """What an earlier summary had listed; nothing if the details are of another kind."""
        if not isinstance(details, Mapping):
            return cls()
        return cls(_paths(details.get("readFiles")), _paths(details.get("modifiedFiles")))

    def __or__(self, other: Files) -> Files:
        return Files(self.read | other.read, self.modified | other.modified)

    def details(self) -> dict[str, list[str]]:
        """As the entry of a summary keeps them."""
        return {"readFiles": sorted(self.read - self.modified), "modifiedFiles": sorted(self.modified)}

    def lists(self) -> str:
        """The blocks at the end of a summary's text; empty without files."""
        details = self.details()
        blocks = ((tag, details[key]) for tag, key in _TAGS.items())
        return "".join(f"\n\n<{tag}>\n" + "\n".join(paths) + f"\n</{tag}>" for tag, paths in blocks if paths)


_TAGS = {"read-files": "readFiles", "modified-files": "modifiedFiles"}
_LISTS = re.compile(r"(?:\s*<(read-files|modified-files)>\n.*?\n</\1>)+\s*\Z", re.DOTALL)


def without_lists(summary: str) -> str:
    """A summary's text without the blocks that `Files.lists` put at its end."""
    return _LISTS.sub("", summary)


def _paths(value: Any) -> frozenset[str]:
    paths = value if isinstance(value, list) else ()
    return frozenset(path for path in paths if isinstance(path, str))


# ------------------------------------------------------------------ from calls


def files_of(messages: Iterable[AgentMessage]) -> Files:
    """The files of all calls that did not fail, calls made inside other calls included."""
    read: set[str] = set()
    modified: set[str] = set()
    for name, path in _used(messages):
        (modified if _CHANGES[name] else read).add(path)
    return Files(frozenset(read), frozenset(modified))


def _used(messages: Iterable[AgentMessage]) -> Iterator[tuple[str, str]]:
    open_calls: dict[str, tuple[str, str]] = {}
    for message in messages:
        if isinstance(message, AssistantMessage):
            yield from open_calls.values()  # no result: it may have run
            calls = ((call.id, _file(call.name, call.arguments)) for call in message.tool_calls)
            open_calls = {call_id: file for call_id, file in calls if file is not None}
        elif isinstance(message, ToolResultMessage):
            file = open_calls.pop(message.tool_call_id, None)
            if file is not None and not message.is_error:
                yield file
            yield from _nested(message)
    yield from open_calls.values()


def _nested(result: ToolResultMessage) -> Iterator[tuple[str, str]]:
    calls = (result.nested_calls or {}).get("calls")
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict) and call.get("status") != "error":
            file = _file(call.get("name"), call.get("arguments"))
            if file is not None:
                yield file


def _file(name: Any, arguments: Any) -> tuple[str, str] | None:
    path = arguments.get("path") if isinstance(arguments, Mapping) else None
    return (name, path) if name in _CHANGES and isinstance(path, str) and path else None
