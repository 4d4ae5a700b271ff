"""A session that is open in the runtime: its store, kept up to date, and its commands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pi_trio.approval import Answer
from pi_trio.errors import BusyError, PiError
from pi_trio.events import QueueUpdate
from pi_trio.hub import Envelope
from pi_trio.llm.protocol import Model
from pi_trio.messages import ImageContent
from pi_trio.remote.interface import CommandInfo, Disposition, Moved, Runtime
from pi_trio.resources.setting_changes import Scope, SettingInfo
from pi_trio.session.digest import Digest
from pi_trio.view_commands import with_settings
from pi_tui.bridge import Bridge, Subscription
from pi_tui.commands import Told, all_commands, completions, run_command
from pi_tui.find import Query, entry_says
from pi_tui.items.tree_preview import Preview
from pi_tui.store import SessionStore
from pi_tui.tree_rows import Row

__all__ = ["LiveSession"]

FIRST_LOADED = 60
"""Items at the end of a session whose bodies are loaded before it is shown."""

PREVIEWED = 14
"""Entries at the end of a row that its preview is made of."""


class LiveSession:
    """All methods are called in the loop's thread and raise the runtime's `PiError`s."""

    def __init__(self, bridge: Bridge, subscription: Subscription, templates: Mapping[str, str]) -> None:
        self._bridge = bridge
        self._subscription = subscription
        self.store = SessionStore(subscription.snapshot, templates=templates)
        self.unseen = False
        """Whether a run has ended since somebody looked."""
        self.stopping = False
        self.summarising = False
        """What the screen has asked of it and waits for: that a run stops, a summary of a branch."""

    @classmethod
    async def open(
        cls, bridge: Bridge, session_id: str, changed: Callable[[LiveSession], None]
    ) -> LiveSession:
        """Listen to a session that the runtime has open. `changed` is called when its store has changed."""
        early: list[Envelope] = []
        deliver: Callable[[list[Envelope]], None] = early.extend
        subscription = await bridge.subscribe(session_id, lambda batch: deliver(batch))
        live = cls(bridge, subscription, await bridge.call(lambda runtime: runtime.renderers(session_id)))

        def apply(batch: list[Envelope]) -> None:
            was_running = live.store.running
            live.store.apply(batch)
            live.unseen = live.unseen or (was_running and not live.store.running)
            changed(live)

        deliver = apply
        live.store.apply(early)
        await live._load_end()
        return live

    @property
    def id(self) -> str:
        """The session's id."""
        return self.store.session.id

    async def close(self) -> None:
        """Stop listening, and close the session, which stops what runs in it. Its file stays."""
        await self._subscription.close()
        await self._bridge.call(lambda runtime: runtime.close_session(self.id))

    async def load(self, ids: Sequence[str]) -> None:
        """Bring the bodies of entries into the store."""
        if ids:
            self.store.fill(await self._bridge.call(lambda runtime: runtime.entries(self.id, ids)))

    async def find_among(self, ids: Sequence[str], query: Query) -> list[str]:
        """Which of some entries say something. Their bodies stay where they are: they may be many."""

        async def look(runtime: Runtime) -> list[str]:
            entries = await runtime.entries(self.id, ids)
            return [str(entry["id"]) for entry in entries if entry_says(entry, query, self.store.templates)]

        return await self._bridge.call(look)

    async def recover(self) -> None:
        """Start again from a snapshot, after events were lost."""
        snapshot = await self._bridge.call(lambda runtime: runtime.snapshot(self.id))
        self.store.reset(snapshot)
        await self._load_end()

    async def _load_end(self) -> None:
        items = self.store.items
        await self.load(items.missing_ids(len(items) - FIRST_LOADED, len(items)))

    # ---------------------------------------------------------------- commands

    async def say(self, text: str, images: Sequence[ImageContent] = ()) -> Disposition | None:
        """Send a prompt; while a run goes on, steer it. Cancelled before it has gone out, it never will."""
        try:
            return await self._bridge.call_revocable(lambda runtime: runtime.prompt(self.id, text, images))
        except BusyError:
            return await self._bridge.call_revocable(lambda runtime: runtime.steer(self.id, text, images))

    async def queue(self, text: str, images: Sequence[ImageContent] = ()) -> Disposition | None:
        """Have a prompt wait until the agent would stop. Cancelled, it is as with `say`."""
        return await self._bridge.call_revocable(lambda runtime: runtime.follow_up(self.id, text, images))

    async def edit_queued(self, item_id: str, text: str) -> None:
        """Put another text in the place of one that waits."""
        await self._bridge.call(lambda runtime: runtime.edit_queued(self.id, item_id, text))
        await self._learn_queue()

    async def remove_queued(self, item_id: str) -> None:
        """Take one out that waits."""
        await self._bridge.call(lambda runtime: runtime.remove_queued(self.id, item_id))
        await self._learn_queue()

    async def move_queued(self, item_id: str, place: int) -> None:
        """Put one that waits in another place of its list."""
        await self._bridge.call(lambda runtime: runtime.move_queued(self.id, item_id, place))
        await self._learn_queue()

    async def _learn_queue(self) -> None:
        """At once, whichever event comes when."""
        self.store.queue = (await self._bridge.call(lambda runtime: runtime.snapshot(self.id))).queue

    async def abort(self) -> tuple[list[str], list[str]]:
        """Stop the run, with the store up to date; the texts that it had taken, and those that wait."""
        await self._bridge.call(lambda runtime: runtime.abort(self.id))
        waiting = await self.take_queue()
        self._subscription.flush()
        return await self.take_returned(), waiting

    async def abort_summary(self) -> None:
        """Stop the summary that is being made; what waits goes on waiting."""
        await self._bridge.call(lambda runtime: runtime.abort(self.id))
        self._subscription.flush()

    async def abort_call(self, call_id: str) -> bool:
        """Stop one call. False if it does not run any more."""
        return await self._bridge.call(lambda runtime: runtime.abort_call(self.id, call_id))

    async def continue_turn(self) -> None:
        """Go on where an answer is owed or was cut off."""
        await self._bridge.call(lambda runtime: runtime.continue_turn(self.id))

    async def take_queue(self) -> list[str]:
        """Take out the texts that wait."""
        waiting = await self._bridge.call(lambda runtime: runtime.clear_queue(self.id))
        self._subscription.flush()
        self.store.queue = QueueUpdate((), ())
        return [*waiting.steering, *waiting.follow_up]

    async def answer(self, question_id: str, answer: Answer) -> None:
        """Answer a question about a call."""
        self.store.questions.pop(question_id, None)
        await self._bridge.call(lambda runtime: runtime.answer(self.id, question_id, answer))

    async def shell(self, command: str, *, private: bool) -> None:
        """Run a command of the user to its end; its output comes into the store meanwhile."""
        shell = self.store.start_shell(command)
        try:
            shell.message = await self._bridge.call(
                lambda runtime: runtime.run_shell(self.id, command, private)
            )
        except PiError:
            self.store.drop_shell(shell)
            raise

    async def abort_shell(self) -> None:
        """Stop the user's command."""
        await self._bridge.call(lambda runtime: runtime.abort_shell(self.id))

    async def command(self, line: str) -> Told | None:
        """Run a slash command. None if the line is a text for the model."""
        told = await self._bridge.call(lambda runtime: run_command(runtime, self.id, line))
        if told is not None and told.session_id == self.id:
            await self.adopt()
            await self._learn_templates()
            self._subscription.flush()
        return told

    async def adopt(self) -> None:
        """Take over what no event tells, such as another model."""
        self.store.adopt(await self._bridge.call(lambda runtime: runtime.snapshot(self.id)))

    async def _learn_templates(self) -> None:
        """Extensions may have been read again."""
        self.store.templates = await self._bridge.call(lambda runtime: runtime.renderers(self.id))

    async def commands(self) -> list[CommandInfo]:
        """All slash commands of the session."""
        return await self._bridge.call(lambda runtime: all_commands(runtime, self.id))

    async def complete(self, line: str) -> list[str]:
        """The lines that a command line may become."""
        return await self._bridge.call(lambda runtime: completions(runtime, self.id, line))

    async def settings(self) -> Sequence[SettingInfo]:
        """The settings, for a form. Raises `UsageError` if the runtime does not offer that."""
        return await self._bridge.call(lambda runtime: with_settings(runtime).settings(self.id))

    async def change_setting(self, scope: Scope, key: str, value: object) -> None:
        """Write a setting into its file."""
        await self._bridge.call(
            lambda runtime: with_settings(runtime).change_setting(self.id, scope, key, value)
        )

    async def take_up_settings(self) -> str:
        """Have the runtime read the settings again. Gives a sentence about what that led to."""
        try:
            findings = await self._bridge.call(lambda runtime: runtime.reload(self.id))
        except BusyError:
            return "The settings are saved; /reload takes them up when the turn is over."
        await self.adopt()
        await self._learn_templates()
        return "\n".join(["The settings are saved and hold from now on.", *findings])

    async def models(self) -> Sequence[Model]:
        """The models that can be chosen."""
        return await self._bridge.call(lambda runtime: runtime.models())

    async def set_model(self, model: Model) -> None:
        """Use another model from the next request on."""
        self.store.model = await self._bridge.call(
            lambda runtime: runtime.set_model(self.id, model.reference)
        )
        await self.adopt()

    async def set_thinking_level(self, level: str) -> None:
        """Think this much from the next request on."""
        self.store.thinking_level = await self._bridge.call(
            lambda runtime: runtime.set_thinking_level(self.id, level)
        )

    async def take_returned(self) -> list[str]:
        """The texts of input that was claimed and not used: here and now they are the screen's."""
        if not self.store.returned:
            return []
        self.store.returned = []
        return list(await self._bridge.call(lambda runtime: runtime.take_returned(self.id)))

    async def navigate(self, target_id: str, *, summarise: bool = False, instructions: str = "") -> Moved:
        """Move the leaf, perhaps to a summary of what is left; the store is up to date afterwards."""
        moved = await self._bridge.call(
            lambda runtime: runtime.navigate(
                self.id, target_id, summarise=summarise, instructions=instructions
            )
        )
        self._subscription.flush()
        return moved

    async def fork(self, target_id: str, *, before: bool) -> Moved:
        """Make a new session of the path up to an entry, or before it."""
        return await self._bridge.call(
            lambda runtime: runtime.fork(self.id, target_id, "before" if before else "at")
        )

    # ---------------------------------------------------------------- the tree

    async def entries(self, ids: Sequence[str]) -> list[Mapping[str, Any]]:
        """The bodies of entries, which are not kept."""
        return await self._bridge.call(lambda runtime: runtime.entries(self.id, ids))

    async def digests(self, groups: Sequence[Sequence[str]]) -> list[Digest]:
        """What a list shows of entries, group by group."""
        return await self._bridge.call(lambda runtime: runtime.digests(self.id, groups))

    async def find(self, text: str) -> Sequence[str]:
        """The entries that have all the words."""
        return await self._bridge.call(lambda runtime: runtime.find_entries(self.id, text))

    async def preview(self, row: Row) -> Preview:
        """A row's first entry and its last ones, and what going there would find."""
        ids = list(dict.fromkeys([row.members[0], *row.members[-PREVIEWED:]]))
        bodies = await self.entries(ids)
        there = await self._bridge.call(lambda runtime: runtime.destination(self.id, row.end))
        return Preview(row, bodies, there)

    async def set_label(self, entry_id: str, label: str) -> None:
        """Put a label on an entry; an empty one takes it away."""
        await self._bridge.call(lambda runtime: runtime.set_label(self.id, entry_id, label or None))
        self._subscription.flush()

    async def export(self, path: str, leaf_id: str) -> str:
        """Write a branch to a file, and give the file's path."""
        return await self._bridge.call(lambda runtime: runtime.export(self.id, path, leaf_id))
