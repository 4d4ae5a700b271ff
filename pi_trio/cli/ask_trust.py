"""The question whether a folder's own resources are used, in plain lines."""

from __future__ import annotations

from pi_trio.cli.lines import Lines
from pi_trio.cli.stdio import Output
from pi_trio.resources.config import RuntimeConfig
from pi_trio.resources.trust_question import TRUST_CHOICES, after_trust, trust_question
from pi_trio.text import sanitise

__all__ = ["ask_trust"]

_NUMBERS = [str(number) for number, _ in enumerate(TRUST_CHOICES, 1)]
_SIGN = f"Number (1-{len(TRUST_CHOICES)}): "


async def ask_trust(config: RuntimeConfig, lines: Lines, output: Output) -> RuntimeConfig:
    """The configuration after a person was asked, if that is possible and needed.

    Another answer is asked for until it is one; none at all is a no for this time. Raises `StorageError`.
    """
    if not (config.trust.undecided and lines.is_terminal and output.is_terminal):
        return config
    question = [
        trust_question(config),
        *(f"{number}. {choice}" for number, choice in enumerate(TRUST_CHOICES, 1)),
        _SIGN,
    ]
    await output.write(sanitise("\n".join(question)).encode())
    return after_trust(config, await _choice(lines, output))


async def _choice(lines: Lines, output: Output) -> int | None:
    while answer := (await lines.next() or "").strip():
        if answer in _NUMBERS:
            return _NUMBERS.index(answer)
        await output.write(_SIGN.encode())
    return None
