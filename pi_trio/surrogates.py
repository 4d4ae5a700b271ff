"""Half letters: a lone surrogate is text that no request and no file can carry."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["mend", "mend_text"]

_SURROGATE = re.compile("[\ud800-\udfff]")


def mend_text(text: str) -> str:
    """The text with split pairs joined and lone surrogates replaced by U+FFFD."""
    if not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def mend(value: Any) -> Any:
    """JSON data with all its text mended, keys as well."""
    if isinstance(value, str):
        return mend_text(value)
    if isinstance(value, list):
        return [mend(item) for item in value]
    if isinstance(value, dict):
        return {mend_text(key): mend(item) for key, item in value.items()}
    return value
