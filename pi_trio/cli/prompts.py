"""From a command line and standard input to the prompts that are sent."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from pathlib import Path

from attrs import frozen

from pi_trio.errors import UsageError
from pi_trio.messages import ImageContent
from pi_trio.resources.paths import absolute

__all__ = ["Prompt", "gather_prompts"]

_IMAGE_STARTS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}


@frozen
class Prompt:
    """What is sent at once."""

    text: str
    images: tuple[ImageContent, ...] = ()


def gather_prompts(arguments: Iterable[str], piped: str) -> list[Prompt]:
    """The prompts in order: piped text, `@` files and the first message make the first one.

    Every other message is a prompt of its own. Raises `UsageError` for a file that cannot
    be used, or if there is nothing to send.
    """
    messages: list[str] = []
    blocks = [piped if not piped or piped.endswith("\n") else piped + "\n"]
    images: list[ImageContent] = []
    for argument in arguments:
        if not argument.startswith("@"):
            messages.append(argument)
        elif attached := _attach(absolute(argument[1:])):
            blocks.append(attached.text)
            images.extend(attached.images)
    first = Prompt("".join([*blocks, *messages[:1]]), tuple(images))
    if not first.text.strip():
        raise UsageError("there is no prompt: give it as an argument or on standard input")
    return [first, *(Prompt(message) for message in messages[1:])]


def _attach(path: Path) -> Prompt | None:
    """A file as part of a prompt; None for an empty one."""
    try:
        data = path.read_bytes()
        text = "" if (mime_type := _image_type(data)) else data.decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"@{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"@{path} is neither text nor an image") from error
    if mime_type:
        image = ImageContent(base64.b64encode(data).decode(), mime_type)
        return Prompt(f'<file name="{path}"></file>\n', (image,))
    return Prompt(f'<file name="{path}">\n{text}\n</file>\n') if text else None


def _image_type(data: bytes) -> str | None:
    """The MIME type by content, not by name. None if it is no image that models take."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in _IMAGE_STARTS.items() if data.startswith(start)), None)
