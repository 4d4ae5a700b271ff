"""Colour values of pi's theme files, and how well two colours can be told apart."""

from __future__ import annotations

import math
import re
from functools import cache

__all__ = ["ANSI_NAMES", "contrast", "lightness", "nearest_of_256", "parse_colour"]

ANSI_NAMES = tuple(
    f"ansi_{bright}{name}"
    for bright in ("", "bright_")
    for name in ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
)
"""The first sixteen palette colours, whose look is the terminal's own business."""

_HEX = re.compile(r"#([0-9a-fA-F]{3}|[0-9a-fA-F]{6})")
_OKLCH = re.compile(r"oklch\(\s*([\d.]+)(%?)\s+([\d.]+)\s+([\d.]+)(?:deg)?\s*\)")
_CUBE = (0, 95, 135, 175, 215, 255)


def parse_colour(value: str | int) -> str | None:
    """`#rrggbb`, a name of `ANSI_NAMES`, `""` for the terminal's default; None if it is no colour."""
    if isinstance(value, int):
        return _from_palette(value) if 0 <= value <= 255 else None
    if value == "":
        return ""
    if match := _HEX.fullmatch(value):
        digits = match[1].lower()
        return "#" + (digits if len(digits) == 6 else "".join(digit * 2 for digit in digits))
    if match := _OKLCH.fullmatch(value):
        lightness = float(match[1]) / (100 if match[2] else 1)
        return _from_oklch(lightness, float(match[3]), float(match[4]))
    return None


def contrast(first: str, second: str) -> float:
    """The WCAG contrast ratio of two `#rrggbb` colours, 1 to 21."""
    light, dark = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@cache
def nearest_of_256(colour: str) -> str:
    """The `#rrggbb` colour that looks most like one, of those that a terminal with 256 colours has."""
    wanted = _oklab(colour)
    return min(_palette(), key=lambda each: math.dist(_oklab(each), wanted))


@cache
def _palette() -> tuple[str, ...]:
    return tuple(map(_from_palette, range(16, 256)))


@cache
def _oklab(colour: str) -> tuple[float, float, float]:
    """A colour where equal distances look equal."""
    red, green, blue = _channels(colour)
    long = math.cbrt(0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue)
    medium = math.cbrt(0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue)
    short = math.cbrt(0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue)
    return (
        0.2104542553 * long + 0.7936177850 * medium - 0.0040720468 * short,
        1.9779984951 * long - 2.4285922050 * medium + 0.4505937099 * short,
        0.0259040371 * long + 0.7827717662 * medium - 0.8086757660 * short,
    )


def lightness(red: float, green: float, blue: float) -> float:
    """How light a colour looks, 0 to 1; its parts are 0 to 1, too."""
    luminance = 0.2126 * _linear(red) + 0.7152 * _linear(green) + 0.0722 * _linear(blue)
    return 1.16 * luminance ** (1 / 3) - 0.16 if luminance > 0.008856 else 9.033 * luminance


def _from_palette(index: int) -> str:
    if index < 16:
        return ANSI_NAMES[index]
    if index >= 232:
        level = 8 + 10 * (index - 232)
        return _hex(level, level, level)
    red, rest = divmod(index - 16, 36)
    green, blue = divmod(rest, 6)
    return _hex(_CUBE[red], _CUBE[green], _CUBE[blue])


def _from_oklch(lightness: float, chroma: float, hue: float) -> str:
    a = chroma * math.cos(math.radians(hue))
    b = chroma * math.sin(math.radians(hue))
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    return _hex(
        _gamma(4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short),
        _gamma(-1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short),
        _gamma(-0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short),
    )


def _gamma(linear: float) -> int:
    value = min(max(linear, 0.0), 1.0)
    encoded = 12.92 * value if value <= 0.0031308 else 1.055 * value ** (1 / 2.4) - 0.055
    return round(255 * encoded)


def _hex(red: int, green: int, blue: int) -> str:
    return f"#{red:02x}{green:02x}{blue:02x}"


def _luminance(colour: str) -> float:
    red, green, blue = _channels(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _channels(colour: str) -> tuple[float, float, float]:
    """Red, green and blue as amounts of light."""
    red, green, blue = (_linear(int(colour[at : at + 2], 16) / 255) for at in (1, 3, 5))
    return red, green, blue


def _linear(value: float) -> float:
    return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
