"""One request of a step: its attempts, how each settles, and what an abort leaves of it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import attrs
import trio

from pi_trio.errors import ConfigError, PiError, StorageError
from pi_trio.events import AgentEvent, AutoRetryEnd, AutoRetryStart, MessageEnd, MessageStart, MessageUpdate
from pi_trio.llm.partial import PartialMessage
from pi_trio.llm.protocol import Context, Done, Failed, Failure, StreamStart
from pi_trio.loop.convert import convert_messages
from pi_trio.loop.driver import Admission, Driver, Fact, Request, Retry, Step, tell
from pi_trio.loop.record import StreamRecord
from pi_trio.messages import EMPTY, AssistantMessage

__all__ = ["Answer", "describe"]


class Answer:
    """The model's side of one step. `message` is what has been settled of it, if anything."""

    def __init__(self, driver: Driver, step: Step) -> None:
        self.message: AssistantMessage | None = None
        self._driver = driver
        self._step = step
        self._partial: PartialMessage | None = None
        self._record: StreamRecord | None = None
        self._announced = False

    async def ask(self, request: Request, admission: Admission) -> AssistantMessage:
        """Ask until there is an answer or the driver gives up; either way it is committed.

        Cancelled meanwhile, the visible part of the answer is committed as `aborted`; with
        nothing visible only the attempt is recorded.
        """
        attempt = 0
        while True:
            attempt += 1
            message, failure = await self._attempt(request, admission)
            if failure is None:
                return await self._settle(message, attempt)
            self._driver.commit(self._fact(message, failure))
            decision = await self._driver.retry(self._step, failure, attempt)
            if isinstance(decision, Failure):
                return await self._settle(attrs.evolve(message, error_message=decision.message), attempt)
            await self._end(message)
            await self._wait(decision, failure)
            self.message = None  # of the next attempt nothing is settled yet
            request = await self._driver.prepare_request(self._step)
            admission = self._driver.admit(self._step, request, ())

    async def fail(self, error: Exception) -> None:
        """Settle a step whose answer an exception of ours or the application's cut off."""
        await self._end(self.failed(describe(error)))

    def failed(self, problem: str) -> AssistantMessage:
        """Commit what a problem left of the answer, telling nobody."""
        message = attrs.evolve(self._so_far(), stop_reason="error", error_message=problem)
        with suppress(StorageError):  # if it is the disk that failed, the event tells it
            self._driver.commit(self._fact(message, None), message)
        return message

    async def stop(self) -> None:
        """Settle a step that was cancelled: keep what was visible, without its calls."""
        partial = self._partial or PartialMessage(AssistantMessage(()))
        message = attrs.evolve(
            partial.interrupted(), error_message="The run was stopped.", extra=self._recorded()
        )
        self._driver.commit(message if message.content else self._fact(message, None))
        await self._end(message)

    async def _attempt(
        self, request: Request, admission: Admission
    ) -> tuple[AssistantMessage, Failure | None]:
        """One stream of the request, and why it failed if it did."""
        base = _blank(request)
        self._partial = PartialMessage(base)
        self._record = StreamRecord() if self._driver.records_stream else None
        began = trio.current_time()
        try:
            context = await self._context(admission)
            await trio.lowlevel.checkpoint_if_cancelled()  # no request goes out after an abort
            message, failure = await self._stream(request, context, base, self._partial)
        except ConfigError as error:  # the configuration or the credentials, before anything was sent
            message, failure = self._partial.message(), Failure(str(error), "configuration")
        if failure is not None:
            message = attrs.evolve(message, stop_reason="error", error_message=failure.message)
        elapsed = round((trio.current_time() - began) * 1000)
        return self._stamped(message, base, elapsed), failure

    async def _stream(
        self, request: Request, context: Context, base: AssistantMessage, partial: PartialMessage
    ) -> tuple[AssistantMessage, Failure | None]:
        emit, record = self._driver.hub.emit, self._record
        async with request.stream(request.model, context, request.options) as events:
            async for event in events:
                if not self._announced:
                    await self._begin(base)
                if isinstance(event, Done):
                    return event.message, None
                if isinstance(event, Failed):
                    return event.message, event.failure
                if not isinstance(event, StreamStart):
                    partial.apply(event)
                    if record is not None:
                        record.add(event)
                    await emit(MessageUpdate(event, partial.view()))
        return partial.message(), Failure("The stream ended before the answer was complete.", "transport")

    async def _context(self, admission: Admission) -> Context:
        """The conversation as models know it, after the application's hooks."""
        hooks = self._driver.hooks
        converted = admission.messages
        if hooks.transform_context is not None or hooks.convert_to_llm is not None:
            messages = self._driver.snapshot().messages
            if hooks.transform_context is not None:
                messages = tuple(await hooks.transform_context(messages))
            if hooks.convert_to_llm is not None:
                converted = await hooks.convert_to_llm(messages)
            else:
                converted = convert_messages(messages)
        schemas = tuple(tool.schema for tool in admission.tools)
        return Context(admission.system_prompt, converted, schemas)

    async def _settle(self, message: AssistantMessage, attempt: int) -> AssistantMessage:
        """Commit an answer, or the failure that was given up; contexts leave the latter out."""
        self._driver.commit(message)
        await self._end(message)
        if attempt > 1:
            failed = message.stop_reason == "error"
            await tell(self._driver, AutoRetryEnd(not failed, attempt - 1, message.error_message))
        return message

    async def _wait(self, retry: Retry, failure: Failure) -> None:
        if not retry.announce:
            return
        delay_ms = round(retry.delay * 1000)
        data = {"attempt": retry.attempt, "maxAttempts": retry.max_attempts, "delayMs": delay_ms}
        self._driver.commit(self._step.fact("retry/scheduled", **data, code=failure.code))
        await self._driver.hub.emit(
            AutoRetryStart(retry.attempt, retry.max_attempts, delay_ms, failure.message)
        )
        await trio.sleep(retry.delay)
        self._driver.commit(self._step.fact("retry/started", attempt=retry.attempt))

    async def _begin(self, message: AssistantMessage) -> None:
        self._announced = True
        await self._driver.hub.emit(MessageStart(message))

    async def _end(self, message: AssistantMessage) -> None:
        events: list[AgentEvent] = [MessageEnd(message)]
        if not self._announced:
            events.insert(0, MessageStart(message))
        self.message = message
        self._announced = False
        self._partial = None
        await tell(self._driver, *events)

    def _so_far(self) -> AssistantMessage:
        return self._partial.message() if self._partial is not None else AssistantMessage(())

    def _fact(self, message: AssistantMessage, failure: Failure | None) -> Fact:
        """The record of an attempt that did not become an answer."""
        return self._step.fact(
            "assistant/attempt",
            outcome="failed" if failure is not None else message.stop_reason,
            code=failure.code if failure is not None else None,
            error=message.error_message,
            text=message.text,
            **self._recorded(),
        )

    def _stamped(self, message: AssistantMessage, base: AssistantMessage, elapsed: int) -> AssistantMessage:
        """The answer with what only the loop knows: when it was asked for, and how it came."""
        return attrs.evolve(
            message,
            timestamp=base.timestamp,
            duration_ms=elapsed,
            thinking_level=base.thinking_level,
            extra={**message.extra, **self._recorded()},
        )

    def _recorded(self) -> Mapping[str, Any]:
        return EMPTY if self._record is None else {"stream": self._record.triples}


def describe(error: Exception) -> str:
    """An exception, as the answer that it cut off tells it. Ours are sentences for a person already."""
    return str(error) if isinstance(error, PiError) else f"{type(error).__name__}: {error}"


def _blank(request: Request) -> AssistantMessage:
    model = request.model
    return AssistantMessage(
        (),
        model.api,
        model.provider,
        model.id,
        stop_reason="pending",
        thinking_level=request.thinking_level,
    )
