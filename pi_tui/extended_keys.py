"""Keys that newer keyboard protocols report as numbers, in the forms that Textual reads rightly: pure.

Textual asks for Kitty's protocol and understands what that sends; but a terminal may use
xterm's `modifyOtherKeys`, may report printable keys by their number, from which Textual makes
a key that types nothing, or may tell what else is on a key, on which its parser breaks. And
with another alphabet ctrl+c is reported as ctrl+с.
"""

from __future__ import annotations

import re
import sys

__all__ = ["plain_keys"]

_OTHER_KEYS = re.compile("\x1b\\[27;(\\d+);(\\d+)~")
_KITTY = re.compile("\x1b\\[(\\d+)(?::(\\d*))?(?::(\\d*))?(?:;(\\d*)(?::(\\d+))?)?(?:;([\\d:]*))?u")
_ALT_CHARACTER = re.compile("\x1b([a-z0-9<>.,/=_-])")

SHIFT, ALT = 1, 2
"""Bits of a modifier; ctrl is 4, and from 64 on there is what a lock key adds."""

_LOCKS = 64 | 128
_PRIVATE = range(0xE000, 0xF900)
"""What stands for keys without a character, such as those of the number block."""

_PAD = {57409 + at: sign for at, sign in enumerate("./*-+")} | {57415: "="}
"""Signs of the number block, which Textual names and does not type."""

_CYRILLIC = dict(zip("йцукенгшщзхъфывапролджэячсмитьбю", "qwertyuiop[]asdfghjkl;'zxcvbnm,.", strict=True))
"""The letters of the Russian layout by the key that they share with the Latin one."""

_RELEASED = "3"


def plain_keys(data: str) -> str:
    """What one read from the terminal gave, with such keys rewritten."""
    data = _OTHER_KEYS.sub("\x1b[\\2;\\1u", data)
    if len(data) == 2:  # with more behind it, it may be anything
        data = _ALT_CHARACTER.sub(lambda found: f"\x1b[{ord(found[1])};3u", data)
    return _KITTY.sub(_plain, data)


def _plain(found: re.Match[str]) -> str:
    """One key: the character that it types, or its number alone with the modifiers that count."""
    code, shifted, base, modifiers, event, text = (each or "" for each in found.groups())
    number = int(code)
    if event == _RELEASED or number > sys.maxunicode:
        return ""
    bits = (int(modifiers or 1) - 1) & ~_LOCKS
    if bits <= (SHIFT | ALT if text else SHIFT):  # Alt composes letters on some keyboards
        typed = _typed(number, shifted, text, shift=bool(bits & SHIFT))
        if typed:
            return typed
    if bits > SHIFT:
        number = int(base) if base else ord(_CYRILLIC.get(chr(number), chr(number)))
    return f"\x1b[{number}u" if not bits else f"\x1b[{number};{bits + 1}u"


def _typed(number: int, shifted: str, text: str, *, shift: bool) -> str:
    """The text of a key that types some; empty for all others."""
    if number in _PAD:
        return _PAD[number]
    if number < 0x20 or number == 0x7F or number in _PRIVATE:
        return ""
    if text:
        return "".join(chr(int(part)) for part in text.split(":") if part)
    if shift and number == 0x20:
        return " "
    return chr(int(shifted)) if shift and shifted else chr(number).upper() if shift else chr(number)
