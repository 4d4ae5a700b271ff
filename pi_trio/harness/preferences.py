"""The settings of an open session: which files have them, and a change that does not spoil the next start."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pi_trio.errors import UsageError
from pi_trio.resources.config import RuntimeConfig
from pi_trio.resources.setting_changes import Scope, change_setting
from pi_trio.resources.trust import TrustStore
from pi_trio.tools.rules import parse_rules

__all__ = ["change_preference", "setting_files"]


def setting_files(config: RuntimeConfig) -> Mapping[Scope, Path]:
    """The files, the person's first. A folder that is not trusted has none that counts."""
    files: dict[Scope, Path] = {"global": config.agent_dir / "settings.json"}
    if config.trust.trusted or not config.trust.resources:
        files["project"] = config.cwd / ".pi" / "settings.json"
    return files


def change_preference(config: RuntimeConfig, scope: Scope, key: str, value: Any) -> None:
    """Write a setting; see `change_setting`. It holds after `reload`, or in the next session.

    Raises `UsageError` for a scope that cannot be changed here, and for a rule of the gate that
    cannot be read, which would keep the program from starting.
    """
    path = setting_files(config).get(scope)
    if path is None:
        raise UsageError("this folder is not trusted, so its settings do not count: /trust decides")
    if key in ("gate.allow", "gate.deny") and isinstance(value, list):
        try:
            parse_rules(value)
        except ValueError as error:
            raise UsageError(f"{key}: {error}") from None
    trusted = TrustStore(config.agent_dir).decision(config.cwd) or not config.trust.resources
    change_setting(path, key, value)
    if scope == "project" and trusted:  # a person's own change is nothing to ask that person about
        now = config.at(config.cwd).trust.resources
        TrustStore(config.agent_dir).remember(config.cwd, True, config.cwd, now)
