"""What the screen has the runtime do: sessions, sending, stopping, the tree, commands.

Each method is one thing that the user wants, from the key to the last word about it. They run
beside the keys, and raise the runtime's `PiError`s to whoever started them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from pi_trio.errors import PiError, UsageError
from pi_tui.hints import Hint, argument_hints, command_hints
from pi_tui.tree_work import TreeWork

if TYPE_CHECKING:
    from pi_trio.approval import Question
    from pi_trio.commands import View as OwnView
    from pi_trio.llm.protocol import Model
    from pi_trio.remote.interface import CommandInfo, Runtime, Snapshot
    from pi_tui.bridge import Bridge
    from pi_tui.live import LiveSession
    from pi_tui.screens.question import Reply
    from pi_tui.store import SessionStore
    from pi_tui.widgets.prompt import Delivery, Prompt

__all__ = ["View", "Work"]


class View(Protocol):
    """The screen, as far as it is needed here."""

    @property
    def prompt(self) -> Prompt: ...

    async def show(self, store: SessionStore) -> None:
        """Show a session in the place of the one before."""

    def announce(self, live: LiveSession) -> None:
        """Events of a session have arrived."""

    def sync(self) -> None:
        """Something has changed that no event tells."""

    def find_hints(self) -> None:
        """There are other commands now."""

    def tell(self, message: str) -> None:
        """Say something for a moment."""

    def to_stream(self) -> None:
        """Turn to the stream and its prompt."""

    def to_end(self) -> None:
        """Follow the end of the stream."""

    async def open_view(self, view: OwnView, argument: str) -> None:
        """Do what a slash command asks of the screen itself."""

    def leave(self) -> None:
        """End the program."""


class Work:
    """One session at a time, None before `begin`. `stopping` and `summarising` say what goes on,
    `commands` what may follow a slash, `tree` is what is done in the session tree.
    """

    def __init__(self, view: View) -> None:
        self.live: LiveSession | None = None
        self.stopping = False
        self.summarising = False
        self._view = view
        self._bridge: Bridge | None = None
        self._sending = asyncio.Lock()
        self._unsent: list[tuple[str, Delivery]] = []
        self._drafts: dict[str, str] = {}
        self.commands: list[CommandInfo] = []
        self.tree = TreeWork(self, view)

    @property
    def sending(self) -> bool:
        """Whether a text is on its way, so that a run is about to start."""
        return self._sending.locked()

    @property
    def _now(self) -> LiveSession:
        assert self.live is not None  # noqa: S101  # callers have a session
        return self.live

    @property
    def _store(self) -> SessionStore:
        return self._now.store

    # ---------------------------------------------------------------- sessions

    async def begin(
        self,
        bridge: Bridge,
        choose: Callable[[Runtime], Awaitable[Snapshot]],
        messages: Sequence[str],
    ) -> None:
        """Open the first session, and send what was already written."""
        self._bridge = bridge
        await self.switch(choose)
        for text in messages:
            await self._deliver(text, "follow_up" if self._store.running else "send")
        for text, delivery in self._unsent:
            await self.submit(text, delivery)

    async def switch(self, choose: Callable[[Runtime], Awaitable[Snapshot]]) -> None:
        """Show another session. The one before keeps its draft and stays open in the runtime, where a
        run in it goes on.
        """
        from pi_tui.items.welcome import suggestions
        from pi_tui.live import LiveSession

        assert self._bridge is not None  # noqa: S101  # `begin` came before
        prompt = self._view.prompt
        draft = prompt.take_draft() if self.live is not None else ""  # what is typed from now on is not its
        try:
            live = await LiveSession.open(self._bridge, choose, self._view.announce)
        except PiError:
            prompt.put_back([draft])
            raise
        if self.live is not None:
            await self.live.close()
            self._drafts[self.live.id] = draft
        self.live = live
        prompt.put_back([self._drafts.pop(live.id, "")])
        await self._view.show(live.store)
        prompt.remember(live.store.prompts())
        prompt.suggestions = () if live.store.heads else suggestions(live.store.model)
        prompt.put_back(await live.take_returned())
        await self._learn_commands()
        self._view.sync()

    async def _learn_commands(self) -> None:
        self.commands = await self._now.commands()
        self._view.find_hints()

    async def new_session(self) -> None:
        """Begin another session."""
        await self.switch(lambda runtime: runtime.new_session())

    async def recover(self, live: LiveSession) -> None:
        """Start again from a snapshot, after events were lost."""
        await live.recover()
        self._view.sync()

    async def put_back_returned(self, live: LiveSession) -> None:
        """Texts that were taken for use and not used come into the prompt."""
        self._view.prompt.put_back(await live.take_returned())

    async def load(self, ids: list[str]) -> None:
        """Bring bodies that are seen now."""
        await self._now.load(ids)
        self._view.sync()

    # ---------------------------------------------------------------- sending

    async def submit(self, text: str, delivery: Delivery) -> None:
        """Do what was written: a command of the user, a slash command, or a text for the model."""
        if self.live is None:
            self._unsent.append((text, delivery))
        elif text.startswith("!"):
            await self._shell(text)
        elif not (text.startswith("/") and await self._command(text)):
            await self._deliver(text, delivery)

    async def _deliver(self, text: str, delivery: Delivery) -> None:
        """Send one text after the other: side by side, the runtime may take them in any order."""
        live = self._now
        async with self._sending:
            try:
                await (live.queue(text) if delivery == "follow_up" else live.say(text))
            except PiError:
                self._view.prompt.put_back([text])
                raise
        self._view.to_end()

    async def _shell(self, text: str) -> None:
        """`!` runs a command and lets the model see it, `!!` keeps it from the model."""
        private = text.startswith("!!")
        command = text.lstrip("!").strip()
        if not command:
            raise UsageError("Write a command behind the !, and !! keeps it from the model.")
        self._view.to_end()
        try:
            await self._now.shell(command, private=private)
        except PiError:
            self._view.prompt.put_back([text])
            raise
        finally:
            self._view.sync()

    async def _command(self, text: str) -> bool:
        """Run a slash command. False if it is a text for the model, such as a path or a template."""
        try:
            told = await self._now.command(text)
        except PiError:
            self._view.prompt.put_back([text])
            raise
        if told is None:
            return False
        if told.session_id != self._now.id:
            await self.switch(lambda runtime: runtime.snapshot(told.session_id))
        for line in told.lines:
            self._store.say(line)
        self._view.prompt.put_back([told.text])
        await self._learn_commands()  # it may have brought others
        self._view.to_end()
        self._view.sync()
        if told.view is not None:
            await self._view.open_view(*told.view)
        if told.ended:
            self._view.leave()
        return True

    def hints(self, text: str) -> list[Hint]:
        """The commands that a text may become."""
        return command_hints(text, self.commands)

    async def argument_hints(self, text: str) -> list[Hint]:
        """What may follow a command."""
        return argument_hints(text, await self._now.complete(text))

    async def continue_turn(self) -> None:
        """Go on where an answer is owed or was cut off."""
        await self._now.continue_turn()
        self._view.to_end()

    async def dequeue(self) -> None:
        """Take the texts that wait back into the prompt."""
        self._view.prompt.put_back(await self._now.take_queue())

    # ---------------------------------------------------------------- stopping

    async def stop(self) -> None:
        """Stop the run; what waited comes back into the prompt."""
        if self.live is None or self.stopping:
            return
        self.stopping = True
        self._view.sync()
        started = time.monotonic()
        try:
            async with self._sending:  # a text that is on its way is stopped with what it starts
                turn = self._store.turn_number
                texts = await self.live.abort()
        finally:
            self.stopping = False
        took = (time.monotonic() - started) * 1000
        self._view.prompt.put_back(texts)
        self._store.say(f"■ You stopped turn {turn}. {took:.0f} ms.")
        self._view.sync()

    async def stop_summary(self) -> None:
        """Stop the summary of a context or of a branch."""
        await self._now.abort_summary()
        self._view.sync()

    async def stop_shell(self) -> None:
        """Stop the user's command."""
        await self._now.abort_shell()
        self._view.sync()

    async def stop_call(self, call_id: str) -> None:
        """Stop one call; the run goes on."""
        if not await self._now.abort_call(call_id):
            self._view.tell("this call does not run any more")

    async def answer(self, live: LiveSession, question: Question, reply: Reply) -> None:
        """Answer a question about a call; the reason of a no is said to the model."""
        if reply.stop:
            await self.stop()
            return
        if reply.reason:
            await live.say(reply.reason)
        await live.answer(question.id, reply.answer)

    # ---------------------------------------------------------------- the model

    async def set_model(self, model: Model) -> None:
        """Use another model from the next request on."""
        await self._now.set_model(model)
        self._view.sync()

    async def next_thinking_level(self) -> None:
        """The next level that the model can do, around the end."""
        from pi_trio.llm.thinking import supported_levels

        store = self._store
        possible: list[str] = list(supported_levels(store.model))
        at = possible.index(store.thinking_level) if store.thinking_level in possible else -1
        if len(possible) < 2:
            self._view.tell(f"{store.model.id} has no thinking levels")
            return
        await self._now.set_thinking_level(possible[(at + 1) % len(possible)])
        self._view.sync()
