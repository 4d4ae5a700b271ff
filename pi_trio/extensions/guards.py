"""Handlers of extensions, made so that their failures go no further."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from pi_trio.extensions.failures import FAILURES
from pi_trio.extensions.host import Handler
from pi_trio.harness.points import POINTS, Waterfall
from pi_trio.loop.hooks import BeforeToolCallResult

__all__ = ["called", "guarded"]

Fail: TypeAlias = Callable[[BaseException], str]
"""Reports a failure, and gives the sentence that tells it."""


def guarded(point: str, handler: Callable[..., Any], fail: Fail) -> Handler:
    """`handler` for a hook point, sync or async, so that a failure is reported and changes nothing.

    Only a failing `tool_call` handler blocks its call. A failure that comes from below a waterfall
    is none of the handler's, and passes.
    """
    if isinstance(POINTS.get(point), Waterfall):
        return _waterfall(handler, fail)
    blocks = point == "tool_call"

    async def checked(*arguments: Any) -> Any:
        try:
            return await called(handler, *arguments)
        except FAILURES as error:
            text = fail(error)
        return BeforeToolCallResult(block=True, reason=text) if blocks else None

    return checked


def _waterfall(handler: Callable[..., Any], fail: Fail) -> Handler:
    async def checked(context: Any, following: Callable[[Any], Awaitable[Any]]) -> Any:
        below = _Below(following)
        try:
            return await called(handler, context, below)
        except FAILURES as error:
            if error is below.failure:
                raise
            fail(error)
        return below.decision if below.decided else await following(context)

    return checked


class _Below:
    """The handlers below, which are asked once for one decision, and what became of it."""

    def __init__(self, following: Callable[[Any], Awaitable[Any]]) -> None:
        self._following = following
        self.failure: BaseException | None = None
        self.decision: Any = None
        self.decided = False

    async def __call__(self, context: Any) -> Any:
        try:
            self.decision = await self._following(context)
        except FAILURES as error:
            self.failure = error
            raise
        self.decided = True
        return self.decision


async def called(handler: Callable[..., Any], *arguments: Any) -> Any:
    """What a plain function or a coroutine function of an extension gives."""
    result = handler(*arguments)
    return await result if inspect.isawaitable(result) else result
