"""How much a session may cost and how many steps a turn may take: the one policy for every mode."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from attrs import define, frozen

from pi_trio.errors import ConfigError, LimitError
from pi_trio.llm.protocol import (
    Context,
    Done,
    Failed,
    Model,
    StreamEvent,
    StreamEvents,
    StreamFunction,
    StreamOptions,
)

__all__ = ["Limits", "Spending"]


@frozen(kw_only=True)
class Limits:
    """None is no limit.

    `max_cost` is in US dollars, for all requests since the session was opened here: answers, retries
    and summaries. `max_steps` is for one turn.
    """

    max_cost: float | None = None
    max_steps: int | None = None

    def check(self, model: Model) -> None:
        """Raise `ConfigError` for a model whose price is unknown, if the cost is limited."""
        if self.max_cost is not None and model.cost is None:
            raise ConfigError(
                f"The price of {model.reference} is unknown, so a limit on cost (maxCost) cannot be kept: "
                'give it a "cost" in models.json, use another model, or take the limit away.'
            )


@define
class Spending:
    """What the requests of a session have cost since it was opened here, in US dollars."""

    cost: float = 0.0

    def check(self, limits: Limits, step: int = 1) -> None:
        """Raise `LimitError` if step number `step` of a turn may not begin."""
        if limits.max_cost is not None and self.cost >= limits.max_cost:
            raise LimitError(
                f"Stopped: the limit of ${limits.max_cost:g} (maxCost) is reached. "
                f"${self.cost:.4f} was spent since the session was opened."
            )
        if limits.max_steps is not None and step > limits.max_steps:
            steps = "1 step" if limits.max_steps == 1 else f"{limits.max_steps} steps"
            raise LimitError(f"Stopped: the turn has taken {steps}, which is the limit (maxSteps).")

    def metered(self, stream: StreamFunction) -> StreamFunction:
        """The stream function, counting what its answers cost, failed ones too."""

        @asynccontextmanager
        async def opened(
            model: Model, context: Context, options: StreamOptions
        ) -> AsyncIterator[StreamEvents]:
            async with stream(model, context, options) as events:
                yield events.watched(self._count)

        return opened

    def _count(self, batch: Sequence[StreamEvent]) -> None:
        if batch and isinstance(batch[-1], (Done, Failed)):
            self.cost += batch[-1].message.usage.cost.total
