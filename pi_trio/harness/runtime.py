"""The runtime in this process: sessions, each with a harness, behind the `Runtime` interface."""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trio
from attrs import evolve

from pi_trio.approval import Answer, GateMode
from pi_trio.errors import BusyError, ConfigError, StorageError, UsageError
from pi_trio.events import CompactionResult, QueueUpdate, ThinkingLevelChanged
from pi_trio.harness.choices import choose_level, choose_model, notice_of, replacements
from pi_trio.harness.configured import gate_policy, harness_options, tool_choice
from pi_trio.harness.context_parts import context_use
from pi_trio.harness.destination import FileRecords
from pi_trio.harness.finding import find_entries
from pi_trio.harness.furnishing import Furnishing
from pi_trio.harness.harness import AgentHarness, HarnessOptions
from pi_trio.harness.hosted import Hosted
from pi_trio.harness.offers import Offers
from pi_trio.harness.preferences import change_preference, setting_files
from pi_trio.harness.questions import Questions
from pi_trio.harness.shell import UserShell
from pi_trio.hub import Outbox
from pi_trio.llm import demo
from pi_trio.llm.auth import Credential
from pi_trio.llm.protocol import Model, StreamFunction
from pi_trio.llm.registry import Models
from pi_trio.llm.thinking import LEVELS, clamp_level
from pi_trio.loop.hooks import Hooks
from pi_trio.messages import AgentMessage, BashExecutionMessage, ImageContent, UserMessage, text_of
from pi_trio.nursery import in_nursery, plain_nursery
from pi_trio.remote.interface import (
    CommandInfo,
    ContextUse,
    Destination,
    Disposition,
    ForkPosition,
    Moved,
    SessionInfo,
    Snapshot,
)
from pi_trio.resources.config import RuntimeConfig
from pi_trio.resources.import_pi import import_pi
from pi_trio.resources.paths import absolute, find_pi_dir
from pi_trio.resources.setting_changes import Scope, SettingInfo, list_settings
from pi_trio.resources.trust import Trust
from pi_trio.session.branching import before, prompt_text
from pi_trio.session.digest import Digest, digest
from pi_trio.session.entries import LabelEntry
from pi_trio.session.repository import SessionRepository
from pi_trio.session.session import Session
from pi_trio.tools.environment import LocalEnvironment
from pi_trio.tools.gate import Gate, edit_preview
from pi_trio.tools.policy import Policy
from pi_trio.written_path import checked_path

if TYPE_CHECKING:
    from pi_trio.trace import TraceLog

__all__ = ["LocalRuntime", "open_runtime"]


@asynccontextmanager
async def open_runtime(config: RuntimeConfig) -> AsyncIterator[LocalRuntime]:
    """A runtime for a block. Leaving it, also by cancellation, stops every run, saves every
    session, and ends what tools left running.
    """
    async with in_nursery(partial(LocalRuntime, config)) as runtime:
        if not config.demo and runtime.registry.default_model().provider == "demo":
            await runtime.discover_local()  # no key for anybody: perhaps a model runs here
        yield runtime


