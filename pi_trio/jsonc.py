"""JSON as people write it: `//` comments, trailing commas and a byte order mark are welcome.

Removed parts become blanks, so every place in an error or a finding is a place in the file.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from attrs import frozen

from pi_trio.errors import ConfigError
from pi_trio.plain_file import read_plain_file

__all__ = [
    "JsonDocument",
    "blanked",
    "key_positions",
    "load_jsonc",
    "read_jsonc",
    "read_text",
    "without_comments",
]

_STRING = r'"(?:\\.|[^"\\\n])*"'
_COMMENT = re.compile(rf"{_STRING}|//[^\n]*")
_TRAILING_COMMA = re.compile(rf"{_STRING}|,(?=\s*[}}\]])")
_TOKEN = re.compile(rf"{_STRING}|[{{}}\[\],:]")


@frozen
class JsonDocument:
    """A file that was read: its value, and where in the text each key stands."""

    path: Path
    text: str
    value: Any

    def line(self, *keys: str) -> int:
        """The line of the key that these nested keys lead to; 1 if there is none."""
        position = key_positions(self.text).get(keys, 0)
        return self.text.count("\n", 0, position) + 1


def load_jsonc(path: Path) -> Any:
    """The value in the file. See `read_jsonc` for what is raised."""
    return read_jsonc(path).value


def read_jsonc(path: Path) -> JsonDocument:
    """The file's value with the places of its keys; an empty file is an empty object.

    Raises `FileNotFoundError` if there is no file, and `ConfigError`, naming the file and
    the place, if it cannot be read or is not JSON.
    """
    text = blanked(read_text(path))
    try:
        return JsonDocument(path, text, json.loads(text) if text.strip() else {})
    except json.JSONDecodeError as error:
        raise ConfigError(f"{path}:{error.lineno}:{error.colno}: not valid JSON: {error.msg}") from error
    except RecursionError as error:
        raise ConfigError(f"{path}: nested too deeply") from error


def blanked(text: str) -> str:
    """The text as plain JSON: blanks for comments and trailing commas."""
    return _without(_TRAILING_COMMA, without_comments(text))


def without_comments(text: str) -> str:
    """The text with blanks for its comments."""
    return _without(_COMMENT, text)


def read_text(path: Path) -> str:
    """The file's text, without a byte order mark. Raises as `read_jsonc`."""
    try:
        data = read_plain_file(path)
        return data.decode("utf-8-sig")
    except FileNotFoundError:
        raise
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}:{line}: not UTF-8 text") from error
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error


def _without(pattern: re.Pattern[str], text: str) -> str:
    """`text` with blanks for each match that is not a string."""

    def blank(match: re.Match[str]) -> str:
        found = match[0]
        return found if found.startswith('"') else " " * len(found)

    return pattern.sub(blank, text)


def key_positions(text: str) -> dict[tuple[str, ...], int]:
    """In plain JSON, nested keys to the offset of the innermost one. Array items add no key."""
    positions: dict[tuple[str, ...], int] = {}
    path: list[str] = []
    depths: list[int] = []
    latest: re.Match[str] | None = None
    key: str | None = None
    for token in _TOKEN.finditer(text):
        match token[0]:
            case ":" if latest is not None:
                key = json.loads(latest[0])
                positions[(*path, key)] = latest.start()
            case "{" | "[":
                depths.append(len(path))
                if key is not None:
                    path.append(key)
                key = None
            case "}" | "]":
                del path[depths.pop() :]
                key = None
            case ",":
                key = None
            case _:
                latest = token
    return positions
