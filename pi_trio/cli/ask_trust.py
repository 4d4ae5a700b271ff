"""The question whether a folder's own resources are used, in plain lines."""

from __future__ import annotations

from pi_trio.cli.lines import Lines
from pi_trio.cli.stdio import Output
from pi_trio.resources.config import RuntimeConfig
from pi_trio.resources.trust_question import TRUST_CHOICES, after_trust, trust_question
from pi_trio.text import sanitise

__all__ = ["ask_trust"]


async def ask_trust(config: RuntimeConfig, lines: Lines, output: Output) -> RuntimeConfig:
    """The configuration after a person was asked, if that is possible and needed.

    Any answer but one of the first four is a no for this time. Raises `StorageError`.
    """
    if not (config.trust.undecided and lines.is_terminal and output.is_terminal):
        return config
    question = [
        trust_question(config),
        *(f"{number}. {choice}" for number, choice in enumerate(TRUST_CHOICES, 1)),
        f"Number (1-{len(TRUST_CHOICES)}): ",
    ]
    await output.write(sanitise("\n".join(question)).encode())
    answer = (await lines.next() or "").strip()
    return after_trust(config, int(answer) - 1 if answer in ("1", "2", "3", "4") else None)
