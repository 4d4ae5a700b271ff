"""The page of settings is the table of settings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints

import attrs

from pi_trio.codec import json_name
from pi_trio.resources.settings import Settings

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"


def _rows(table: Any, above: str = "") -> Iterator[str]:
    for name, hint in get_type_hints(type(table), include_extras=True).items():
        key, value = above + json_name(name), getattr(table, name)
        if attrs.has(hint):
            yield from _rows(value, f"{key}.")
        else:
            default = "–" if value is None else f"`{json.dumps(value)}`"
            yield f"| `{key}` | {default} | {hint.__metadata__[1]} |"


def test_every_setting_has_its_row() -> None:
    rows = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| `")]
    assert rows == list(_rows(Settings()))
