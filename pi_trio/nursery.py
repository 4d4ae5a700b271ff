"""Nurseries whose failures are plain exceptions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Protocol, TypeVar

import trio

__all__ = ["in_nursery", "plain_nursery"]

CLOSING = 5.0
"""Seconds that what a block holds may take to stop and save when the block is left."""


class _Closable(Protocol):
    async def aclose(self) -> None: ...


T = TypeVar("T", bound=_Closable)


@asynccontextmanager
async def in_nursery(make: Callable[[trio.Nursery], T]) -> AsyncIterator[T]:
    """What `make` makes, with a nursery of its own. Leaving the block, also by cancellation, closes it."""
    async with plain_nursery() as nursery:
        made = make(nursery)
        try:
            yield made
        finally:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + CLOSING):
                await made.aclose()
            nursery.cancel_scope.cancel()


class plain_nursery:  # noqa: N801 - used like `trio.open_nursery`
    """A nursery that raises the first plain exception instead of a group of them."""

    def __init__(self) -> None:
        self._manager = trio.open_nursery()

    async def __aenter__(self) -> trio.Nursery:
        return await self._manager.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        try:
            return await self._manager.__aexit__(kind, error, trace)
        except BaseExceptionGroup as group:
            plain = _first(group)
        raise plain  # outside of the handler, which would put the group into its context


def _first(error: BaseException) -> BaseException:
    """The first leaf of a group that is more than a cancellation, else a cancellation."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    leaves = [_first(each) for each in error.exceptions]
    return next((leaf for leaf in leaves if not isinstance(leaf, trio.Cancelled)), leaves[0])
