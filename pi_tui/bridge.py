"""The only file that touches both worlds: a runtime on trio, in a thread, for a screen on asyncio.

trio lives in one non-daemon thread, Textual in the main one, so that a slow frame never
stalls the agent and a busy agent never stalls a key. Commands cross through the `TrioToken`
and their results through the loop; events cross through one coalescing `Outbox` for each
subscription, at most one wake a frame.

trio is imported in its own thread, after the first frame is on the screen.
"""

from __future__ import annotations

import asyncio
import contextvars
import sys
import threading
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from pi_trio.collector import spare_what_is_there
from pi_trio.errors import UsageError

if TYPE_CHECKING:
    import trio

    from pi_trio.hub import Envelope
    from pi_trio.remote.interface import Runtime, Snapshot

__all__ = ["Bridge", "OpenRuntime", "RuntimeEndedError", "Subscription"]

T = TypeVar("T")
OpenRuntime: TypeAlias = "Callable[[], AbstractAsyncContextManager[Runtime]]"

FRAME = 1 / 30
"""Seconds between two deliveries of a subscription while events keep coming."""

SWITCH_INTERVAL = 0.0005
"""How long Python runs one thread before it looks at the other. At the default, rendering delays tools."""


class RuntimeEndedError(UsageError):
    """The runtime is gone, so a command cannot be carried out."""


class Bridge:
    """Runs a runtime in a thread. All methods are called in the loop's thread.

    `open_runtime` is called in the trio thread; what it imports does not delay the screen.
    When it has ended, `left_behind` names the tools that did not stop: the thread waits for them.
    """

    def __init__(self, open_runtime: OpenRuntime) -> None:
        self._open_runtime = open_runtime
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()
        self._ready: asyncio.Future[None] = self._loop.create_future()
        self._waiting: set[asyncio.Future[Any]] = set()
        self._thread = threading.Thread(target=self._thread_main, name="runtime")
        self._token: trio.lowlevel.TrioToken | None = None
        self._scope: trio.CancelScope | None = None
        self._stopped = False
        self.left_behind: tuple[str, ...] = ()
        self._done: asyncio.Future[BaseException | None] = self._loop.create_future()

    def start(self) -> None:
        """Start the thread. Commands given before the runtime is open wait for it."""
        sys.setswitchinterval(SWITCH_INTERVAL)
        self._thread.start()

    def stop(self) -> None:
        """End the runtime, and with it every run. `ended` tells when it is over."""
        self._stopped = True
        if self._thread.ident is None:  # never started
            _settle(self._done, None, None)
        self._to_trio(self._cancel)

    async def ended(self) -> BaseException | None:
        """Wait until the runtime and all its children have ended: what it raised, or None."""
        return await asyncio.shield(self._done)

    async def call(self, command: Callable[[Runtime], Awaitable[T]]) -> T:
        """Run a command on the runtime, and give its result or raise what it raised.

        Raises `RuntimeEndedError` if the runtime is gone or ends meanwhile. Cancelling the
        call stops the waiting, not the command: see `call_revocable`.
        """
        await asyncio.shield(self._ready)
        result: asyncio.Future[T] = self._loop.create_future()
        if self._done.done():
            raise RuntimeEndedError("the runtime has ended")
        self._waiting.add(result)
        result.add_done_callback(self._waiting.discard)
        self._to_trio(lambda: self._start(command, result))
        return await result

    async def call_revocable(self, command: Callable[[Runtime], Awaitable[T]]) -> T | None:
        """The same for a command that is cancelled with the call, as far as it is not carried out yet."""
        import trio

        scope = trio.CancelScope()

        async def revocable(runtime: Runtime) -> T | None:
            with scope:
                return await command(runtime)
            return None

        try:
            return await self.call(revocable)
        except asyncio.CancelledError:
            self._to_trio(scope.cancel)
            raise

    async def subscribe(self, session_id: str, deliver: Callable[[list[Envelope]], None]) -> Subscription:
        """Have `deliver` called in the loop with the events of a session from now on."""
        await asyncio.shield(self._ready)
        subscription = Subscription(self, session_id, deliver)
        subscription.snapshot = await self.call(
            lambda runtime: runtime.subscribe(session_id, subscription.outbox)
        )
        spare_what_is_there()
        return subscription

    # -------------------------------------------------------------- the trio side

    def _thread_main(self) -> None:
        try:
            import trio

            trio.run(self._trio_main)
        except BaseException as error:  # as below: it would be seen by nobody here
            self.to_loop(partial(self._finish, error))

    async def _trio_main(self) -> None:
        from pi_trio.loop.abandon import abandoned

        outcome: BaseException | None = None
        try:
            await self._hold_runtime()
        except BaseException as error:  # whatever it is, the screen's side reports it
            outcome = error
        self.left_behind = abandoned()
        self.to_loop(partial(self._finish, outcome))

    async def _hold_runtime(self) -> None:
        import trio

        self._token = trio.lowlevel.current_trio_token()
        with trio.CancelScope() as self._scope:
            if self._stopped:  # before there was a token to say it through
                return
            async with self._open_runtime() as runtime, trio.open_nursery() as nursery:
                self._runtime, self._nursery = runtime, nursery
                self.to_loop(lambda: _settle(self._ready, None, None))
                await trio.sleep_forever()

    def _cancel(self) -> None:
        if self._scope is not None:
            self._scope.cancel()

    def _start(self, command: Callable[[Runtime], Awaitable[T]], result: asyncio.Future[T]) -> None:
        self._nursery.start_soon(self._run, command, result)

    async def _run(self, command: Callable[[Runtime], Awaitable[T]], result: asyncio.Future[T]) -> None:
        value: T | None = None
        error: Exception | None = None
        try:
            value = await command(self._runtime)
        except Exception as raised:  # it belongs to the caller, on the other side
            error = raised
        self.to_loop(lambda: _settle(result, value, error))

    # -------------------------------------------------------------- crossing over

    def _to_trio(self, function: Callable[[], None]) -> None:
        if self._token is None:
            return  # `_trio_main` looks at `_stopped` when it starts
        import trio

        with suppress(trio.RunFinishedError):  # then `_finish` is on its way, and settles whoever waits
            self._token.run_sync_soon(function)

    def to_loop(self, function: Callable[[], None]) -> None:
        """Run `function` in the loop, in the screen's context variables. Called in any thread."""
        with suppress(RuntimeError):  # the loop is closed: nobody is left who could hear of it
            self._loop.call_soon_threadsafe(function, context=self._context.copy())

    def _finish(self, outcome: BaseException | None) -> None:
        """The runtime is done: say so to everybody who waits."""
        if not self.left_behind:
            self._thread.join()
        for waiting in tuple(self._waiting):
            _settle(waiting, None, RuntimeEndedError("the runtime has ended"))
        _settle(self._done, outcome, None)
        _settle(self._ready, None, None)


