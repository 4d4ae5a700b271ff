"""What the file says of requests: the facts `request/header` and `request/context`.

Prompt sections and tool declarations are in the system messages; the header holds the
configuration. It is written with the first request (`initial`), the first of a new life of
the session (`resume`), when it changed (`change`), and when a new series of requests begins
(`series`): within a series each request extends the one before.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from pi_trio.harness.points import STREAM, Handlers, StreamCall
from pi_trio.llm.protocol import Context, Model, StreamEvents, StreamFunction, StreamOptions
from pi_trio.loop.driver import Fact, Request, Step
from pi_trio.session import facts
from pi_trio.session.entries import CustomEntry
from pi_trio.session.session import Session

__all__ = ["RequestLog", "through_handlers"]


class RequestLog:
    """Which facts a request needs. `starts_series` is what pre-step declared for the next one."""

    def __init__(self, session: Session) -> None:
        self.starts_series: bool = False
        self._session = session
        self._sent = False
        self._header: dict[str, Any] | None = None
        self._context: dict[str, Any] | None = None

    def facts(self, step: Step, request: Request) -> Iterator[Fact]:
        """The facts to write with this request. Asking counts as writing them."""
        if not self._sent:
            self._header = _last(self._session, facts.REQUEST_HEADER, "header")
            self._context = _last(self._session, facts.REQUEST_CONTEXT, "context")
        series, self.starts_series = self.starts_series, False
        header, context = _header(request), _context(request.model)
        reason = self._reason(header, series)
        if reason is not None:
            data = {"header": header, "reason": reason}
            yield step.fact(facts.REQUEST_HEADER, **data, **({"startsSeries": True} if series else {}))
        if context != self._context:
            yield step.fact(facts.REQUEST_CONTEXT, context=context)
        self._header, self._context, self._sent = header, context, True

    def _reason(self, header: dict[str, Any], series: bool) -> str | None:
        if self._header is None:
            return "initial"
        if not self._sent:
            return "resume"
        if header != self._header:
            return "change"
        return "series" if series else None


def _header(request: Request) -> dict[str, Any]:
    options = request.options
    config = {
        "api": request.model.api,
        "provider": request.model.provider,
        "model": request.model.id,
        "thinkingLevel": request.thinking_level,
        "temperature": options.temperature,
        "maxTokens": options.max_tokens,
    }
    return {key: value for key, value in config.items() if value is not None}


def _context(model: Model) -> dict[str, Any]:
    return {"provider": model.provider, "model": model.id, "contextWindow": model.context_window}


def _last(session: Session, name: str, key: str) -> dict[str, Any] | None:
    """What the last fact of this name on the branch said."""
    for head in session.tree.up(session.get_leaf_id()):
        if head.type == "custom" and head.detail == name:
            entry = session.entry(head.id)
            value = entry.data.get(key) if isinstance(entry, CustomEntry) else None
            return value if isinstance(value, dict) else {}
    return None


def through_handlers(handlers: Handlers, step: Step, stream: StreamFunction) -> StreamFunction:
    """The stream function with the handlers of `llm/stream` around it."""
    if not handlers.at(STREAM):
        return stream

    async def open_stream(call: StreamCall) -> AbstractAsyncContextManager[StreamEvents]:
        return stream(call.model, call.context, call.options)

    @asynccontextmanager
    async def decided(model: Model, context: Context, options: StreamOptions) -> AsyncIterator[StreamEvents]:
        manager = await handlers.decide(STREAM, StreamCall(step, model, context, options), open_stream)
        async with manager as events:
            yield events

    return decided
