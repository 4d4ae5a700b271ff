"""The end of a session, without opening it."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from pi_trio.messages import AssistantMessage, UserMessage, text_of
from pi_trio.session.entries import MessageEntry, entry_from_json
from pi_trio.session.scan import entry_object
from pi_trio.session.summary import blocks_backward

__all__ = ["last_exchange"]

_BLOCKS = 4
"""Megabytes at the end of a file that are looked through."""


def last_exchange(path: Path) -> tuple[str, str]:
    """The last prompt in a file, on whatever branch, and the last answer with a text. Raises `OSError`."""
    prompt = answer = ""
    with path.open("rb") as file:
        for block in islice(blocks_backward(file), _BLOCKS):
            for line in reversed(block.split(b"\n")):
                if b'"message"' not in line:
                    continue
                entry = entry_from_json(entry_object(line) or {})
                message = entry.message if isinstance(entry, MessageEntry) else None
                if isinstance(message, UserMessage):
                    prompt = prompt or text_of(message.content)
                elif isinstance(message, AssistantMessage):
                    answer = answer or text_of(message.content)
                if prompt and answer:
                    return prompt, answer
    return prompt, answer
