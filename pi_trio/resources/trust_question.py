"""The question whether a folder's own resources are used: its words, and what an answer does."""

from __future__ import annotations

from attrs import evolve

from pi_trio.resources.config import RuntimeConfig
from pi_trio.resources.trust import TrustStore

__all__ = ["TRUST_CHOICES", "after_trust", "trust_question"]

TRUST_CHOICES = (
    "Trust this folder",
    "Trust the folder above it",
    "Trust this folder, this time only",
    "Do not trust this folder",
    "Do not trust this folder, this time only",
)
"""The answers; the last is what no answer means."""


def trust_question(config: RuntimeConfig) -> str:
    """What is asked, in lines. It names files, whose names are not to be relied on."""
    why = "has changed since you trusted it" if config.trust.changed else "brings things of its own"
    paths = [f"  {path}" for path in config.trust.resources]
    return "\n".join([f"{config.cwd} {why}; these can run commands on this machine:", *paths])


def after_trust(config: RuntimeConfig, choice: int | None) -> RuntimeConfig:
    """The configuration after an answer, an index of `TRUST_CHOICES`. Raises `StorageError`."""
    if choice not in (0, 1, 3):
        return evolve(config, approve=choice == 2).at(config.cwd)
    folder = config.cwd.parent if choice == 1 else config.cwd
    TrustStore(config.agent_dir).remember(folder, choice != 3, config.cwd, config.trust.resources)
    return config.at(config.cwd)
