"""The question whether a folder's own resources are used, in plain lines."""

from __future__ import annotations

from attrs import evolve

from pi_trio.cli.lines import Lines
from pi_trio.cli.stdio import Output
from pi_trio.resources.config import RuntimeConfig
from pi_trio.resources.trust import TrustStore
from pi_trio.text import sanitise

__all__ = ["ask_trust"]

_CHOICES = (
    "Trust this folder",
    "Trust the folder above it",
    "Trust this folder, this time only",
    "Do not trust this folder",
    "Do not trust this folder, this time only",
)


async def ask_trust(config: RuntimeConfig, lines: Lines, output: Output) -> RuntimeConfig:
    """The configuration after a person was asked, if that is possible and needed.

    Any answer but one of the first four is a no for this time. Raises `StorageError`.
    """
    trust = config.trust
    if not (trust.undecided and lines.is_terminal and output.is_terminal):
        return config
    why = "has changed since you trusted it" if trust.changed else "brings things of its own"
    question = [
        f"{config.cwd} {why}; these can run commands on this machine:",
        *(f"  {path}" for path in trust.resources),
        *(f"{number}. {choice}" for number, choice in enumerate(_CHOICES, 1)),
        f"Number (1-{len(_CHOICES)}): ",
    ]
    await output.write(sanitise("\n".join(question)).encode())
    answer = (await lines.next() or "").strip()
    if answer not in ("1", "2", "4"):
        return evolve(config, approve=answer == "3").at(config.cwd)
    folder = config.cwd.parent if answer == "2" else config.cwd
    TrustStore(config.agent_dir).remember(folder, answer != "4", config.cwd, trust.resources)
    return config.at(config.cwd)
