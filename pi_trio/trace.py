"""A log of what is asked of providers, how long it takes, and what is asked again: `--log FILE`.

A line is a JSON object with `time`, `event` and `session`. No secret gets into it: of headers only
those are written that are known to hold none, addresses lose user and query, bodies are told by
size and digest alone, and of the words of errors what looks like a key is taken out.
"""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import trio
from attrs import evolve

from pi_trio.codec import dumps, to_json
from pi_trio.errors import StorageError, UsageError
from pi_trio.events import (
    AgentEvent,
    AgentSettled,
    AgentStart,
    AutoRetryEnd,
    AutoRetryStart,
    CompactionEnd,
    CompactionStart,
    ToolExecutionEnd,
)
from pi_trio.llm.protocol import (
    Context,
    Done,
    Failed,
    Failure,
    Model,
    StreamEvent,
    StreamEvents,
    StreamFunction,
    StreamOptions,
    StreamStart,
)
from pi_trio.session.entries import timestamp_now
from pi_trio.session.export.masking import mask_text

__all__ = ["TraceLog"]

_REDACTED = "[redacted]"
_HARMLESS = frozenset(
    (
        *("accept", "content-encoding", "content-length", "content-type", "date", "server"),
        *("cache-control", "retry-after", "retry-after-ms", "transfer-encoding", "user-agent"),
        *("request-id", "x-request-id", "cf-ray"),
        *("anthropic-beta", "anthropic-processing-ms", "anthropic-version"),
        *("openai-processing-ms", "openai-version"),
    )
)
"""Headers that hold no secret. A list of those that do would never be whole."""
_SHORTEST_SECRET = 4


