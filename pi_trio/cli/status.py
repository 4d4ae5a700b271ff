"""The exit statuses of the programs, as docs/flags.md tells them."""

from __future__ import annotations

from pi_trio.errors import ConfigError, LimitError, PiError, SessionError, UsageError

__all__ = ["BROKEN_PIPE", "FAILED", "LIMIT", "MISMATCH", "MISTAKE", "OK", "ended_by", "status_of"]

OK = 0
FAILED = 1
"""A request failed, or its answer is not a whole one."""
MISTAKE = 2
"""The command line or the configuration has to be mended; nothing was sent."""
LIMIT = 3
"""A limit on cost, steps or time was reached."""
MISMATCH = 4
"""No answer matched the schema."""
BROKEN_PIPE = 141
"""As that of a program that SIGPIPE ended."""


def ended_by(error: PiError, program: str = "pi-trio") -> int:
    """Say on standard error what ended a program. Gives its exit status."""
    from pi_trio.cli.words import tell  # a program that needs nothing of it begins sooner

    tell(str(error), program)
    return status_of(error)


def status_of(error: PiError) -> int:
    """The status of a program that this error ended."""
    if isinstance(error, LimitError):
        return LIMIT
    return MISTAKE if isinstance(error, (UsageError, ConfigError, SessionError)) else FAILED
