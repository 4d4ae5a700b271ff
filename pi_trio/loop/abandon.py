"""Work that can be left behind when it does not stop.

A tool that blocks in a thread, or that shields itself, cannot be stopped from outside, and a
nursery waits for it however long it takes. So tools run below a system task of trio, for which
no nursery of the run waits: once the grace of the run is over, the run goes on without it.
Only `trio.run` itself still waits for such a task; a program that wants to end asks
`abandoned` before it returns from there.
"""

from __future__ import annotations

import contextvars
from collections.abc import Awaitable, Callable

import trio

from pi_trio.loop.lifetime import Lifetime

__all__ = ["AbandonableTask", "abandoned"]


class AbandonableTask:
    """Work in a task of its own, started at once, with the context variables of its maker.

    Whoever makes one awaits `join`.
    """

    def __init__(self, work: Callable[[], Awaitable[None]], lifetime: Lifetime, name: str) -> None:
        self.name = name
        self._work = work
        self._lifetime = lifetime
        self._scope = trio.CancelScope()
        self._over = trio.Event()
        self._error: BaseException | None = None
        lifetime.elsewhere.add(self._scope)
        trio.lowlevel.spawn_system_task(self._run, name=name, context=contextvars.copy_context())

    @property
    def is_over(self) -> bool:
        """Whether the work has ended."""
        return self._over.is_set()

    def cancel(self) -> None:
        """Cancel the work."""
        self._scope.cancel()

    async def join(self) -> None:
        """Wait for the end of the work, and raise what it raised.

        Cancelled, it cancels the work and waits for it until the grace of the run is over, at
        the latest; then the work is left behind.
        """
        try:
            if not self.is_over:
                await self._over.wait()
        except trio.Cancelled:
            self.cancel()
            with self._lifetime.shelter():
                await self._over.wait()
            if not self.is_over:
                _ABANDONED.set((*(each for each in _ABANDONED.get() if not each.is_over), self))
            raise
        finally:
            self._lifetime.elsewhere.discard(self._scope)
        if self._error is not None:
            raise self._error

    async def _run(self) -> None:
        """Raises nothing: that would end the whole program."""
        try:
            with self._scope:
                await self._work()
        except BaseException as error:  # raised by `join`
            self._error = error
        finally:
            self._over.set()


_ABANDONED: trio.lowlevel.RunVar[tuple[AbandonableTask, ...]] = trio.lowlevel.RunVar("abandoned", ())


def abandoned() -> tuple[str, ...]:
    """The names of what was left behind in this `trio.run` and has not ended yet."""
    return tuple(task.name for task in _ABANDONED.get() if not task.is_over)
