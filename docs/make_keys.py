"""Writes the table of `keys.md` from the table of the program: `python docs/make_keys.py`."""

from __future__ import annotations

from pathlib import Path

from pi_tui.keymap import KEYS, key_label

PAGE = Path(__file__).parent / "keys.md"
BEGIN = "| id | keys | what it does | where |\n| --- | --- | --- | --- |\n"


def table() -> str:
    """A row for each key."""
    rows = (
        f"| `{key.id}` | {' '.join(dict.fromkeys(f'`{key_label(each)}`' for each in key.keys.split(',')))} "
        f"| {key.help} | {key.area} |\n"
        for key in KEYS
    )
    return BEGIN + "".join(rows)


if __name__ == "__main__":
    text = PAGE.read_text("utf-8")
    PAGE.write_text(text[: text.index(BEGIN)] + table(), "utf-8")
