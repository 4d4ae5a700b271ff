"""Taking secrets out of what leaves the machine. What looks like one is replaced; it cannot know all."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["mask", "mask_text"]

MASK = "[masked]"

_KEYS = re.compile(
    r"""
    \b(?:
        sk-(?:[a-z]+-)*[A-Za-z0-9_-]{8,}             # OpenAI, Anthropic, OpenRouter and others
      | gh[pousr]_[A-Za-z0-9]{20,} | github_pat_\w{20,}
      | glpat-[\w-]{20,}
      | xox[abeprs]-[A-Za-z0-9-]{10,}
      | (?:AKIA|ASIA)[A-Z0-9]{16}
      | AIza[\w-]{30,}
      | gsk_[A-Za-z0-9]{20,} | hf_[A-Za-z0-9]{20,} | npm_[A-Za-z0-9]{30,} | pypi-[\w-]{30,}
      | ey[JK][A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}   # JSON web tokens
    )
    | -----BEGIN\ [A-Z ]*PRIVATE\ KEY-----.*?(?:-----END\ [A-Z ]*PRIVATE\ KEY-----|\Z)
    """,
    re.VERBOSE | re.DOTALL,
)
_NAMED = re.compile(
    r"""(?ix)
    ( \b(?:[a-z0-9]{1,32}[_-]){0,4}
      (?: api[_-]?key | access[_-]?key | secret(?:[_-]?key)? | token | password | passwd | credentials? )
      ["']? \s{0,4} [:=] \s{0,4} ["']?
    | \b bearer \s{1,4} | \b basic \s{1,4} (?=[a-z0-9+/]{12})
    | [a-z][a-z0-9+.-]{0,20} :// [^\s/:@]{0,64} :            # a password in a URL
    )
    ( [^\s"',;<>@]{6,} )
    """
)


def mask_text(text: str) -> str:
    """The text with keys, tokens, passwords and private keys replaced by `[masked]`."""
    return _NAMED.sub(_hide_value, _KEYS.sub(MASK, text))


def _hide_value(found: re.Match[str]) -> str:
    is_url = found[1].endswith(":") and "://" in found[1]
    if is_url and found.string[found.end() : found.end() + 1] != "@":
        return found[0]  # a port and a path, not a password
    return found[1] + MASK


def mask(value: Any) -> Any:
    """JSON data with all its texts masked, except keys and what is base64 of an image."""
    if isinstance(value, str):
        return mask_text(value)
    if isinstance(value, list):
        return [mask(item) for item in value]
    if isinstance(value, dict):
        is_image = value.get("type") == "image"
        return {key: item if is_image and key == "data" else mask(item) for key, item in value.items()}
    return value
