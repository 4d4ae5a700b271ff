"""A session that is open in a runtime, with all that belongs to it."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from pi_trio.harness.destination import FileRecords
from pi_trio.harness.furnishing import Furnishing
from pi_trio.harness.harness import AgentHarness
from pi_trio.harness.questions import Questions
from pi_trio.harness.shell import UserShell
from pi_trio.tools.environment import LocalEnvironment
from pi_trio.tools.gate import Gate
from pi_trio.tools.policy import Policy

__all__ = ["Hosted"]


@frozen
class Hosted:
    """`replacements` say what the session had that is not there any more, and what took its place."""

    harness: AgentHarness
    environment: LocalEnvironment
    furnishing: Furnishing
    shell: UserShell
    policy: Policy
    questions: Questions
    gate: Gate
    records: FileRecords
    replacements: Sequence[str] = ()