class TraceLog:
    """The log in a file of mode 0600, which grows. Raises `UsageError` if it cannot be opened.

    When it cannot be written any more the work goes on, and `close` tells.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._failure: OSError | None = None
        self._numbers = itertools.count(1)
        try:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            self._descriptor = os.open(path, flags | os.O_NONBLOCK, 0o600)  # no pipe is waited for
            os.set_blocking(self._descriptor, True)
        except OSError as error:
            raise UsageError(f"the log {path} cannot be opened: {error.strerror}") from error

    def close(self) -> None:
        """End it. Raises `StorageError` if something could not be written."""
        os.close(self._descriptor)
        if self._failure is not None:
            raise StorageError(f"the log {self._path} is not whole: {self._failure.strerror}", self._path)

    def write(self, session_id: str, event: str, **data: Any) -> None:
        """Add a line. What is None is left out."""
        if self._failure is not None:
            return
        told = {key: value for key, value in data.items() if value is not None}
        line = dumps({"time": timestamp_now(), "event": event, "session": session_id, **told}) + b"\n"
        try:
            os.write(self._descriptor, line)
        except OSError as error:
            self._failure = error

    def listen(self, session_id: str, event: AgentEvent) -> None:
        """Log what a session tells that takes time or is done again."""
        match event:
            case AgentStart() | CompactionStart():
                self.write(session_id, event.type)
            case AutoRetryEnd():
                self.write(session_id, event.type, success=event.success)
            case AgentSettled():
                self.write(session_id, event.type, aborted=event.aborted)
            case AutoRetryStart():
                count = {"attempt": event.attempt, "maxAttempts": event.max_attempts}
                self.write(
                    session_id,
                    event.type,
                    **count,
                    delayMs=event.delay_ms,
                    error=mask_text(event.error_message),
                )
            case CompactionEnd():
                error = mask_text(event.error_message) if event.error_message else None
                self.write(session_id, event.type, aborted=event.aborted, error=error)
            case ToolExecutionEnd():
                call = {"tool": event.tool_name, "call": event.tool_call_id, "isError": event.is_error}
                self.write(session_id, event.type, **call, ms=event.duration_ms)
            case _:
                pass

    def traced(self, session_id: str, stream: StreamFunction) -> StreamFunction:
        """The stream function, with each request logged from its beginning to its end."""

        @asynccontextmanager
        async def opened(
            model: Model, context: Context, options: StreamOptions
        ) -> AsyncIterator[StreamEvents]:
            request = _Request(self, session_id, next(self._numbers), options)
            request.begin(model, context)
            try:
                async with stream(model, context, request.options()) as events:
                    yield events.watched(request.look)
            finally:
                request.end()

        return opened


class _Request:
    """One request on its way."""

    def __init__(self, log: TraceLog, session_id: str, number: int, options: StreamOptions) -> None:
        self._log = log
        self._session_id = session_id
        self._number = number
        self._options = options
        self._secrets = {options.api_key} if options.api_key else set()
        self._began = trio.current_time()
        self._first_ms: int | None = None
        self._last: StreamEvent | None = None

    def options(self) -> StreamOptions:
        """The options, with us told what is sent and what comes back."""
        return evolve(self._options, on_request=self._sent, on_response=self._answered)

    def begin(self, model: Model, context: Context) -> None:
        self._write(
            "request",
            model=model.reference,
            api=model.api,
            thinking=self._options.thinking_level,
            messages=len(context.messages),
            tools=len(context.tools),
        )

    def look(self, batch: Sequence[StreamEvent]) -> None:
        """See what streams in."""
        if self._first_ms is None and any(not isinstance(event, (StreamStart, Failed)) for event in batch):
            self._first_ms = self._ms
        if batch:
            self._last = batch[-1]

    def end(self) -> None:
        """It is over: with an answer, a failure, or because nobody wanted it any more."""
        times = {"ms": self._ms, "firstMs": self._first_ms}
        match self._last:
            case Done(message):
                usage = to_json(message.usage)
                self._write("request_end", outcome=message.stop_reason, **times, usage=usage)
            case Failed(failure, message):
                usage, error = to_json(message.usage), self._error(failure)
                self._write("request_end", outcome="error", **times, usage=usage, error=error)
            case _:
                self._write("request_end", outcome="aborted", **times)

    def _sent(self, url: str, headers: Mapping[str, str], body: bytes) -> None:
        if self._options.on_request is not None:
            self._options.on_request(url, headers, body)
        self._secrets |= {value for name, value in headers.items() if name.lower() not in _HARMLESS}
        self._write(
            "request_sent",
            url=self._address(url),
            headers=self._headers(headers),
            bytes=len(body),
            sha256=hashlib.sha256(body).hexdigest(),
        )

    async def _answered(self, status: int, headers: Mapping[str, str], model: Model) -> None:
        if self._options.on_response is not None:
            await self._options.on_response(status, headers, model)
        self._write("response", status=status, ms=self._ms, headers=self._headers(headers))

    def _error(self, failure: Failure) -> dict[str, Any]:
        return {
            "code": failure.code,
            "message": self._clean(failure.message),
            "status": failure.status,
            "retryAfter": failure.retry_after,
            "requestId": failure.request_id,
        }

    @property
    def _ms(self) -> int:
        return round((trio.current_time() - self._began) * 1000)

    def _write(self, event: str, **data: Any) -> None:
        self._log.write(self._session_id, event, request=self._number, **data)

    def _headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        return {
            name.lower(): self._clean(value) if _is_harmless(name.lower()) else _REDACTED
            for name, value in headers.items()
        }

    def _address(self, url: str) -> str:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        return self._clean(parts._replace(netloc=host, query="", fragment="").geturl())

    def _clean(self, text: str) -> str:
        """The text without what is known to be secret here, and what looks as if it were."""
        for secret in self._secrets:
            if len(secret) >= _SHORTEST_SECRET:
                text = text.replace(secret, _REDACTED)
        return mask_text(text)


def _is_harmless(name: str) -> bool:
    return name in _HARMLESS or "ratelimit" in name
