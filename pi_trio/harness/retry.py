"""Which failed requests are sent again, and when."""

from __future__ import annotations

from attrs import frozen

from pi_trio.llm.protocol import Failure, FailureCode
from pi_trio.loop.driver import Retry

__all__ = ["RetryPolicy"]

PASSING: frozenset[FailureCode] = frozenset(
    {"rate_limit", "overloaded", "server", "timeout", "transport", "empty_response"}
)
"""What may be gone a little later."""


@frozen(kw_only=True)
class RetryPolicy:
    """Times are seconds. The wait doubles from `base_delay` up to `max_delay`.

    Up to the part `jitter` of it is taken off by chance, so that programs that failed together
    do not come back together. A provider's own wish is honoured in full, but one above
    `longest_wish` gives up at once, since a person should decide whether to wait that long;
    None honours any.
    """

    enabled: bool = True
    max_retries: int = 3
    base_delay: float = 2.0
    max_delay: float = 60.0
    longest_wish: float | None = 60.0
    jitter: float = 0.25

    def retry(self, failure: Failure, attempt: int, chance: float = 0.0) -> Retry | None:
        """What follows on failed attempt number `attempt`; None gives up.

        `chance` is a random number from 0 to 1: the same arguments give the same answer.
        """
        if not self.enabled or failure.code not in PASSING or attempt > self.max_retries:
            return None
        wish = failure.retry_after
        if wish is not None and self.longest_wish is not None and wish > self.longest_wish:
            return None
        delay = self._step(attempt, chance) if wish is None else wish
        return Retry(delay=delay, attempt=attempt, max_attempts=self.max_retries)

    def _step(self, attempt: int, chance: float) -> float:
        doublings = min(attempt - 1, 60)  # further ones only overflow
        return min(self.base_delay * 2.0**doublings, self.max_delay) * (1 - self.jitter * chance)
