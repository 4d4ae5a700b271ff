"""`pi-trio chat`: a conversation in plain lines, without a screen of its own.

What is printed only ever grows, in the order of reading, so that a screen reader, a log or a
pipe can follow it. On a terminal a line that comes while the agent works is said before its
next step; from a pipe each line waits for the answer to the one before.
"""

from __future__ import annotations

import signal
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

import trio
from attrs import evolve

from pi_trio.approval import Answer, Question
from pi_trio.builtin_commands import builtin_commands
from pi_trio.cli.ask_trust import ask_trust
from pi_trio.cli.chat_text import ChatText
from pi_trio.cli.lines import Lines
from pi_trio.cli.options import (
    add_session_arguments,
    make_parser,
    open_chosen_session,
    parse,
    runtime_config,
)
from pi_trio.cli.prompts import Prompt, gather_prompts
from pi_trio.cli.signals import until_signal
from pi_trio.cli.status import BROKEN_PIPE, ended_by
from pi_trio.cli.stdio import Output, reserved_output
from pi_trio.cli.words import tell
from pi_trio.codec import message_from_json
from pi_trio.commands import View
from pi_trio.errors import BusyError, ConnectionLostError, PiError, SessionError
from pi_trio.events import (
    AgentEvent,
    AgentSettled,
    AgentStart,
    ApprovalRequested,
    ApprovalResolved,
    Gap,
)
from pi_trio.harness.runtime import open_runtime
from pi_trio.hub import Outbox
from pi_trio.loop.lifetime import GOODBYE_SECONDS
from pi_trio.messages import AgentMessage
from pi_trio.nursery import plain_nursery
from pi_trio.remote.interface import Runtime, Snapshot

__all__ = ["Chat", "run"]

_DESCRIPTION = """\
Talk to a coding agent in plain lines: no full screen, nothing is redrawn. A line is a prompt or a
/command (/help lists them); a backslash at its end continues it on the next line. Ctrl+C stops the
turn or the command, twice ends the program; so do Ctrl+D and /quit."""

_SIGN = "> "
_QUESTION_SIGN = "May it run? y, a (always) or n: "
ANSWERS: Mapping[str, Answer] = {
    "y": "once",
    "yes": "once",
    "a": "always",
    "always": "always",
    "n": "no",
    "no": "no",
}
"""What is an answer to a question about a call."""


def run(argv: Sequence[str]) -> int:
    """Run the subcommand. Returns the exit status."""
    parser = make_parser("pi-trio chat", _DESCRIPTION)
    add_session_arguments(parser)
    namespace = parse(parser, argv)
    with reserved_output() as output:
        return trio.run(until_signal, partial(_chat, namespace, output))


async def _chat(namespace: Namespace, output: Output) -> int:
    lines = Lines()
    try:
        config = await ask_trust(runtime_config(namespace), lines, output)
        config = evolve(config, can_ask=lines.is_terminal)
        prompts = gather_prompts(namespace.messages, "") if namespace.messages else []
        async with open_runtime(config) as runtime:
            snapshot = await open_chosen_session(runtime, namespace)
            return await Chat(runtime, snapshot, lines, output).hold(prompts)
    except BrokenPipeError:  # the reader has enough
        return BROKEN_PIPE
    except PiError as error:
        return ended_by(error)


