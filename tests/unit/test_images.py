from __future__ import annotations

import io

import pytest
from PIL import Image

from pi_trio.images import ImageHeader, is_whole, read_header


def encoded(kind: str, **options: object) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (37, 21), "teal").save(file, kind, **options)
    return file.getvalue()


@pytest.mark.parametrize(
    ("data", "mime_type"),
    [
        (encoded("PNG"), "image/png"),
        (encoded("JPEG"), "image/jpeg"),
        (encoded("JPEG", progressive=True), "image/jpeg"),
        (encoded("GIF"), "image/gif"),
        (encoded("WEBP"), "image/webp"),
        (encoded("WEBP", lossless=True), "image/webp"),
        (encoded("WEBP", exif=b"Exif\0\0"), "image/webp"),
        (encoded("BMP"), "image/bmp"),
    ],
)
def test_kind_size_and_end(data, mime_type):
    assert read_header(data) == ImageHeader(mime_type, 37, 21)
    assert is_whole(mime_type, data)
    if mime_type != "image/bmp":
        assert not is_whole(mime_type, data[:-70])


@pytest.mark.parametrize(
    "data", [b"", b"GIF animations are old", b"BM is short for", b"\xff\xd8\xff", b"RIFF"]
)
def test_text_that_begins_like_an_image(data):
    assert read_header(data) is None
