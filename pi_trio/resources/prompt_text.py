"""Files that people write for a model: read whole, small, plain text, letter for letter.

A skill, a template or a rules file may begin with front matter, a block of YAML between two
lines `---`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

from pi_trio.errors import ConfigError
from pi_trio.plain_file import read_plain_file

__all__ = ["MAX_PROMPT_FILE_BYTES", "Document", "read_document", "read_prompt_text"]

MAX_PROMPT_FILE_BYTES = 256 * 1024
"""More than this in a request is a mistake: about 64,000 tokens."""

_FRONT_MATTER = re.compile(r"---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)


@frozen
class Document:
    """A file's front matter, empty if it has none, and the text after it."""

    head: Mapping[str, Any]
    body: str

    def text(self, key: str) -> str:
        """A value of the front matter as one line of text; empty if there is none."""
        value = self.head.get(key)
        return "" if value is None else " ".join(str(value).split())


def read_document(path: Path) -> Document:
    """A file with its front matter taken apart. Raises `ConfigError` like `read_prompt_text`."""
    text = read_prompt_text(path)
    match = _FRONT_MATTER.match(text)
    if match is None:
        return Document({}, text)
    return Document(_front_matter(path, match[1]), text[match.end() :].lstrip("\r\n"))


def read_prompt_text(path: Path) -> str:
    """The text of a plain file of reasonable size.

    Raises `ConfigError`, a sentence that says why the file was left out.
    """
    try:
        return _read(path)
    except OSError as error:
        reason = error.strerror or "it cannot be read"
    except UnicodeDecodeError:
        reason = "it is not UTF-8 text"
    except ValueError as error:
        reason = str(error)
    raise ConfigError(f"{path} was left out: {reason}")


def _front_matter(path: Path, text: str) -> Mapping[str, Any]:
    import yaml  # here, because most starts meet no front matter

    try:
        head = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: a date like 2030-99-99
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 2 if mark else 1
        what = getattr(error, "problem", None) or str(error)
        raise ConfigError(f"{path}:{line} was left out: its front matter is not YAML: {what}") from error
    if head is None:
        return {}
    if not isinstance(head, dict):
        raise ConfigError(f"{path}:1 was left out: its front matter is not a list of keys and values")
    return head


def _read(path: Path) -> str:
    """The text of a regular file. Raises `OSError`, or `ValueError` for too much text."""
    data = read_plain_file(path, MAX_PROMPT_FILE_BYTES + 1)
    if len(data) > MAX_PROMPT_FILE_BYTES:
        raise ValueError(f"it is larger than {MAX_PROMPT_FILE_BYTES // 1024} KiB")
    return data.decode("utf-8-sig")
