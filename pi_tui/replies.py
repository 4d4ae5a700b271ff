"""What a terminal says of its own ground, picked out of the keys that come the same way: pure.

Only the answer to one question is taken, and only whole: whatever else begins like it was
typed, and is left as it came.
"""

from __future__ import annotations

import re

from pi_tui.colour import lightness

__all__ = ["GROUND_QUESTION", "is_certain", "is_dark", "split_replies"]

GROUND_QUESTION = "\x1b]11;?\x1b\\"
"""Asks a terminal for the colour of its ground."""

_REPLY = re.compile(r"\x1b\]11;([^\x07\x1b]{0,64})(?:\x07|\x1b\\)")
_BEGUN = re.compile(r"(?<!\x1b)\x1b(?:\](?:1(?:1(?:;[^\x07\x1b]{0,64}\x1b?)?)?)?)?\Z")
_COLOUR = re.compile(r"rgba?:([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})")


def split_replies(data: str) -> tuple[str, list[str], str]:
    """The keys in what came, the replies, and an end that may be the beginning of a reply."""
    replies = _REPLY.findall(data)
    keys = _REPLY.sub("", data) if replies else data
    begun = _BEGUN.search(keys)
    return (keys[: begun.start()], replies, begun[0]) if begun else (keys, replies, "")


def is_certain(begun: str) -> bool:
    """Whether the beginning of a reply can be nothing else: nobody types it."""
    return begun.startswith("\x1b]11;")


def is_dark(reply: str) -> bool | None:
    """Whether the ground that a reply tells is dark; None if it tells none."""
    found = _COLOUR.match(reply)
    if found is None:
        return None
    red, green, blue = (int(digits, 16) / (16 ** len(digits) - 1) for digits in found.groups())
    return lightness(red, green, blue) < 0.5
