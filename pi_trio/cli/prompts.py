"""From a command line and standard input to the prompts that are sent."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from attrs import frozen

from pi_trio.errors import UsageError
from pi_trio.images import read_header
from pi_trio.messages import ImageContent
from pi_trio.plain_file import read_plain_file
from pi_trio.resources.paths import absolute
from pi_trio.tools.failure import ToolError
from pi_trio.tools.picture import picture

__all__ = ["Prompt", "gather_prompts"]


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
        data = read_plain_file(path)
        if header := read_header(data):
            shown = picture(header, data)
            return Prompt(f'<file name="{path}">{" ".join(shown.notes)}</file>\n', (shown.image,))
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"@{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"@{path} is neither text nor an image") from error
    except ToolError as error:
        raise UsageError(f"@{path}: {error}") from error
    return Prompt(f'<file name="{path}">\n{text}\n</file>\n') if text else None