class Chat:
    """One person, one session at a time. It is the `CommandContext` of its commands.

    `attached` to sessions that are not its own, it leaves them as they are.
    """

    def __init__(
        self, runtime: Runtime, snapshot: Snapshot, lines: Lines, output: Output, *, attached: bool = False
    ) -> None:
        self._runtime = runtime
        self._attached = attached
        self._session_id = snapshot.session.id
        self._lines = lines
        self._output = output
        self._interactive = lines.is_terminal
        self._text = ChatText()
        self._commands = builtin_commands()
        self._passing_on = trio.Lock()
        self._filled = trio.Event()
        self._outbox = self._new_outbox()
        self._told: list[str] = []
        self._questions: dict[str, Question] = {}
        self._running = False
        self._commanded = False
        self._expecting = False
        self._interrupted = False
        self._ending = False

    async def hold(self, prompts: Sequence[Prompt]) -> int:
        """Talk until the person has enough. Returns the exit status; cancelling it stops a run of its own."""
        await self._greet(await self._runtime.subscribe(self._session_id, self._outbox))
        try:
            async with plain_nursery() as nursery:
                nursery.start_soon(self._listen)
                if self._interactive:
                    nursery.start_soon(self._mind_interrupts, nursery.cancel_scope)
                await self._converse(prompts)
                nursery.cancel_scope.cancel()
        finally:
            with trio.move_on_after(GOODBYE_SECONDS, shield=True):
                if not self._attached:
                    await self._runtime.abort(self._session_id)
                await self._pass_on()
        return 1 if self._text.failed and not self._interactive else 0

    # ------------------------------------------------------------------ for commands

    @property
    def runtime(self) -> Runtime:
        """See `CommandContext`."""
        return self._runtime

    @property
    def session_id(self) -> str:
        """See `CommandContext`."""
        return self._session_id

    def tell(self, text: str) -> None:
        """See `CommandContext`."""
        self._told.append(text)

    async def show(self, session_id: str) -> None:
        """See `CommandContext`. The session that was shown is closed, which stops its run."""
        before = self._session_id
        if session_id == before:
            return
        await self._pass_on()
        await self._runtime.unsubscribe(before, self._outbox)
        self._session_id, self._outbox = session_id, self._new_outbox()
        snapshot = await self._runtime.subscribe(session_id, self._outbox)
        if not self._attached:
            await self._runtime.close_session(before)
        await self._greet(snapshot)

    def edit(self, text: str) -> None:
        """See `CommandContext`."""
        self.tell(f"The prompt there was:\n{text}")

    def quit(self) -> None:
        """See `CommandContext`."""
        self._ending = True

    def open_view(self, view: View, argument: str) -> bool:
        """See `CommandContext`. There are only lines here."""
        return False

    # ------------------------------------------------------------------ what is said

    async def _converse(self, prompts: Sequence[Prompt]) -> None:
        for prompt in prompts:
            await self._runtime.prompt(self._session_id, prompt.text, prompt.images)
            await self._answered()
        while not self._ending:
            self._expecting = self._interactive
            await self._pass_on()
            line = await self._lines.next()
            self._expecting = False
            if line is None:
                return
            self._text.typed()
            self._interrupted = False
            await self._take(line)

    async def _take(self, line: str) -> None:
        """Do what a line says, and from a pipe wait for what comes of it."""
        try:
            if self._questions and self._interactive:
                await self._answer(line)
            elif line.strip() and not await self._run_command(line):
                await self._send(line)
            if not self._interactive:
                await self._answered()
        except PiError as error:
            if isinstance(error, ConnectionLostError) and not self._interactive:
                raise  # nothing that is still to come would be done
            self._text.failed = True
            self.tell(str(error))
        await self._pass_on()

    async def _run_command(self, line: str) -> bool:
        self._commanded = True
        try:
            return await self._commands.run(self, line)
        finally:
            self._commanded = False

    async def _send(self, line: str) -> None:
        with self._session_there():
            try:
                await self._runtime.prompt(self._session_id, line)
            except BusyError:
                await self._runtime.steer(self._session_id, line)
        self._running = True

    async def _answer(self, line: str) -> None:
        """Answer the oldest question, which others may have done meanwhile; what is no answer asks again."""
        answer = ANSWERS.get(line.strip().lower())
        if answer is not None:
            question_id = next(iter(self._questions))
            del self._questions[question_id]
            await self._runtime.answer(self._session_id, question_id, answer)

    async def _answered(self) -> None:
        with self._session_there():
            await self._runtime.wait_for_idle(self._session_id)
        await self._pass_on()

    @contextmanager
    def _session_there(self) -> Iterator[None]:
        """A server that was started again may not have the session any more."""
        try:
            yield
        except SessionError as error:
            if not self._attached:
                raise
            raise ConnectionLostError(f"the session is not there any more: {error}") from error

    async def _mind_interrupts(self, conversation: trio.CancelScope) -> None:
        """The first Ctrl+C stops the turn or the command, one more before the next line ends the program."""
        with trio.open_signal_receiver(signal.SIGINT) as signals:
            async for _ in signals:
                if self._interrupted:
                    conversation.cancel()
                self._interrupted = True
                if self._running or self._commanded:
                    await self._runtime.abort(self._session_id)
                else:
                    self.tell("Ctrl+C once more ends the program.")
                    await self._pass_on()

    # ------------------------------------------------------------------ what is printed

    async def _listen(self) -> None:
        while True:
            await self._filled.wait()
            self._filled = trio.Event()
            await self._pass_on()

    async def _pass_on(self) -> None:
        """Print what happened, what commands told, and a sign if a line is expected."""
        async with self._passing_on:
            told, self._told = self._told, []
            text = ""
            for event in [envelope.event for envelope in self._outbox.take()]:
                text += self._text.event(event)
                await self._note(event)
            text += "".join(map(self._text.lines, told))
            if self._expecting and (self._questions or not self._running) and not self._text.waiting:
                text += self._text.wait(_QUESTION_SIGN if self._questions else _SIGN)
            if text:
                await self._output.write(text.encode("utf-8", "replace"))

    async def _note(self, event: AgentEvent) -> None:
        """Keep up with what goes on."""
        match event:
            case AgentStart():
                self._running = True
            case AgentSettled():
                self._running = False
            case ApprovalRequested(question):
                self._questions[question.id] = question
            case ApprovalResolved(question_id):
                self._questions.pop(question_id, None)
            case Gap():
                await self._catch_up()

    async def _catch_up(self) -> None:
        """Events are missing. If they had the end of a turn, say how it came out."""
        believed_running = self._running
        with self._session_there():
            snapshot = await self._runtime.snapshot(self._session_id)
            self._look(snapshot)
            if believed_running and not self._running:
                self.tell(self._text.came_out(await self._last_message(snapshot)))

    async def _last_message(self, snapshot: Snapshot) -> AgentMessage | None:
        ids = [head.id for head in snapshot.heads if head.type == "message"][-1:]
        found = await self._runtime.entries(self._session_id, ids)
        return message_from_json(found[0]["message"]) if found else None

    def _look(self, snapshot: Snapshot) -> None:
        self._running = snapshot.running
        self._questions = {question.id: question for question in snapshot.questions}

    async def _greet(self, snapshot: Snapshot) -> None:
        """What a person should know of a session before the first prompt."""
        self._text.renderers = await self._runtime.renderers(self._session_id)
        for finding in snapshot.findings:
            tell(finding)
        if self._interactive:
            name = snapshot.session.name or snapshot.session.id
            self.tell(f"{snapshot.notice}\nSession {name}. /help lists the commands.")
        self._look(snapshot)
        for question in snapshot.questions:
            self.tell(self._text.question(question))
        if snapshot.running:
            said = snapshot.streaming.text if snapshot.streaming is not None else ""
            self.tell(f"[a turn is running]\n{said}".strip())

    def _new_outbox(self) -> Outbox:
        return Outbox(lambda: self._filled.set(), limit=sys.maxsize, limit_characters=sys.maxsize)
