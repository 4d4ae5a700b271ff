"""`pi-trio doctor`."""

from __future__ import annotations

from collections.abc import Sequence

from pi_trio.cli.options import make_parser
from pi_trio.cli.stdio import say
from pi_trio.doctor import examine, told

__all__ = ["run"]


def run(argv: Sequence[str]) -> int:
    """Look at everything. Returns 1 if something stops the program from working; raises `PiError`."""
    parser = make_parser("pi-trio doctor", "Look at everything that a start needs, and say what to do.")
    parser.parse_args(argv)
    bad = False
    for title, finding in examine():
        bad = bad or finding.state == "bad"
        for line in told(title, finding):
            say(line)
    return 1 if bad else 0
