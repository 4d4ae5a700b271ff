"""Finding sessions by words, reading each file once and parsing only lines that may have them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from attrs import frozen

from pi_trio.messages import AssistantMessage, UserMessage, text_of
from pi_trio.session.entries import MessageEntry, entry_from_json
from pi_trio.session.scan import entry_object
from pi_trio.session.summary import SessionSummary, blocks_backward

__all__ = ["Hit", "Query", "needle", "words"]

_WORDS = re.compile(r'"([^"]+)"|(\S+)')
_PLAIN = re.compile(r"[ !#-.0-[\]-~]+")
"""What JSON writes as it is, in lower case and in upper case alike."""

AROUND = 40
"""Characters shown before and after what was found."""


@frozen
class Hit:
    """A session that has all the words. `excerpt` is where a message has one, empty if none has."""

    summary: SessionSummary
    excerpt: str
    in_name: bool


class Query:
    """Words to be found, without regard to case; those in double quotes stand together."""

    def __init__(self, text: str) -> None:
        self._words = words(text)

    def look(self, summary: SessionSummary) -> Hit | None:
        """The session as a hit, if name, id, directory and messages have all the words.

        Raises `OSError`.
        """
        about = "\n".join((summary.name or "", summary.id, summary.cwd)).casefold()
        missing = {word for word in self._words if word not in about}
        excerpt = ""
        if missing:
            with summary.path.open("rb") as file:
                for text in self._texts(blocks_backward(file), missing):
                    folded = text.casefold()
                    found = {word for word in missing if word in folded}
                    if found:
                        excerpt = excerpt or _excerpt(text, folded.find(min(found)))
                        missing -= found
        name = (summary.name or "").casefold()
        return None if missing else Hit(summary, excerpt, all(word in name for word in self._words))

    def _texts(self, blocks: Iterator[bytes], missing: set[str]) -> Iterator[str]:
        """What was said in lines that may have one of the words still `missing`."""
        for block in blocks:
            lower = block.lower()
            for word in self._words:
                sought = needle(word)
                end = 0
                while word in missing and (place := lower.find(sought, end)) >= 0:
                    start, end = block.rfind(b"\n", 0, place) + 1, block.find(b"\n", place)
                    end = len(block) if end < 0 else end + 1
                    yield _said(entry_object(block[start:end]) or {})
            if not missing:
                return


def words(text: str) -> list[str]:
    """What a query asks for, without case; what stands in double quotes is one word."""
    return [(quoted or word).casefold() for quoted, word in _WORDS.findall(text)]


def needle(word: str) -> bytes:
    """The longest part of the word that stands in a file as it is."""
    return max(_PLAIN.findall(word), key=len, default="\n").encode()


def _said(data: Mapping[str, Any]) -> str:
    entry = entry_from_json(data)
    if isinstance(entry, MessageEntry) and isinstance(entry.message, (UserMessage, AssistantMessage)):
        return text_of(entry.message.content)
    return ""


def _excerpt(text: str, place: int) -> str:
    start, end = max(0, place - AROUND), place + AROUND
    middle = " ".join(text[start:end].split())
    return f"{'…' * (start > 0)}{middle}{'…' * (end < len(text))}"