class LocalRuntime(Offers):
    """Holds sessions and runs them in `nursery`. See `pi_trio.remote.interface.Runtime`."""

    def __init__(self, config: RuntimeConfig, nursery: trio.Nursery) -> None:
        super().__init__()
        self.config = config
        self.registry: Models = Models(config.agent_dir, _environment(config))
        self.repository: SessionRepository = SessionRepository(
            config.agent_dir, config.cwd, config.session_dir
        )
        self._log = None if config.log is None else _open_log(config.log)
        self._nursery = nursery
        self._epoch = uuid.uuid4().hex
        self._hosted: dict[str, Hosted] = {}

    async def aclose(self) -> None:
        """Close every session. Raises the first `StorageError` of them when all are closed."""
        failures: list[StorageError] = []

        async def close(session_id: str) -> None:
            try:
                await self.close_session(session_id)
            except StorageError as error:
                failures.append(error)

        async with plain_nursery() as closing:
            for session_id in list(self._hosted):
                closing.start_soon(close, session_id)
        if self._log is not None:
            self._log.close()
        for failure in failures:
            raise failure

    # ------------------------------------------------------------------ sessions

    async def new_session(self, parent_session: str | None = None) -> Snapshot:
        """See `Runtime`. `parent_session` is the file of the session that this one goes on from."""
        return self.host(self._create(parent_session))

    async def session_of(self, session_id: str) -> Snapshot:
        """See `Files`."""
        path = self.repository.path_of(session_id)
        if path is not None:
            return await self.open_session(str(path))
        return self.host(self._create(session_id=session_id))

    async def fork_file(self, reference: str) -> Snapshot:
        """See `Files`."""
        source = self.repository.open(reference, writable=False)
        try:
            return self.host(self.repository.copy(source))
        finally:
            source.close()

    async def continue_session(self) -> Snapshot:
        """See `Runtime`."""
        latest = self.repository.latest()
        return self.host(self._create()) if latest is None else await self.open_session(str(latest))

    async def open_session(self, reference: str) -> Snapshot:
        """See `Runtime`."""
        if reference in self._hosted:
            return self._snapshot(reference)
        path = self.repository.find(reference)
        known = self.open_file(path)
        return self._snapshot(known) if known else self.host(self.repository.open(str(path.absolute())))

    async def close_session(self, session_id: str) -> None:
        """See `Runtime`."""
        await self._close(self._open(session_id))

    async def _close(self, hosted: Hosted) -> None:
        await hosted.shell.abort()
        await hosted.harness.abort()
        await hosted.furnishing.unload()
        await hosted.environment.aclose()
        try:
            await hosted.harness.aclose()
        finally:
            self._hosted.pop(hosted.harness.session.id, None)

    def harness(self, session_id: str) -> AgentHarness:
        """The driver of an open session, for who is in the same process and needs more than `Runtime`."""
        return self._open(session_id).harness

    @property
    def open_sessions(self) -> list[str]:
        """The ids of the sessions that are open."""
        return list(self._hosted)

    def is_needed(self, session_id: str) -> bool:
        """Whether closing the session now would stop something, or lose it."""
        hosted = self._open(session_id)
        session = hosted.harness.session
        unsaved = bool(session.unsaved or (session.heads and not session.is_saved))
        return hosted.harness.busy or hosted.shell.running or bool(hosted.questions.open) or unsaved

    async def snapshot(self, session_id: str) -> Snapshot:
        """See `Runtime`."""
        return self._snapshot(session_id)

    async def subscribe(self, session_id: str, outbox: Outbox) -> Snapshot:
        """See `Runtime`."""
        self._open(session_id).harness.hub.attach(outbox)
        return self._snapshot(session_id)

    async def unsubscribe(self, session_id: str, outbox: Outbox) -> None:
        """See `Runtime`."""
        self._open(session_id).harness.hub.detach(outbox)

    async def entries(self, session_id: str, ids: Sequence[str]) -> list[Mapping[str, Any]]:
        """See `Runtime`."""
        session = self._open(session_id).harness.session
        return [session.raw(each) for each in ids if each in session.tree]

    async def digests(self, session_id: str, groups: Sequence[Sequence[str]]) -> list[Digest]:
        """See `Runtime`."""
        found = []
        for ids in groups:
            found.append(digest(await self.entries(session_id, ids)))
            await trio.lowlevel.checkpoint()
        return found

    async def find_entries(self, session_id: str, text: str) -> Sequence[str]:
        """See `Runtime`."""
        return await find_entries(self._open(session_id).harness.session, text)

    # ------------------------------------------------------------------ running

    async def prompt(self, session_id: str, text: str, images: Sequence[ImageContent] = ()) -> Disposition:
        """See `Runtime`."""
        hosted = self._open(session_id)
        hosted.harness.prompt(await hosted.furnishing.input(text), images)
        return "started"

    async def steer(self, session_id: str, text: str, images: Sequence[ImageContent] = ()) -> Disposition:
        """See `Runtime`."""
        hosted = self._open(session_id)
        text = await hosted.furnishing.input(text)
        disposition: Disposition = "queued" if hosted.harness.running else "started"
        hosted.harness.steer(text, images)
        return disposition

    async def follow_up(self, session_id: str, text: str, images: Sequence[ImageContent] = ()) -> Disposition:
        """See `Runtime`."""
        hosted = self._open(session_id)
        text = await hosted.furnishing.input(text)
        disposition: Disposition = "queued" if hosted.harness.running else "started"
        hosted.harness.follow_up(text, images)
        return disposition

    async def continue_turn(self, session_id: str) -> Disposition:
        """See `Runtime`."""
        self._open(session_id).harness.continue_()
        return "started"

    async def abort(self, session_id: str) -> None:
        """See `Runtime`."""
        await self._open(session_id).harness.abort()

    async def abort_call(self, session_id: str, call_id: str) -> bool:
        """See `Runtime`."""
        return self._open(session_id).harness.abort_call(call_id)

    async def edit_queued(self, session_id: str, item_id: str, text: str) -> None:
        """See `Runtime`."""
        self._open(session_id).harness.edit_queued(item_id, text)

    async def remove_queued(self, session_id: str, item_id: str) -> None:
        """See `Runtime`."""
        self._open(session_id).harness.remove_queued(item_id)

    async def move_queued(self, session_id: str, item_id: str, place: int) -> None:
        """See `Runtime`."""
        self._open(session_id).harness.move_queued(item_id, place)

    async def take_returned(self, session_id: str) -> Sequence[str]:
        """See `Runtime`."""
        return _texts(self._open(session_id).harness.take_returned())

    async def clear_queue(self, session_id: str) -> QueueUpdate:
        """See `Runtime`."""
        return self._open(session_id).harness.clear_queue()

    async def wait_for_idle(self, session_id: str) -> None:
        """See `Runtime`."""
        await self._open(session_id).harness.wait_for_idle()

    async def run_shell(
        self, session_id: str, command: str, exclude_from_context: bool = False
    ) -> BashExecutionMessage:
        """See `Runtime`."""
        shell = self._open(session_id).shell
        return await shell.run(command, exclude_from_context=exclude_from_context)

    async def abort_shell(self, session_id: str) -> None:
        """See `Runtime`."""
        await self._open(session_id).shell.abort()

    async def answer(self, session_id: str, question_id: str, answer: Answer) -> None:
        """See `Runtime`."""
        self._open(session_id).questions.answer(question_id, answer)

    async def set_mode(self, session_id: str, mode: GateMode) -> None:
        """See `Runtime`."""
        hosted = self._open(session_id)
        hosted.policy.mode = mode
        hosted.furnishing.set_tools(
            hosted.harness, tool_choice(hosted.furnishing.config, hosted.environment, hosted.policy)
        )

    # ------------------------------------------------------------------ the tree

    async def navigate(
        self, session_id: str, target_id: str, *, summarise: bool = False, instructions: str = ""
    ) -> Moved:
        """See `Runtime`."""
        harness = self._open(session_id).harness
        session = harness.session
        text = prompt_text(session.entry(target_id))
        leaf = before(session.tree, target_id) if text else target_id
        if summarise:
            await harness.navigate_with_summary(leaf, focus=instructions)
        else:
            harness.navigate(leaf)
        return Moved(session_id=session_id, leaf_id=session.get_leaf_id(), text=text)

    async def destination(self, session_id: str, entry_id: str) -> Destination:
        """See `Runtime`."""
        return await self._open(session_id).records.destination(entry_id)

    async def set_label(self, session_id: str, entry_id: str, label: str | None) -> None:
        """See `Runtime`."""
        harness = self._open(session_id).harness
        harness.record(LabelEntry(harness.session.entry(entry_id).id, label or None))

    async def compact(self, session_id: str, instructions: str = "") -> CompactionResult | None:
        """See `Runtime`."""
        return await self._open(session_id).harness.compact(instructions)

    async def fork(self, session_id: str, target_id: str, position: ForkPosition) -> Moved:
        """See `Runtime`."""
        source = self._open(session_id).harness.session
        fork, text = self.repository.fork(source, target_id, position)
        if self.config.no_session:
            fork.path = None
        self.host(fork)
        return Moved(session_id=fork.id, leaf_id=fork.get_leaf_id(), text=text)

    # ------------------------------------------------------------------ models

    async def set_model(self, session_id: str, reference: str) -> Model:
        """See `Runtime`."""
        harness = self._open(session_id).harness
        choice = self.registry.get_model(reference)
        harness.model = choice.model
        harness.thinking_level = clamp_level(choice.model, choice.thinking_level or harness.thinking_level)
        return choice.model

    async def models(self) -> Sequence[Model]:
        """See `Runtime`. The files are read and the servers of this machine are asked anew."""
        self.registry.reload()
        await self.registry.discover()
        return self.registry.available()

    async def set_thinking_level(self, session_id: str, level: str) -> str:
        """See `Runtime`."""
        harness = self._open(session_id).harness
        wanted = next((each for each in LEVELS if each == level), None)
        if wanted is None:
            raise UsageError(f"{level!r} is not a thinking level: it is one of {', '.join(LEVELS)}")
        harness.thinking_level = clamp_level(harness.model, wanted)
        harness.hub.post(ThinkingLevelChanged(harness.thinking_level))
        return harness.thinking_level

    # ------------------------------------------------------------------ commands and resources

    async def set_session_name(self, session_id: str, name: str | None) -> None:
        """See `Runtime`."""
        self._open(session_id).harness.set_session_name(name)

    async def commands(self, session_id: str) -> Sequence[CommandInfo]:
        """See `Runtime`."""
        return self._open(session_id).furnishing.commands

    async def run_command(self, session_id: str, name: str, arguments: str) -> str:
        """See `Runtime`."""
        return await self._open(session_id).furnishing.run_command(name, arguments)

    async def renderers(self, session_id: str) -> Mapping[str, str]:
        """See `Runtime`."""
        return self._open(session_id).furnishing.renderers

    async def reload(self, session_id: str) -> Sequence[str]:
        """See `Runtime`."""
        hosted = self._open(session_id)
        if hosted.harness.running:
            raise BusyError("A run is in progress: stop it before loading everything again.")
        furnishing = Furnishing(hosted.furnishing.config.at(hosted.environment.cwd))
        await hosted.furnishing.unload()
        self.registry.reload()
        hosted = self._hosted[session_id] = evolve(hosted, furnishing=furnishing)
        self._furnish(hosted)
        return furnishing.findings

    async def import_pi(self, *, dry_run: bool) -> Sequence[str]:
        """Bring over what pi has; see `resources.import_pi`. Cancelling waits for the copy under way."""
        return await trio.to_thread.run_sync(partial(import_pi, find_pi_dir(), self.config, dry_run=dry_run))

    async def export(self, session_id: str, path: str | None, leaf_id: str | None = None) -> str:
        """See `Runtime`."""
        from pi_trio.session.export.file import export_session

        hosted = self._open(session_id)
        session, folder = hosted.harness.session, hosted.environment.cwd
        name = path or f"session-{session.id}.html"
        target = absolute(name) if name.startswith("~/") else folder / checked_path(name)
        export_session(session, target, leaf_id=leaf_id, replace=path is None)
        return str(target)

    async def doctor(self, session_id: str) -> Sequence[str]:
        """Look at everything that a start needs in a session's folder; see `pi_trio.doctor`."""
        from pi_trio.doctor import Setup, examine

        findings = await examine(Setup(self._open(session_id).furnishing.config, self.registry))
        return [line for title, finding in findings for line in finding.lines(title)]

    async def trust(self, session_id: str) -> Trust:
        """See `Runtime`."""
        return self._open(session_id).furnishing.config.trust

    async def set_trust(self, session_id: str, folder: str, trusted: bool) -> None:
        """See `Runtime`."""
        self._open(session_id).furnishing.set_trust(folder, trusted)

    async def settings(self, session_id: str) -> Sequence[SettingInfo]:
        """All settings, with what the person's file and that of the session's folder say."""
        config = self._open(session_id).furnishing.config
        return await trio.to_thread.run_sync(list_settings, setting_files(config))

    async def change_setting(self, session_id: str, scope: Scope, key: str, value: object) -> None:
        """Write a setting into a file, None takes it out; see `change_preference`. `reload` reads it."""
        config = self._open(session_id).furnishing.config
        await trio.to_thread.run_sync(change_preference, config, scope, key, value)

    async def context_use(self, session_id: str) -> ContextUse:
        """What fills the context of the next request."""
        return context_use(self._open(session_id).harness)

    async def _credential(self, model: Model) -> Credential:
        return await self.registry.credential(model, self.config.api_key)

    def _preflight(self, model: Model) -> None:
        self.registry.check_credential(model, self.config.api_key)

    # ------------------------------------------------------------------ inside

    def _create(self, parent_session: str | None = None, session_id: str | None = None) -> Session:
        make = self.repository.in_memory if self.config.no_session else self.repository.create
        return make(parent_session, session_id)

    def _open(self, session_id: str) -> Hosted:
        hosted = self._hosted.get(session_id)
        if hosted is None:
            raise UsageError(f"The session {session_id} is not open.")
        return hosted

    def model_of(self, session_id: str) -> Model:
        """See `Offers`."""
        return self._open(session_id).harness.model

    def folder_of(self, session_id: str) -> Path:
        """See `Offers`."""
        return self._open(session_id).environment.cwd

    def open_file(self, path: Path) -> str | None:
        """See `Offers`. Nobody else may write this file now."""
        for session_id, hosted in self._hosted.items():
            ours = hosted.harness.session.path
            if ours is not None and ours.resolve() == path.resolve():
                return session_id
        return None

    def host(self, session: Session) -> Snapshot:
        """See `Offers`."""
        cwd = Path(session.cwd) if Path(session.cwd or "?").is_dir() else self.config.cwd
        furnishing = Furnishing(self.config if cwd == self.config.cwd else self.config.at(cwd))
        settings = furnishing.config.settings
        environment = LocalEnvironment(
            cwd,
            shell=settings.shell_path,
            command_prefix=settings.shell_command_prefix or "",
            keep_logs=not self.config.no_session,
        )
        policy = gate_policy(furnishing.config, environment)
        harness = AgentHarness(
            session,
            self._options(session.id, environment, furnishing, policy),
            self._nursery,
            model=demo.MODEL,  # until the extensions have brought theirs
        )
        if self._log is not None:
            harness.hub.subscribe(partial(self._log.listen, session.id))
        questions = Questions(harness.hub)
        gate = Gate(
            policy,
            questions.ask if self.config.can_ask else None,
            lambda tool, args: edit_preview(environment, tool, args),
        )
        shell = UserShell(environment, harness.hub, harness.add)
        records = FileRecords(session)
        hosted = Hosted(harness, environment, furnishing, shell, policy, questions, gate, records)
        self._hosted[session.id] = hosted
        self._furnish(hosted)
        self._choose(hosted)
        return self._snapshot(session.id)

    def _choose(self, hosted: Hosted) -> None:
        """Give a session that was just hosted its model, which may be one of its extensions."""
        harness, session = hosted.harness, hosted.harness.session
        try:
            choice = choose_model(self.config, self.registry, session)
        except ConfigError:
            del self._hosted[session.id]
            self._nursery.start_soon(self._close, hosted)
            raise
        harness.model = choice.model
        harness.thinking_level = choose_level(self.config, session, choice)
        replaced = replacements(self.config, session, hosted.environment.cwd, choice.model)
        self._hosted[session.id] = evolve(hosted, replacements=replaced)

    def _furnish(self, hosted: Hosted) -> None:
        """Give the harness its options: the gate has the last word on calls, after all extensions."""
        session_id = hosted.harness.session.id
        options = self._options(session_id, hosted.environment, hosted.furnishing, hosted.policy)
        hooks = Hooks(before_tool_call=hosted.gate.before_tool_call)
        hosted.harness.options = evolve(options, hooks=hooks)
        hosted.furnishing.load(hosted.harness, self.registry)

    def _stream_function(self, session_id: str, model: Model) -> StreamFunction:
        stream = self.registry.stream_function(model)
        return stream if self._log is None else self._log.traced(session_id, stream)

    def _options(
        self, session_id: str, environment: LocalEnvironment, furnishing: Furnishing, policy: Policy
    ) -> HarnessOptions:
        return harness_options(
            furnishing.config,
            stream_function=partial(self._stream_function, session_id),
            credential=self._credential,
            preflight=self._preflight,
            choice=tool_choice(furnishing.config, environment, policy),
            sections=furnishing.sections,
        )

    def _snapshot(self, session_id: str) -> Snapshot:
        hosted = self._open(session_id)
        harness, session = hosted.harness, hosted.harness.session
        return Snapshot(
            session=SessionInfo(
                id=session.id,
                path=str(session.path) if session.path else None,
                cwd=session.cwd,
                timestamp=session.header.timestamp,
                name=session.name,
                parent_session=session.header.parent_session,
            ),
            epoch=self._epoch,
            seq=harness.hub.seq,
            heads=tuple(session.heads),
            leaf_id=session.get_leaf_id(),
            labels=session.labels(),
            running=harness.running,
            streaming=harness.streaming,
            running_calls=harness.running_calls,
            queue=harness.inbox.summary(),
            model=harness.model,
            thinking_level=harness.thinking_level,
            interrupted=harness.interruption is not None,
            returned=_texts(harness.returned),
            mode=hosted.policy.mode,
            questions=hosted.questions.open,
            shell_running=hosted.shell.running,
            unsaved=session.unsaved,
            spent=harness.spending.cost,
            max_cost=harness.options.limits.max_cost,
            notice=notice_of(self.config, self.registry, harness.model),
            findings=(
                *hosted.replacements,
                *hosted.furnishing.findings,
                *map(str, self.registry.findings),
                *harness.options.findings,
                *harness.findings,
                *(f"{session.path}: {finding}" for finding in session.findings),
            ),
        )


def _open_log(path: Path) -> TraceLog:
    from pi_trio.trace import TraceLog  # here, because most starts have no log

    return TraceLog(path)


def _environment(config: RuntimeConfig) -> Mapping[str, str]:
    """The environment, in which a model looks for its key and for whether it may look around."""
    return {**os.environ, "PI_OFFLINE": "1"} if config.offline else os.environ


def _texts(messages: Iterable[AgentMessage]) -> tuple[str, ...]:
    return tuple(text_of(message.content) for message in messages if isinstance(message, UserMessage))
