"""Print mode: sends the prompts one after the other and ends.

`text` prints the last answer; `json` prints the session's header and then every event, one
a line. The exit status is 0 only if every prompt got a whole answer.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from typing import Any

import trio

from pi_trio.cli.options import open_chosen_session, runtime_config
from pi_trio.cli.prompts import Prompt, gather_prompts
from pi_trio.cli.signals import until_signal
from pi_trio.cli.stdio import BROKEN_PIPE, Output, read_piped, reserved_output, tell
from pi_trio.codec import dumps
from pi_trio.errors import InternalError, PiError, StorageError
from pi_trio.events import AgentEvent, AgentSettled, ExtensionError, MessageEnd
from pi_trio.harness.runtime import open_runtime
from pi_trio.hub import Outbox
from pi_trio.loop.lifetime import GOODBYE_SECONDS
from pi_trio.messages import AssistantMessage, TextContent
from pi_trio.remote.interface import Runtime
from pi_trio.text import sanitise
from pi_trio.wire import event_to_json, header_to_json

__all__ = ["Conversation", "run_print"]


def run_print(namespace: argparse.Namespace) -> int:
    """Answer the messages of a command line. Returns the exit status; raises `StorageError`."""
    with reserved_output() as output:
        return trio.run(until_signal, partial(_print, namespace, output))


async def _print(namespace: argparse.Namespace, output: Output) -> int:
    as_json = namespace.mode == "json"
    try:
        config = runtime_config(namespace)
        prompts = gather_prompts(namespace.messages, await read_piped(needed=not namespace.messages))
        async with open_runtime(config) as runtime:
            snapshot = await open_chosen_session(runtime, namespace)
            for finding in snapshot.findings:
                tell(finding)
            if snapshot.notice and sys.stderr is not None and sys.stderr.isatty():
                tell(snapshot.notice)
            return await Conversation(runtime, snapshot.session.id, output, as_json=as_json).hold(prompts)
    except trio.Cancelled:  # by a signal
        tell("stopped")
        raise
    except BrokenPipeError:  # the reader has enough
        return BROKEN_PIPE
    except PiError as error:
        if as_json:
            with suppress(BrokenPipeError, StorageError):  # standard error has it too
                await output.write(_lines([{"type": "error", "message": str(error)}]))
        tell(str(error))
        return 1


class Conversation:
    """Prompts and answers in one session, from the first to the exit status."""

    def __init__(self, runtime: Runtime, session_id: str, output: Output, *, as_json: bool) -> None:
        self._runtime = runtime
        self._session_id = session_id
        self._output = output
        self._as_json = as_json
        self._filled = trio.Event()
        # Without limits: what waits for a slow reader merges, and nothing of it may be dropped.
        self._outbox = Outbox(self._on_filled, limit=sys.maxsize, limit_characters=sys.maxsize)
        self._answer: AssistantMessage | None = None

    async def hold(self, prompts: Iterable[Prompt]) -> int:
        """Send the prompts until one gets no whole answer. Cancelling it stops the run first."""
        snapshot = await self._runtime.subscribe(self._session_id, self._outbox)
        try:
            if self._as_json:
                await self._output.write(_lines([header_to_json(snapshot.session)]))
            problem = None
            for prompt in prompts:
                await self._ask(prompt)
                if problem := _problem(self._answer):
                    break
        finally:
            with trio.move_on_after(GOODBYE_SECONDS, shield=True):
                await self._runtime.abort(self._session_id)
                await self._pass_on()
        if self._answer is not None and not self._as_json:
            await self._print_answer(self._answer)
        if problem:
            tell(problem)
        return 1 if problem else 0

    async def _ask(self, prompt: Prompt) -> None:
        """Send a prompt and pass events on until the run is over."""
        self._answer = None
        await self._runtime.prompt(self._session_id, prompt.text, prompt.images)
        while True:
            await self._filled.wait()
            if any(isinstance(event, AgentSettled) for event in await self._pass_on()):
                return
            if self._outbox.closed:
                raise InternalError("the session was closed during a run")

    async def _pass_on(self) -> list[AgentEvent]:
        """Note and, in JSON mode, write what is in the outbox."""
        self._filled = trio.Event()
        events = [envelope.event for envelope in self._outbox.take()]
        for event in events:
            if isinstance(event, MessageEnd) and isinstance(event.message, AssistantMessage):
                self._answer = event.message
            elif isinstance(event, ExtensionError) and not self._as_json:
                tell(event.error)
        if self._as_json and events:
            await self._output.write(_lines(event_to_json(event) for event in events))
        return events

    async def _print_answer(self, answer: AssistantMessage) -> None:
        """Each block of text with a line end; a failed or aborted answer is not one."""
        if answer.stop_reason in ("error", "aborted"):
            return
        text = "".join(f"{block.text}\n" for block in answer.content if isinstance(block, TextContent))
        shown = sanitise(text) if self._output.is_terminal else text
        await self._output.write(shown.encode("utf-8", "replace"))

    def _on_filled(self) -> None:
        self._filled.set()


def _problem(answer: AssistantMessage | None) -> str | None:
    """Why this is not a whole answer; None if it is."""
    if answer is None:
        return "the model gave no answer"
    match answer.stop_reason:
        case "error":
            return answer.error_message or "the request failed"
        case "aborted":
            return "the answer was aborted"
        case "length":
            return "the answer was cut off: it reached the model's output limit"
        case _:
            return None


def _lines(items: Iterable[dict[str, Any]]) -> bytes:
    return b"".join(dumps(item) + b"\n" for item in items)
