"""What the screen has the runtime do: sessions, sending, stopping, the tree, commands.

Each method is one thing that the user wants, from the key to the last word about it. They run
beside the keys, and raise the runtime's `PiError`s to whoever started them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from attrs import define

from pi_trio.errors import PiError, UsageError
from pi_tui.hints import Hint, argument_hints, command_hints, file_hints
from pi_tui.open_sessions import OpenSessions, State, state_of
from pi_tui.pictures import load_image
from pi_tui.queueing import Queueing
from pi_tui.tree_work import TreeWork

if TYPE_CHECKING:
    from pathlib import Path

    from pi_trio.approval import Question
    from pi_trio.commands import View as OwnView
    from pi_trio.llm.protocol import Model
    from pi_trio.remote.interface import CommandInfo, Runtime, Snapshot
    from pi_tui.bridge import Bridge
    from pi_tui.live import LiveSession
    from pi_tui.offered import Offered
    from pi_tui.screens.question import Reply
    from pi_tui.screens.sessions import Choice
    from pi_tui.store import SessionStore
    from pi_tui.widgets.prompt import Delivery, Prompt

__all__ = ["View", "Work"]


FIRST_KEYS = 0.3
"""Seconds in which a new screen has the processor for itself: looking around imports a lot."""


class View(Protocol):
    """The screen, as far as it is needed here."""

    @property
    def prompt(self) -> Prompt: ...

    async def show(self, store: SessionStore) -> None:
        """Show a session in the place of the one before."""

    def do(self, task: Coroutine[Any, Any, None]) -> None:
        """Run something beside the keys; what the runtime refuses is said."""

    def announce(self, live: LiveSession) -> None:
        """Events of a session have arrived."""

    def sync(self) -> None:
        """Something has changed that no event tells."""

    def find_hints(self) -> None:
        """There are other commands now."""

    def tell(self, message: str) -> None:
        """Say something for a moment."""

    def say(self, text: str) -> None:
        """Say something that stays."""

    def to_stream(self) -> None:
        """Turn to the stream and its prompt."""

    def to_end(self) -> None:
        """Follow the end of the stream."""

    async def open_view(self, view: OwnView, argument: str) -> None:
        """Do what a slash command asks of the screen itself."""

    def leave(self) -> None:
        """End the program."""


@define(eq=False)
class _OnWay:
    """A text that is being sent, by a task."""

    live: LiveSession
    text: str
    task: asyncio.Task[Any] | None
    is_taken_back: bool = False

    def take_back(self) -> None:
        """Have it not be sent, unless it has gone out already."""
        self.is_taken_back = True
        if self.task is not None:
            self.task.cancel()


class Work:
    """Shows one session at a time, none before `begin`. `stopping` and `summarising` say what goes on,
    `commands` what may follow a slash, `tree` is what is done in the session tree.
    """

    def __init__(self, view: View) -> None:
        self.sessions = OpenSessions()
        self.queueing = Queueing(view)
        self._view = view
        self._bridge: Bridge | None = None
        self._sending = asyncio.Lock()
        self._switching = asyncio.Lock()
        self._early: list[Prompt.Submitted] = []
        self._on_way: list[_OnWay] = []
        self._drafts: dict[str, str] = {}
        self._began: dict[str, tuple[int, str]] = {}
        self.commands: list[CommandInfo] = []
        self.tree = TreeWork(self, view)

    @property
    def live(self) -> LiveSession | None:
        """The session that is shown."""
        return self.sessions.shown

    @property
    def stopping(self) -> bool:
        """Whether the run of the session that is shown is being stopped."""
        return self.live is not None and self.live.stopping

    @property
    def summarising(self) -> bool:
        """Whether a branch of the session that is shown is being summed up."""
        return self.live is not None and self.live.summarising

    @property
    def sending(self) -> bool:
        """Whether a text is on its way, so that a run is about to start."""
        return self._sending.locked()

    @property
    def unsent(self) -> list[str]:
        """Texts for the session that is shown which wait for its server to be there again."""
        return [each.text for each in self._waiting()]

    def _waiting(self) -> list[_OnWay]:
        return [each for each in self._on_way if each.live is self.live and each.live.store.lost is not None]

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
            await self._deliver(self._now, text, "follow_up" if self._store.running else "send")
        early, self._early = self._early, []
        for each in early:
            await self.submit(each)

    async def switch(self, choose: Callable[[Runtime], Awaitable[Snapshot]]) -> None:
        """Show another session. The one before keeps its draft and stays open: what runs in it goes on."""
        async with self._switching:  # side by side, the draft of one would be taken for another's
            await self._switch(choose)

    async def _switch(self, choose: Callable[[Runtime], Awaitable[Snapshot]]) -> None:
        from pi_tui.items.welcome import suggestions

        self.queueing.stop()
        prompt, before = self._view.prompt, self.live
        draft = prompt.take_draft() if before is not None else ""  # what is typed from now on is not its
        try:
            live = await self._opened(choose)
        except PiError:
            prompt.put_back([draft])
            raise
        if before is not None:
            self._drafts[before.id] = draft
        self.sessions.show(live)
        prompt.forget_edits()
        prompt.put_back([self._drafts.pop(live.id, "")])
        await self._view.show(live.store)
        if before is not None and before is not live and not draft:
            await self._close_if_empty(before)
        prompt.remember(live.store.items.prompts)
        prompt.suggestions = () if live.store.outline else suggestions(live.store.model)
        prompt.put_back(await live.take_returned())
        await self._learn_commands()
        self._view.sync()
        self._view.do(self._when_quiet(live))

    async def _when_quiet(self, live: LiveSession) -> None:
        """What waits until the screen is there and the first keys are answered: what the first screen
        tells of the place, and colours for the first answer.
        """
        from pi_tui.items.code import prepare_colours

        await asyncio.sleep(FIRST_KEYS)
        prepare_colours()
        if live.store.outline or self.live is not live:
            return  # it may be closed, and will be looked at again if it is shown again
        live.store.look_around(await self.offered.surroundings(live.id))
        self._view.sync()

    async def _opened(self, choose: Callable[[Runtime], Awaitable[Snapshot]]) -> LiveSession:
        """The session that `choose` gives, which may be open here already."""
        from pi_tui.live import LiveSession

        bridge = self.bridge
        chosen = await bridge.call(choose)
        known = self.sessions.get(chosen.session.id)
        return known or await LiveSession.open(bridge, chosen.session.id, self._view.announce)

    async def _close_if_empty(self, live: LiveSession) -> None:
        """A session in which nothing was ever said is not worth keeping open."""
        store = live.store
        if not (store.outline or store.running or store.shell is not None):
            await self.close(live)

    async def close(self, live: LiveSession) -> None:
        """Close a session that is not shown, which stops what runs in it. Its file stays."""
        self.sessions.drop(live.id)
        self._drafts.pop(live.id, None)
        self._began.pop(live.id, None)
        self.tree.forget(live.id)
        await live.close()
        self._view.sync()

    async def next_session(self) -> None:
        """Show the next open session; one that needs the user comes first."""
        needy = self.sessions.next(lambda live: state_of(live) in (State.ASKS, State.FAILED, State.UNSEEN))
        live = needy or self.sessions.next()
        if live is None:
            self._view.tell("no other session is open")
            return
        await self.switch(lambda runtime: runtime.snapshot(live.id))

    @property
    def bridge(self) -> Bridge:
        """The way to the runtime, from `begin` on."""
        assert self._bridge is not None  # noqa: S101
        return self._bridge

    @property
    def offered(self) -> Offered:
        """What the runtime offers besides sessions."""
        from pi_tui.offered import Offered

        return Offered(self.bridge)

    async def show_chosen(self, choice: Choice) -> None:
        """Show a session that was chosen in the list, or a copy of it that works in another folder."""
        from pi_tui.offered import copy_session

        row = choice.row
        if choice.folder and row.path is not None:
            path = row.path
            await self.switch(lambda runtime: copy_session(runtime, path, choice.folder))
        elif row.state is not None:
            await self.switch(lambda runtime: runtime.snapshot(row.id))
        else:
            await self.switch(lambda runtime: runtime.open_session(row.path or row.id))

    async def log_in(self, live: LiveSession, provider: str, key: str) -> None:
        """Store a key. A session that has the demo model for want of one gets a model of the provider."""
        path = await self.offered.store_key(live.id, provider, key)
        await live.adopt()
        live.store.say(f"The key of {provider} is stored in {path}.")
        self._view.sync()

    async def _learn_commands(self) -> None:
        live = self._now
        self.commands = await live.commands()
        live.store.learn_commands(self.commands)
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
        self.give_back(live, await live.take_returned())

    def give_back(self, live: LiveSession, texts: Sequence[str]) -> None:
        """Put texts before what is written for a session, which may not be the one that is shown by now."""
        if live is self.live or self.sessions.get(live.id) is not live:
            self._view.prompt.put_back(texts)
        elif any(texts):
            draft = self._drafts.get(live.id, "")
            self._drafts[live.id] = "\n\n".join(filter(None, [*texts, draft]))

    async def load(self, ids: list[str]) -> None:
        """Bring bodies that are seen now."""
        await self._now.load(ids)
        self._view.sync()

    # ---------------------------------------------------------------- sending

    async def submit(self, sent: Prompt.Submitted) -> None:
        """Do what was written: a command of the user, a slash command, or a text for the model."""
        text, live = sent.text, self.live
        if live is None:
            self._early.append(sent)
        elif self.queueing.editing is not None:
            await self.queueing.finish(text)
        elif text.startswith("!"):
            await self._shell(live, text)
        elif not (text.startswith("/") and await self._command(live, text)):
            await self._deliver(live, text, sent.delivery, sent.images)

    async def _deliver(
        self, live: LiveSession, text: str, delivery: Delivery, images: Sequence[Path] = ()
    ) -> None:
        """Send one text after the other: side by side, the runtime may take them in any order."""
        on_way = _OnWay(live, text, asyncio.current_task())
        self._on_way.append(on_way)
        self._view.sync()
        try:
            async with self._sending:
                attached = [await asyncio.to_thread(load_image, path) for path in images]
                turn = live.store.turn_number + 1
                sent = live.queue if delivery == "follow_up" else live.say
                if await sent(text, attached) == "started":
                    self._began[live.id] = (turn, text)
        except PiError:
            self.give_back(live, [text])
            raise
        except asyncio.CancelledError:
            if not on_way.is_taken_back:
                raise
        finally:
            self._on_way.remove(on_way)
            self._view.sync()
        self._view.to_end()

    def take_back(self) -> None:
        """Have the texts that wait for their server back in the prompt."""
        waiting = self._waiting()
        for each in waiting:
            each.take_back()
        self.give_back(self._now, [each.text for each in waiting])

    async def _shell(self, live: LiveSession, text: str) -> None:
        """`!` runs a command and lets the model see it, `!!` keeps it from the model."""
        private = text.startswith("!!")
        command = text.lstrip("!").strip()
        if not command:
            self.give_back(live, [text])
            raise UsageError("Write a command behind the !, and !! keeps it from the model.")
        self._view.to_end()
        try:
            await live.shell(command, private=private)
        except PiError:
            self.give_back(live, [text])
            raise
        finally:
            self._view.sync()

    async def _command(self, live: LiveSession, text: str) -> bool:
        """Run a slash command. False if it is a text for the model, such as a path or a template."""
        try:
            told = await live.command(text)
        except PiError:
            self.give_back(live, [text])
            raise
        if told is None:
            return False
        if told.session_id != live.id:
            await self.switch(lambda runtime: runtime.snapshot(told.session_id))
            live = self._now
        for line in told.lines:
            live.store.say(line)
        self.give_back(live, [told.text])
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

    async def file_hints(self, word: str) -> list[Hint]:
        """The files that an `@word` may name."""
        wanted = word[1:].lstrip('"')
        return file_hints(word, await self.offered.complete_file(self._now.id, wanted))

    async def continue_turn(self) -> None:
        """Go on where an answer is owed or was cut off."""
        await self._now.continue_turn()
        self._view.to_end()

    async def dequeue(self) -> None:
        """Take the texts that wait back into the prompt."""
        live = self._now
        self.give_back(live, await live.take_queue())

    # ---------------------------------------------------------------- stopping

    async def stop(self, *, withdraw: bool = True) -> None:
        """Stop the run; what waited comes back into the prompt, a prompt that nothing came of too.

        Without `withdraw` such a prompt stays where it is, for who goes elsewhere anyway.
        """
        live = self.live
        if live is None or live.stopping:
            return
        live.stopping = True
        self._view.sync()
        started = live.store.clock()
        try:
            async with self._sending:  # a text that is on its way is stopped with what it starts
                turn, begun = live.store.turn_number, live.store.turn_begun
                taken, waiting = await live.abort()
        finally:
            live.stopping = False
        took = (live.store.clock() - started) * 1000
        too_early = bool(taken) and not begun and live.store.turn_number == turn  # room was being made
        if too_early:
            taken[0] = self._as_written(live, turn + 1, taken[0])
        self.give_back(live, [*taken, *waiting])
        if too_early:
            self._say_stopped(live, f"■ You stopped before turn {turn + 1} began: the prompt is back.")
            return
        said = f"■ You stopped turn {turn}. {took:.0f} ms."
        unanswered = live.store.items.unanswered if withdraw else None
        if unanswered is not None and self._view.prompt.can_have_back(unanswered[1]):
            moved = await live.navigate(unanswered[0])
            self.give_back(live, [self._as_written(live, turn, moved.text)])
            said = f"■ You stopped turn {turn}. Nothing had come of it: the prompt is back."
        self._say_stopped(live, said)

    def _as_written(self, live: LiveSession, turn: int, text: str) -> str:
        """The prompt of a turn as it was sent from here: a template comes back with what it stands for."""
        began, written = self._began.pop(live.id, (0, ""))
        return written if began == turn and written.startswith("/") else text

    def _say_stopped(self, live: LiveSession, said: str) -> None:
        if not live.store.items or live.store.items[-1].text != said:  # who hesitates reads it once
            live.store.say(said)
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