class Subscription:
    """Events of one session on their way to the loop, a batch a frame."""

    snapshot: Snapshot

    def __init__(self, bridge: Bridge, session_id: str, deliver: Callable[[list[Envelope]], None]) -> None:
        from pi_trio.hub import Outbox

        self.session_id = session_id
        self._bridge = bridge
        self._deliver = deliver
        self._next_frame = 0.0
        self.outbox = Outbox(lambda: bridge.to_loop(self._wake))

    async def close(self) -> None:
        """No more events."""
        self.outbox.close()
        await self._bridge.call(lambda runtime: runtime.unsubscribe(self.session_id, self.outbox))

    def flush(self) -> None:
        """Deliver now what has arrived, without waiting for the frame."""
        self._drain()

    def _wake(self) -> None:
        """The outbox stopped being empty: look into it now, or when the next frame is due."""
        loop = asyncio.get_running_loop()
        if loop.time() >= self._next_frame:
            self._drain()
        else:
            loop.call_at(self._next_frame, self._drain)

    def _drain(self) -> None:
        self._next_frame = asyncio.get_running_loop().time() + FRAME
        batch = self.outbox.take()
        if batch and not self.outbox.closed:
            self._deliver(batch)


def _settle(future: asyncio.Future[T], value: Any, error: Exception | None) -> None:
    """Give a future its result, unless nobody waits for it any more."""
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(value)
