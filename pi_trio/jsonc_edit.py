"""Changing one value in a JSON file that a person keeps: comments, order and layout stay as they are."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen

from pi_trio.jsonc import blanked, key_positions, without_comments

__all__ = ["edited"]

_DECODER = json.JSONDecoder()
_BLANK = re.compile(r"[ \t\r\n]*")


def edited(text: str, keys: Sequence[str], value: Any) -> str:
    """`text` with `value` under these nested keys; None takes the key out.

    `text` is a JSON object, with comments and trailing commas perhaps, or empty. Raises
    `ValueError` if it is something else, or if a key leads through what is no object.
    """
    plain = blanked(text)
    data = json.loads(plain) if plain.strip() else {}
    if not plain.strip():
        text = plain = f"{text.rstrip()}\n{{}}\n" if text.strip() else "{}\n"
        plain = blanked(text)
    if not isinstance(data, dict):
        raise ValueError("it is not a JSON object")
    known = _known(data, keys)
    if known < len(keys):
        if value is None:
            return text
        return _inserted(text, plain, keys[:known], keys[known], _nested(keys[known + 1 :], value))
    place = _place(plain, keys)
    if value is None:
        return _removed(text, plain, place)
    return text[: place.value] + _dumped(value) + text[place.end :]


@frozen
class _Place:
    """Where a key, its value, and the end of the value are."""

    key: int
    value: int
    end: int


def _known(data: Mapping[str, Any], keys: Sequence[str]) -> int:
    """How many of the keys lead somewhere."""
    at: Any = data
    for count, key in enumerate(keys):
        if not isinstance(at, dict):
            raise ValueError(f"`{'.'.join(keys[:count])}` is not an object")
        if key not in at:
            return count
        at = at[key]
    return len(keys)


def _place(plain: str, keys: Sequence[str]) -> _Place:
    key = key_positions(plain)[tuple(keys)]
    _, colon = _DECODER.raw_decode(plain, key)
    value = _skip(plain, _skip(plain, colon) + 1)
    _, end = _DECODER.raw_decode(plain, value)
    return _Place(key, value, end)


def _inserted(text: str, plain: str, above: Sequence[str], key: str, value: Any) -> str:
    """With a further key at the end of the object that the keys `above` lead to."""
    opening = _place(plain, above).value if above else _skip(plain, 0)
    _, end = _DECODER.raw_decode(plain, opening)
    close = end - 1
    last = len(plain[:close].rstrip())
    new = f"{_dumped(key)}: {_dumped(value)}"
    if last == opening + 1:  # there is nothing in it
        indent = _indent(text, opening)
        inside = text[opening + 1 : close].rstrip()
        return f"{text[: opening + 1]}{inside}\n{indent}  {new}\n{indent}{text[close:]}"
    between = text[last:close]
    line, newline, rest = between.partition("\n")
    if not newline:
        return f"{text[:last]}, {new}{text[last:]}"
    comma = "" if "," in without_comments(between) else ","
    return f"{text[:last]}{comma}{line}\n{_indent(text, last)}{new}\n{rest}{text[close:]}"


def _removed(text: str, plain: str, place: _Place) -> str:
    """Without a key, its value, and a comma. A line that was its own goes with it."""
    commas = without_comments(text)
    begin, end = place.key, place.end
    after = _skip(commas, end)
    if commas[after : after + 1] == ",":
        end = after + 1
    else:
        before = len(plain[:begin].rstrip())
        if plain[before - 1] == ",":
            begin = before - 1
    line = text.rfind("\n", 0, begin) + 1
    stop = text.find("\n", end)
    if stop >= 0 and not text[line:begin].strip() and not text[end:stop].strip():
        begin, end = line, stop + 1
    return text[:begin] + text[end:]


def _nested(keys: Sequence[str], value: Any) -> Any:
    for key in reversed(keys):
        value = {key: value}
    return value


def _indent(text: str, at: int) -> str:
    """The blanks at the beginning of a line."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _skip(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
