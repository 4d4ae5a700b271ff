"""The cancel scopes of a run and its calls, and what may still finish after it was cancelled.

A run ends by cancelling one scope, from `abort` or from outside. What must be whole
afterwards (settling an answer, draining tools, telling listeners) runs in a `shelter`:
shielded from cancellation, but once the run is cancelled only for `grace` seconds more.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from math import inf
from types import TracebackType

import trio

from pi_trio.nursery import plain_nursery

__all__ = ["ABORT_GRACE", "GOODBYE_SECONDS", "Lifetime"]

ABORT_GRACE = 2.0
"""Seconds that what must still happen after an abort may take, unless a program says otherwise."""

GOODBYE_SECONDS = ABORT_GRACE + 1
"""Seconds for the last run of a program to end, and for what it still says to be passed on."""


class Lifetime:
    """Of one run. `grace` is in seconds.

    `elsewhere` has the scopes of other tasks that `cancel` reaches at the same moment.
    """

    def __init__(self, grace: float) -> None:
        self.scope: trio.CancelScope = trio.CancelScope()
        self._grace = grace
        self._deadline = inf
        self.elsewhere: set[trio.CancelScope] = set()
        self._shelters: set[trio.CancelScope] = set()
        self._calls: dict[str, trio.CancelScope] = {}
        self._over = False

    @property
    def ending(self) -> bool:
        """Whether the run has been cancelled, from wherever."""
        return self._deadline < inf

    def cancel(self) -> None:
        """End the run: it stops at its next checkpoint. More than once is the same as once."""
        self.scope.cancel()
        for scope in self.elsewhere:
            scope.cancel()
        self._begin_grace()

    @contextmanager
    def call(self, call_id: str) -> Iterator[trio.CancelScope]:
        """The scope of one tool call, which `cancel_call` can end while it is open."""
        with trio.CancelScope() as scope:
            self._calls[call_id] = scope
            try:
                yield scope
            finally:
                self._calls.pop(call_id, None)

    def cancel_call(self, call_id: str) -> bool:
        """Stop one running call. False if it is not running."""
        scope = self._calls.get(call_id)
        if scope is not None:
            scope.cancel()
        return scope is not None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The part of the run that can be cancelled. A cancel by `cancel` ends here."""
        with self.scope:
            async with plain_nursery() as nursery:
                nursery.start_soon(self._watch)
                try:
                    yield
                except Exception:
                    self._over = True  # it failed by itself, nobody cancelled it
                    raise
                self._over = True
                nursery.cancel_scope.cancel()

    def shelter(self) -> AbstractContextManager[object]:
        """Shielded work. When the grace is over it is cut off quietly, here.

        There is no shield any more after a run that nobody cancelled, since nobody watches
        for a cancel from outside then.
        """
        return _Shelter(self._shelters, self._deadline, shield=not self._over)

    async def _watch(self) -> None:
        """Notice a cancel from outside, which would not reach the shelters."""
        try:
            await trio.sleep_forever()
        finally:
            if not self._over:
                self._begin_grace()

    def _begin_grace(self) -> None:
        if self._deadline == inf:
            self._deadline = trio.current_time() + self._grace
            for scope in self._shelters:
                scope.deadline = self._deadline


class _Shelter:
    """A shielded scope that its lifetime knows of while it is open."""

    def __init__(self, known: set[trio.CancelScope], deadline: float, *, shield: bool) -> None:
        self._known = known
        self._scope = trio.CancelScope(shield=shield, deadline=deadline)

    def __enter__(self) -> None:
        self._known.add(self._scope)
        self._scope.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        self._known.discard(self._scope)
        return self._scope.__exit__(kind, error, trace)
