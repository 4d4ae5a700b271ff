"""A nursery whose failures are plain exceptions."""

from __future__ import annotations

from types import TracebackType

import trio

__all__ = ["plain_nursery"]


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
