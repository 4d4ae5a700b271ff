"""`AgentHarness`: one session, and the runs that work off what is said to it.

Everything durable is an entry of the session file, written before anything follows from
it. Commands are plain calls on the trio thread; what they cause is told in events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import attrs
import trio

from pi_trio.compaction.branch import plan_branch, summarise_branch
from pi_trio.compaction.plan import Nothing
from pi_trio.errors import BusyError, StorageError, UsageError
from pi_trio.events import (
    AgentEvent,
    AgentSettled,
    AutoRetryEnd,
    AutoRetryStart,
    CompactionEnd,
    CompactionResult,
    CompactionStart,
    EntryAppended,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    SessionInfoChanged,
    ToolExecutionEnd,
    ToolExecutionStart,
)
from pi_trio.harness.compactor import Compactor
from pi_trio.harness.conversation import Conversation
from pi_trio.harness.driver import HarnessDriver
from pi_trio.harness.input import Input
from pi_trio.harness.limits import Spending
from pi_trio.harness.options import HarnessOptions
from pi_trio.harness.points import Checkpoint, CheckpointHandler, Handlers, Waterfall, WaterfallHandler
from pi_trio.harness.recovery import Remains, closers, read_remains
from pi_trio.harness.requests import RequestLog
from pi_trio.harness.retry import RetryPolicy
from pi_trio.hub import Hub
from pi_trio.llm.partial import PartialView
from pi_trio.llm.protocol import Model, StreamFunction, ThinkingLevel, ToolCallStart, as_model
from pi_trio.loop.arguments import preload
from pi_trio.loop.grammar import guarded
from pi_trio.loop.run import run_agent_loop
from pi_trio.messages import AgentMessage, AssistantMessage, UserMessage
from pi_trio.session.entries import (
    ActiveToolsChangeEntry,
    CustomEntry,
    Entry,
    MessageEntry,
    SessionInfoEntry,
)
from pi_trio.session.session import Session
from pi_trio.tool import Tool, names_of

__all__ = ["AgentHarness", "HarnessOptions"]

C = TypeVar("C")
R = TypeVar("R")

CONTINUE = "Continue."


class AgentHarness(Input):
    """Drives one session. Its runs are tasks of `nursery`, which must outlive it.

    `model` and `thinking_level` hold for the next request; the branch remembers them with it.
    `auto_retry` switches retries off and on; `retrying` and `compacting` say what is going on.
    What a life before this one left in the file is taken up: what waited waits again, input
    that was claimed and never used is in `returned`, and a turn that was cut off is closed
    with the first thing that is written.
    """

    def __init__(
        self,
        session: Session,
        options: HarnessOptions,
        nursery: trio.Nursery,
        *,
        model: Model,
        thinking_level: ThinkingLevel = "off",
    ) -> None:
        super().__init__(session, Hub(guarded(self._reduce)), options)
        self.options = options
        self.model: Model = as_model(model)
        self.thinking_level: ThinkingLevel = thinking_level
        self.handlers: Handlers = Handlers()
        self.requests: RequestLog = RequestLog(session)
        self.spending: Spending = Spending()
        self.compactor: Compactor = Compactor(self, options.compaction)
        self.auto_retry: bool = options.retry.enabled
        self._nursery = nursery
        self._driver: HarnessDriver | None = None
        self._maintenance: trio.CancelScope | None = None
        self._idle = trio.Event()
        self._idle.set()
        self._wake_again = False
        self._failure: Exception | None = None
        self._preloading = False
        self._closed = False
        self._saving = trio.Lock()
        self._conversation: Conversation | None = None
        self._outdated = False
        self._waiting: list[AgentMessage] = []
        self._streaming: AssistantMessage | PartialView | None = None
        self._running_calls: dict[str, ToolExecutionStart] = {}
        self.compacting: bool = False
        self.retrying: bool = False
        self._take_up()
        self._told_queue = self.inbox.summary()
        session.on_append = lambda entry: self.hub.post(EntryAppended(entry))
        self._pumping = trio.CancelScope()
        nursery.start_soon(self._pump)

    def _take_up(self) -> None:
        remains = read_remains(self.session)
        self.turns: int = remains.turns
        self.findings: tuple[str, ...] = tuple(remains.findings)
        for change in remains.waiting:
            self.inbox.apply(change)
        self.returned.extend(item.message for item in remains.lost)
        self._take_up_open(remains)

    def _take_up_open(self, remains: Remains) -> None:
        """A turn that has no end: what is to be written before anything else."""
        self.interruption = remains.interruption
        self._closers = list(closers(self.session, remains))

    def _take_up_failed(self) -> None:
        """The disk has refused something of the run, which then ended as by a crash."""
        remains = read_remains(self.session)
        self._take_up_open(remains)
        if remains.lost:
            self._return(item.message for item in remains.lost)
        self.requests = RequestLog(self.session)
        self.branch_changed()

    # ------------------------------------------------------------------ state

    @property
    def retry(self) -> RetryPolicy:
        """What is done about failed requests, as `auto_retry` says."""
        return attrs.evolve(self.options.retry, enabled=self.auto_retry)

    @property
    def running(self) -> bool:
        """Whether a run is in progress."""
        return self._driver is not None

    @property
    def busy(self) -> bool:
        """Whether a run, a compaction or a branch summary is in progress."""
        return self._driver is not None or self._maintenance is not None

    @property
    def streaming(self) -> AssistantMessage | None:
        """The answer that is streaming, so far."""
        streaming = self._streaming
        return streaming.message if isinstance(streaming, PartialView) else streaming

    @property
    def running_calls(self) -> tuple[ToolExecutionStart, ...]:
        """The calls that have started and not ended."""
        return tuple(self._running_calls.values())

    @property
    def active_tools(self) -> tuple[Tool, ...]:
        """The tools that the next request offers: what the branch chose, else what the options say."""
        chosen = self.conversation.active_tool_names
        names = self.options.active_tool_names if chosen is None else chosen
        tools = self.options.tools
        return tools if names is None else tuple(tool for tool in tools if tool.name in names)

    async def wait_for_idle(self) -> None:
        """Wait until no run is in progress and every listener is done.

        Raises what ended the last run, if that was an exception of a hook, a listener or the
        disk; once.
        """
        await self._idle.wait()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    # ------------------------------------------------------------------ taking part

    def on(
        self,
        point: Waterfall[C, R] | Checkpoint[C],
        handler: WaterfallHandler[C, R] | CheckpointHandler[C],
    ) -> Callable[[], None]:
        """Have `handler` take part at a point of the lifecycle. Returns the function that ends it."""
        return self.handlers.add(point.name, handler)

    # ------------------------------------------------------------------ input

    def continue_(self) -> None:
        """Go on from the branch as it is: an answer is owed, or was cut off.

        Raises `BusyError` while a run is in progress, and `UsageError` if nothing is owed.
        """
        if self.running:
            raise BusyError("The agent is already processing a prompt.")
        self._check_start()
        self._close_interruption()
        transcript = self.conversation.transcript
        last = transcript[-1] if transcript else None
        if last is None or (isinstance(last, AssistantMessage) and last.stop_reason != "aborted"):
            raise UsageError("There is nothing to continue: the last answer is complete.")
        if isinstance(last, AssistantMessage):
            self._insert("next-turn", UserMessage.of(CONTINUE), first=True)
        self._start(owed=not isinstance(last, AssistantMessage))

    async def abort(self) -> None:
        """Stop what is in progress and wait until it is over. What waits in the inbox stays there."""
        if self._driver is not None:
            self._driver.lifetime.cancel()
        if self._maintenance is not None:
            self._maintenance.cancel()
        await self._idle.wait()

    def abort_call(self, call_id: str) -> bool:
        """Stop one running tool call; the run goes on. False if it is not running."""
        return self._driver is not None and self._driver.lifetime.cancel_call(call_id)

    def add(self, message: AgentMessage) -> None:
        """Put a message of the application into the branch: now, or at the end of the running step."""
        self._waiting.append(message)
        if not self.running:
            self._close_interruption()
            self.append_waiting()

    def append_waiting(self) -> None:
        """Write, and take in, what waited for the end of a step: nothing may part a call from its result."""
        if self._outdated:
            self._outdated = False
            self.branch_changed()
        while self._waiting:
            conversation = self.conversation  # read before the message is in the file
            self.session.append(MessageEntry(self._waiting[0]))
            conversation.add(self._waiting.pop(0))

    # ------------------------------------------------------------------ the branch

    @property
    def conversation(self) -> Conversation:
        """What the branch says. Read from the file when it is first needed: opening is to be quick."""
        if self._conversation is None:
            self._conversation = Conversation(self.session.build_context())
        return self._conversation

    def navigate(self, leaf_id: str | None) -> None:
        """Move the leaf. Raises `BusyError` while something is in progress."""
        self._refuse_while_busy("moving in the tree")
        self.session.set_leaf_id(leaf_id)
        self.branch_changed()

    async def navigate_with_summary(
        self, leaf_id: str | None, *, focus: str = "", replace_instructions: bool = False
    ) -> None:
        """Move the leaf to a summary of the branch that is left, hung on `leaf_id`.

        Raises `UsageError` if there is nothing to summarise, `SummaryError` if none came of it;
        then, and after an abort, nothing has moved.
        """
        self._refuse_while_busy("moving in the tree")
        plan = plan_branch(
            self.session, leaf_id, window=self.model.context_window, reserve=self.options.branch_reserve
        )
        if isinstance(plan, Nothing):
            raise UsageError(plan.reason)
        with self._maintaining():
            summary = await summarise_branch(
                plan,
                self.compactor.ask,
                self.model,
                focus=focus,
                replace_instructions=replace_instructions,
            )
            self.session.append_at(leaf_id, plan.entry(summary))
            self.branch_changed()

    async def compact(self, focus: str = "") -> CompactionResult | None:
        """Have older context summarised, looking at `focus` in particular. None if it was aborted.

        A run in progress is stopped first and not continued. Raises `UsageError` if there is
        nothing to summarise, `SummaryError` if none came of it; then nothing has changed.
        """
        await self.abort()
        self._close_interruption()
        result = None
        with self._maintaining():
            result = await self.compactor.on_request(focus)
        return result  # noqa: RET504 - an abort ends the block before there is one

    def branch_changed(self) -> None:
        """The branch is another, or reads differently: take it from the file anew."""
        self._conversation = None
        self.compactor.changed()
        if self._driver is None:
            self._take_up_open(read_remains(self.session))

    def _refuse_while_busy(self, what: str) -> None:
        if self.busy:
            raise BusyError(f"The agent is busy: stop it before {what}.")

    @contextmanager
    def _maintaining(self) -> Iterator[None]:
        """Work on an idle session. Input that comes meanwhile waits and runs after it.

        Raises `StorageError` if what was said before cannot be saved: nothing is asked then.
        """
        self.session.flush()
        self._idle = trio.Event()
        with trio.CancelScope() as scope:
            self._maintenance = scope
            try:
                yield
            finally:
                self._maintenance = None
                self._idle.set()
                self._start_again()

    def record(self, entry: Entry) -> str:
        """Write an entry that is no message. Gives its id. What a projector makes of it is seen by
        models now, or from the end of the running step on.
        """
        self._close_interruption()
        added = self.session.append(entry)
        if isinstance(entry, CustomEntry) and self.session.speech.projects(entry.custom_type):
            self._outdated = True
            if not self.running:
                self.append_waiting()
        return added.id

    def set_active_tools(self, names: Iterable[str]) -> None:
        """Have these tools offered from the next request on, in this branch.

        Raises `UsageError` if one of them is not registered.
        """
        chosen = names_of(self.options.tools, names)
        self.record(ActiveToolsChangeEntry(chosen))
        self.conversation.active_tool_names = chosen

    def set_session_name(self, name: str | None) -> None:
        """Name the session; None removes its name."""
        self.record(SessionInfoEntry(name))
        self.hub.post(SessionInfoChanged(self.session.name))

    # ------------------------------------------------------------------ runs

    def _close_interruption(self) -> None:
        """Write what makes a file whole that a crash left open, before anything else is written."""
        if self._closers:
            while self._closers:
                self.session.append(self._closers[0])
                del self._closers[0]
            self.interruption = None
            self._conversation = None
            self.compactor.changed()

    def _check_start(self) -> None:
        if not self.running:
            self.preflight(self.model)
            self.spending.check(self.options.limits)

    def preflight(self, model: Model) -> None:
        """See whether a model may be asked here. Raises `ConfigError` if not."""
        self.options.limits.check(model)
        self.options.preflight(model)

    def stream_function(self, model: Model) -> StreamFunction:
        """What opens a stream for `model`, counting what it costs. Raises `ConfigError` and `LimitError`."""
        self.options.limits.check(model)
        self.spending.check(self.options.limits)
        return self.spending.metered(self.options.stream_function(model))

    def _wake(self) -> None:
        if self._maintenance is not None or (self._driver is not None and self._driver.lifetime.ending):
            self._wake_again = True  # what comes now is not lost, and not hurried
        elif self._driver is None:
            self._start()

    def _start_again(self) -> None:
        """Take up what woke the agent while it could not start."""
        again, self._wake_again = self._wake_again, False
        if again and self.inbox.wakes and not self.busy:
            self._start()

    def _start(self, *, owed: bool = False) -> None:
        self._idle = trio.Event()
        self._driver = HarnessDriver(self, owed=owed)
        self._nursery.start_soon(self._run, self._driver)

    async def _run(self, driver: HarnessDriver) -> None:
        """Run in the background: what fails is told in events, and raised by `wait_for_idle`."""
        try:
            await run_agent_loop(driver)
            self.append_waiting()
        except StorageError as error:
            self._failure = error
            self._take_up_failed()
        except Exception as error:
            self._failure = error
        finally:
            self._driver = None
            self._streaming = None
            self._running_calls = {}
            self._idle.set()
            with driver.lifetime.shelter():
                await self.hub.emit(AgentSettled(aborted=driver.lifetime.ending))
            self.compactor.settled()
            self._start_again()
        await self.save()

    async def aclose(self) -> None:
        """Stop the run, save, let go of the file, and end every subscription.

        Raises `StorageError`, after all that, if there was no room for what was said last.
        """
        await self.abort()
        await self.save()
        self._closed = True
        self._pumping.cancel()
        self.hub.close()
        self.session.close()

    async def _pump(self) -> None:
        """Tell what is posted while no run does. What a listener raises is kept for `wait_for_idle`."""
        with self._pumping:
            while True:
                try:
                    await self.hub.pump()
                except Exception as error:
                    self._failure = self._failure or error

    async def save(self) -> None:
        """See to it that what was written is on the disk. A failure is kept for `wait_for_idle`."""
        with trio.CancelScope(shield=True):
            async with self._saving:
                if self._closed:
                    return
                try:
                    await trio.to_thread.run_sync(self.session.sync)
                except StorageError as error:
                    self._failure = self._failure or error

    def _reduce(self, event: AgentEvent) -> None:
        """Take an event of the run into the state, before anybody hears of it."""
        match event:
            case MessageUpdate():
                self._streaming = event.view
                if isinstance(event.assistant_message_event, ToolCallStart) and not self._preloading:
                    self._preloading = True
                    self._nursery.start_soon(preload)
            case MessageStart(message) if isinstance(message, AssistantMessage):
                self._streaming = message
            case MessageEnd(message) if isinstance(message, AssistantMessage):
                self._streaming = None
            case ToolExecutionStart():
                self._running_calls[event.tool_call_id] = event
            case AutoRetryStart() | AutoRetryEnd():
                self.retrying = isinstance(event, AutoRetryStart)
            case CompactionStart() | CompactionEnd():
                self.compacting = isinstance(event, CompactionStart)
            case ToolExecutionEnd():
                self._running_calls.pop(event.tool_call_id, None)
            case _:
                pass
