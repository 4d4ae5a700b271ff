"""An image as a model is given it: what a provider would refuse is mended, or refused here.

A refused image that is in a session would make every later request of it fail.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator

from attrs import frozen

from pi_trio.images import ImageHeader, is_whole
from pi_trio.messages import ImageContent
from pi_trio.tools.failure import ToolError
from pi_trio.tools.resize import FittedImage, fitted
from pi_trio.tools.truncate import format_size

__all__ = ["Picture", "check_openable", "picture"]

MAX_SIDE = 2000
MAX_BYTES = 4_718_592 * 3 // 4
"""4.5 MiB as base64."""

MAX_PIXELS = 64_000_000
MAX_FILE_BYTES = 64 << 20
"""Larger images are not opened, however well they are packed."""


@frozen
class Picture:
    """The image, and what a model must know of how it differs from the file."""

    image: ImageContent
    notes: tuple[str, ...]


def check_openable(header: ImageHeader, file_size: int) -> None:
    """Raise `ToolError` for an image that would take too much memory."""
    if header.width * header.height > MAX_PIXELS or file_size > MAX_FILE_BYTES:
        raise ToolError(
            f"The image of {_size(header)} and {format_size(file_size)} is too large to be opened."
        )


def picture(header: ImageHeader, data: bytes) -> Picture:
    """The image of a file's content, made smaller or converted if need be. Blocks.

    Raises `ToolError` for one that is damaged, too large, or needs Pillow where there is none.
    """
    check_openable(header, len(data))
    if not is_whole(header.mime_type, data):
        raise ToolError(f"The image of {_size(header)} is damaged: its end is missing.")
    image = FittedImage(data, header.mime_type, header.size, header.size)
    if not _fits(header, data):
        try:
            image = fitted(data, MAX_SIDE, MAX_BYTES)
        except ToolError as error:
            raise ToolError(
                f"The image of {_size(header)} must be made smaller or converted. {error}"
            ) from None
    encoded = ImageContent(base64.b64encode(image.data).decode(), image.mime_type)
    return Picture(encoded, tuple(_notes(header, image)))


def _size(header: ImageHeader) -> str:
    return f"{header.width}×{header.height}"


def _fits(header: ImageHeader, data: bytes) -> bool:
    if header.mime_type == "image/bmp":  # providers do not know it
        return False
    return max(header.size) <= MAX_SIDE and len(data) <= MAX_BYTES


def _notes(header: ImageHeader, image: FittedImage) -> Iterator[str]:
    if image.mime_type != header.mime_type:
        yield f"[Converted from {header.mime_type}.]"
    if image.size != image.original:
        (width, height), (shown_width, shown_height) = image.original, image.size
        yield (
            f"[Original {width}x{height}, shown as {shown_width}x{shown_height}. "
            f"Multiply coordinates by {width / shown_width:.2f} to get those of the original.]"
        )
