"""`pi-trio doctor`: looks at everything that a start needs, and says what to do."""

from __future__ import annotations

from collections.abc import Sequence

import trio
from attrs import evolve

from pi_trio.cli.options import make_parser
from pi_trio.cli.with_extensions import with_extensions
from pi_trio.cli.words import say
from pi_trio.doctor import Finding, Setup, examine

__all__ = ["run"]


def run(argv: Sequence[str]) -> int:
    """Look at everything. Returns 1 if something stops the program from working; raises `PiError`."""
    make_parser("pi-trio doctor", "Look at everything that a start needs, and say what to do.").parse_args(
        argv
    )
    findings = trio.run(_examine)
    for title, finding in findings:
        for line in finding.lines(title):
            say(line)
    return 1 if any(finding.state == "bad" for _, finding in findings) else 0


async def _examine() -> list[tuple[str, Finding]]:
    """The models of extensions count, as in a session; what is wrong with them is among the findings."""
    setup, told = Setup.here(), list[str]()
    async with with_extensions(setup.models, told.append) as models:
        found = await examine(evolve(setup, models=models))
    known = {finding.what for _, finding in found}
    return [*found, *(("extensions", Finding("odd", each)) for each in told if each not in known)]
