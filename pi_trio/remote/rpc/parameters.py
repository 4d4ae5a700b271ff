"""What a command may say: its fields, each with a test and the words for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from attrs import frozen

from pi_trio.errors import UsageError

__all__ = ["Given", "Parameter", "anything", "check", "choice", "flag", "images", "text"]

Given: TypeAlias = Mapping[str, Any]
"""The fields of a command that were checked. What was left out, or is null, is not there."""


@frozen
class Parameter:
    """A field of a command. `what` says what it must be."""

    name: str
    what: str
    fits: Callable[[Any], bool]
    required: bool = True


def text(name: str, *, required: bool = True) -> Parameter:
    """A field that is a text."""
    return Parameter(name, "a text", lambda value: isinstance(value, str), required)


def flag(name: str, *, required: bool = True) -> Parameter:
    """A field that is true or false."""
    return Parameter(name, "true or false", lambda value: isinstance(value, bool), required)


def choice(name: str, *words: str, required: bool = True) -> Parameter:
    """A field that is one of a few words."""
    return Parameter(name, f"one of {', '.join(words)}", lambda value: value in words, required)


def anything(name: str) -> Parameter:
    """A field, not required, that is handed back as it came."""
    return Parameter(name, "any value", lambda _: True, required=False)


def images(name: str) -> Parameter:
    """A field, not required, that is a list of images as messages have them."""
    what = "a list of images, each with `data` and `mimeType`"
    return Parameter(
        name, what, lambda value: isinstance(value, list) and all(map(_is_image, value)), required=False
    )


def check(parameters: Iterable[Parameter], command: Mapping[str, Any]) -> Given:
    """The fields that a command has. Raises `UsageError` for one that is missing or wrong."""
    given: dict[str, Any] = {}
    for parameter in parameters:
        value = command.get(parameter.name)
        if value is None:
            if parameter.required:
                raise UsageError(f"`{parameter.name}` is missing: it is {parameter.what}.")
        elif not parameter.fits(value):
            raise UsageError(f"`{parameter.name}` must be {parameter.what}.")
        else:
            given[parameter.name] = value
    return given


def _is_image(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(value.get(key), str) for key in ("data", "mimeType"))
