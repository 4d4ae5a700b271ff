"""Making an image small enough for a model, with Pillow, which is an extra."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from attrs import frozen

from pi_trio.tools.failure import ToolError

if TYPE_CHECKING:
    from PIL import Image

__all__ = ["FittedImage", "fitted"]

SMALLER = 0.75
QUALITIES = (80, 70, 55, 40)


@frozen
class FittedImage:
    """An encoded image, its size in pixels, and that of the original as a person sees it."""

    data: bytes
    mime_type: str
    size: tuple[int, int]
    original: tuple[int, int]


def fitted(data: bytes, max_side: int, max_bytes: int) -> FittedImage:
    """The largest form of the image that is within the limits, as PNG or JPEG. Blocks.

    Of an animation it is the first picture. Raises `ToolError` for an image that cannot be
    decoded, or if Pillow is not installed.
    """
    try:
        from PIL import Image
    except ImportError:
        raise ToolError(
            "That takes Pillow, which is not installed: `pip install 'pi-trio[images]'` brings it."
        ) from None
    try:
        with Image.open(io.BytesIO(data)) as source:
            is_photo = source.format == "JPEG"
            source.draft("RGB", (max_side, max_side))  # decodes a large photo in a smaller form at once
            upright, original = _upright(source)
            upright.thumbnail((max_side, max_side))
            return _encoded(upright, original, max_bytes, is_photo)
    except Exception as error:  # whatever a decoder raises for damaged data
        raise ToolError(f"It cannot be decoded: {error or type(error).__name__}.") from error


def _upright(source: Image.Image) -> tuple[Image.Image, tuple[int, int]]:
    """In colours that both forms have, turned as the camera was held; and the original's size."""
    from PIL import ImageOps

    turned = ImageOps.exif_transpose(source)
    has_alpha = "A" in turned.getbands() or "transparency" in turned.info
    return turned.convert("RGBA" if has_alpha else "RGB"), turned.size


def _encoded(image: Image.Image, original: tuple[int, int], max_bytes: int, is_photo: bool) -> FittedImage:
    while True:
        forms = [] if is_photo else [(_bytes(image, "PNG", optimize=True), "image/png")]
        for quality in QUALITIES:
            forms.append((_bytes(_opaque(image), "JPEG", quality=quality), "image/jpeg"))
            data, mime_type = min(forms, key=lambda form: len(form[0]))
            if len(data) <= max_bytes:
                return FittedImage(data, mime_type, image.size, original)
        width, height = image.size
        image = image.resize((max(1, int(width * SMALLER)), max(1, int(height * SMALLER))))


def _opaque(image: Image.Image) -> Image.Image:
    """On white, since JPEG has no transparency."""
    if image.mode != "RGBA":
        return image
    from PIL import Image

    white = Image.new("RGBA", image.size, "white")
    white.alpha_composite(image)
    return white.convert("RGB")


def _bytes(image: Image.Image, form: str, **options: object) -> bytes:
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()
