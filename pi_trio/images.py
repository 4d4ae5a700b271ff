"""What an image is, from its bytes: never from its name, and without unpacking it."""

from __future__ import annotations

from attrs import frozen

__all__ = ["ImageHeader", "is_whole", "read_header"]

_BITMAP_HEADERS = (12, 40, 52, 56, 64, 108, 124)
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


@frozen
class ImageHeader:
    """The kind of an image, and its size in pixels."""

    mime_type: str
    width: int
    height: int

    @property
    def size(self) -> tuple[int, int]:
        """Width and height."""
        return self.width, self.height


def read_header(data: bytes) -> ImageHeader | None:
    """The header that `data`, the start of a file, begins with; None if it is no known image."""
    if data.startswith(b"\x89PNG\r\n\x1a\n") and data[12:16] == b"IHDR":
        return ImageHeader("image/png", _big(data[16:20]), _big(data[20:24]))
    if data.startswith((b"GIF87a", b"GIF89a")) and len(data) > 10:
        return ImageHeader("image/gif", _little(data[6:8]), _little(data[8:10]))
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return _webp(data)
    if data.startswith(b"BM") and _little(data[14:18]) in _BITMAP_HEADERS:
        return ImageHeader("image/bmp", _little(data[18:22]), _little(data[22:26]))
    if data.startswith(b"\xff\xd8\xff"):
        return _jpeg(data)
    return None


def is_whole(mime_type: str, data: bytes | bytearray) -> bool:
    """Whether the end of the image is there. Providers refuse a request with a cut one for good."""
    match mime_type:
        case "image/png":
            return data.endswith(b"IEND\xaeB`\x82")
        case "image/jpeg":
            return b"\xff\xd9" in data[-64:]  # cameras pad
        case "image/gif":
            return data.rstrip(b"\0").endswith(b";")
        case "image/webp":
            return len(data) >= _little(data[4:8]) + 8
        case _:
            return True


def _webp(data: bytes) -> ImageHeader | None:
    match data[12:16]:
        case b"VP8X":
            size = _little(data[24:27]) + 1, _little(data[27:30]) + 1
        case b"VP8L":
            bits = _little(data[21:25])
            size = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8 ":
            size = _little(data[26:28]) & 0x3FFF, _little(data[28:30]) & 0x3FFF
        case _:
            return None
    return ImageHeader("image/webp", *size)


def _jpeg(data: bytes) -> ImageHeader | None:
    """Walk the segments to the frame header."""
    at = 2
    while at + 9 < len(data) and data[at] == 0xFF:
        if data[at + 1] in _JPEG_FRAMES:
            return ImageHeader("image/jpeg", _big(data[at + 7 : at + 9]), _big(data[at + 5 : at + 7]))
        at += 1 if data[at + 1] == 0xFF else 2 + _big(data[at + 2 : at + 4])
    return None


def _big(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _little(data: bytes | bytearray) -> int:
    return int.from_bytes(data, "little")
