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

    A provider's own wish is honoured up to `max_delay`; one that is longer gives up at once,
    since a person should decide whether to wait that long.
    """

    max_retries: int = 3
    base_delay: float = 2.0
    max_delay: float = 60.0

    def retry(self, failure: Failure, attempt: int) -> Retry | None:
        """What follows on failed attempt number `attempt`; None gives up."""
        if failure.code not in PASSING or attempt > self.max_retries:
            return None
        delay = min(self.base_delay * 2.0 ** (attempt - 1), self.max_delay)
        if failure.retry_after is not None:
            if failure.retry_after > self.max_delay:
                return None
            delay = failure.retry_after
        return Retry(delay=delay, attempt=attempt, max_attempts=self.max_retries)
