"""What `pi-trio doctor` says about the screen's own files: key bindings and themes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pi_trio.doctor import Finding
from pi_trio.errors import ConfigError
from pi_tui.key_clashes import clashes
from pi_tui.keymap import load_keymap, unknown_actions
from pi_tui.theme import load_theme, theme_names

if TYPE_CHECKING:
    from pi_trio.resources.config import RuntimeConfig

__all__ = ["examine_screen"]


def examine_screen(config: RuntimeConfig, folders: Sequence[Path]) -> Iterator[Finding]:
    """Look at the user's key bindings, and at all themes in these folders."""
    keys = config.agent_dir / "keybindings.json"
    try:
        for sentence in (*clashes(load_keymap(keys)), *unknown_actions(keys)):
            yield Finding("odd", sentence)
    except ConfigError as error:
        yield Finding("bad", str(error), "Mend the file, or take it away: until then pi-tui does not start.")
    count = 0
    for folder in folders:
        for name in theme_names([folder]):
            count += 1
            try:
                load_theme(name, [folder])
            except ConfigError as error:
                yield Finding("odd", str(error), "Until then it cannot be chosen.")
    yield Finding("ok", f"{count} themes; {keys if keys.exists() else 'the usual keys'}")
