"""`pi-trio doctor`: looks at everything that a start needs, and says what to do."""

from __future__ import annotations

from collections.abc import Sequence

import trio

from pi_trio.cli.options import make_parser
from pi_trio.cli.words import say
from pi_trio.doctor import Setup, examine

__all__ = ["run"]


def run(argv: Sequence[str]) -> int:
    """Look at everything. Returns 1 if something stops the program from working; raises `PiError`."""
    make_parser("pi-trio doctor", "Look at everything that a start needs, and say what to do.").parse_args(
        argv
    )
    findings = trio.run(examine, Setup.here())
    for title, finding in findings:
        for line in finding.lines(title):
            say(line)
    return 1 if any(finding.state == "bad" for _, finding in findings) else 0
