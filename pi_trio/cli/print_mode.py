"""Print mode: sends the prompts one after the other and ends.

`text` prints the last answer; `json` prints the session's header and then every event, one
a line, and at the end why there was no whole answer, if there was none.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import trio

from pi_trio.cli.answer_schema import AnswerSchema
from pi_trio.cli.conversation import Conversation, Outcome
from pi_trio.cli.options import open_chosen_session, runtime_config
from pi_trio.cli.progress import Progress
from pi_trio.cli.prompts import gather_prompts
from pi_trio.cli.signals import until_signal
from pi_trio.cli.status import BROKEN_PIPE, OK, status_of
from pi_trio.cli.stdio import Output, read_piped, reserved_output
from pi_trio.cli.words import tell
from pi_trio.codec import dumps
from pi_trio.errors import PiError, StorageError
from pi_trio.events import AgentEvent, ExtensionError
from pi_trio.harness.runtime import open_runtime
from pi_trio.remote.interface import Runtime, SessionInfo
from pi_trio.resources.paths import absolute
from pi_trio.text import sanitise
from pi_trio.wire import event_to_json, header_to_json

__all__ = ["Printer", "run_print"]


def run_print(namespace: argparse.Namespace) -> int:
    """Answer the messages of a command line. Returns the exit status; raises `StorageError`."""
    with reserved_output() as output:
        return trio.run(until_signal, partial(_print, namespace, output))


async def _print(namespace: argparse.Namespace, output: Output) -> int:
    printer = Printer(output, as_json=namespace.mode == "json")
    try:
        config = runtime_config(namespace)
        schema = AnswerSchema.load(absolute(namespace.output_schema)) if namespace.output_schema else None
        prompts = gather_prompts(namespace.messages, await read_piped(needed=not namespace.messages))
        async with open_runtime(config) as runtime:
            session = await _open(runtime, namespace)
            await printer.begin(session)
            conversation = Conversation(runtime, session.id, printer.events)
            outcome = await conversation.hold(prompts, schema=schema, timeout=namespace.timeout)
            return await printer.end(outcome, as_value=schema is not None)
    except trio.Cancelled:  # by a signal
        tell("stopped")
        raise
    except BrokenPipeError:  # the reader has enough
        return BROKEN_PIPE
    except PiError as error:
        with suppress(BrokenPipeError, StorageError):  # standard error has it too
            await printer.problem(str(error))
        return status_of(error)


async def _open(runtime: Runtime, namespace: argparse.Namespace) -> SessionInfo:
    snapshot = await open_chosen_session(runtime, namespace)
    for finding in snapshot.findings:
        tell(finding)
    Progress.say(snapshot.notice)
    return snapshot.session


class Printer:
    """What standard output gets of a conversation: its last answer, or everything as lines of JSON."""

    def __init__(self, output: Output, *, as_json: bool) -> None:
        self._output = output
        self._as_json = as_json
        self._progress = Progress()

    async def begin(self, session: SessionInfo) -> None:
        """The first line of JSON names the session."""
        if self._as_json:
            await self._write([header_to_json(session)])

    async def events(self, events: Sequence[AgentEvent]) -> None:
        """Pass on what happens. Raises like `Output.write`."""
        self._progress.events(events)
        if self._as_json:
            await self._write(event_to_json(event) for event in events)
            return
        for event in events:
            if isinstance(event, ExtensionError):
                tell(event.error)

    async def end(self, outcome: Outcome, *, as_value: bool) -> int:
        """Print how it came out; `as_value` what matched a schema and nothing else. Gives the exit status."""
        if not self._as_json and not as_value:
            shown = sanitise(outcome.text) if self._output.is_terminal else outcome.text
            await self._output.write(shown.encode("utf-8", "replace"))
        elif not self._as_json and outcome.status == OK:
            await self._write([outcome.value])
        if outcome.problem:
            await self.problem(outcome.problem)
        return outcome.status

    async def problem(self, sentence: str) -> None:
        """Say on standard error, and in the last line of JSON, what was wrong."""
        tell(sentence)
        if self._as_json:
            await self._write([{"type": "error", "message": sentence}])

    async def _write(self, items: Iterable[Any]) -> None:
        await self._output.write(b"".join(dumps(item) + b"\n" for item in items))
