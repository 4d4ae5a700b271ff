"""How an extension's entries are shown: a text with places for their data."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

__all__ = ["render"]

_PLACE = re.compile(r"\{([A-Za-z_][\w.]*)\}")


def render(template: str, data: Any) -> str:
    """`template` with each `{field}` or `{field.inner}` replaced by that part of `data`.

    What is missing is empty, and what is no text is shown as JSON. The result is untrusted text.
    """
    return _PLACE.sub(lambda place: _text(_part(data, place[1].split("."))), template)


def _part(data: Any, keys: list[str]) -> Any:
    for key in keys:
        data = data.get(key) if isinstance(data, Mapping) else None
    return data


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
