"""Images on their way into the prompt: from a path that was pasted, or from the clipboard."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from pi_trio.errors import UsageError
from pi_trio.images import read_header
from pi_trio.plain_file import read_plain_file
from pi_trio.written_path import home_expanded

if TYPE_CHECKING:
    from pi_trio.messages import ImageContent

__all__ = ["clipboard_image", "load_image", "pasted_image"]

_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp"})
_LONGEST = 4096
_PATIENCE = 3.0
"""Seconds that a clipboard program may take."""

_CLIPBOARDS = (
    ("wl-paste", "--no-newline", "--type", "image/png"),
    ("xclip", "-selection", "clipboard", "-target", "image/png", "-out"),
    ("pngpaste", "-"),
)


def pasted_image(text: str) -> Path | None:
    """The image file that a pasted text names, as terminals write a file that is dropped on them."""
    text = text.strip()
    if not text or len(text) > _LONGEST or "\n" in text:
        return None
    try:
        unquoted = _unquoted(text)
        path = home_expanded(unquoted) if text.startswith("~") else Path(unquoted)
        is_image = path.suffix.lower() in _SUFFIXES and path.is_absolute() and path.is_file()
    except (OSError, ValueError):
        return None  # too long for a name, with a NUL in it, or half an address: not a path
    return path if is_image else None


def load_image(path: Path) -> ImageContent:
    """The image of a file as a model is given it. Blocks; raises `UsageError`."""
    from pi_trio.tools.failure import ToolError  # the first frame needs none of the tools
    from pi_trio.tools.picture import picture

    try:
        data = read_plain_file(path)
        header = read_header(data)
        if header is None:
            raise UsageError(f"{path} is no image that a model can be shown")
        return picture(header, data).image
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    except ToolError as error:
        raise UsageError(f"{path}: {error}") from error


def clipboard_image() -> Path | None:
    """The image in the clipboard, in a private file of its own; None if there is none, or no way to it.

    Blocks.
    """
    command = next((each for each in _CLIPBOARDS if shutil.which(each[0])), None)
    if command is None:
        return None
    try:
        found = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=_PATIENCE
        )
    except (OSError, subprocess.TimeoutExpired):
        return None  # a clipboard that does not answer has no image for us
    if found.returncode or read_header(found.stdout) is None:
        return None
    with tempfile.NamedTemporaryFile(prefix="pi-clipboard-", suffix=".png", delete=False) as file:
        file.write(found.stdout)
    return Path(file.name)


def _unquoted(text: str) -> str:
    if text.startswith("file://"):
        return unquote(urlsplit(text).path)
    if re.search(r"""["'\\]""", text):
        try:
            words = shlex.split(text)
        except ValueError:
            return text  # quotes that do not end are letters
        return words[0] if len(words) == 1 else text
    return text
