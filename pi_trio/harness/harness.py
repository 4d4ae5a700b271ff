"""`AgentHarness`: one session, its inbox, and the runs that work it off.

Everything durable is an entry of the session file, written before anything follows from
it. Commands are plain calls on the trio thread; what they cause is told in events.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence

import trio
from attrs import field, frozen

from pi_trio.errors import BusyError, StorageError, UsageError
from pi_trio.events import (
    AgentEvent,
    AgentSettled,
    EntryAppended,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    QueueUpdate,
    ToolExecutionEnd,
    ToolExecutionStart,
)
from pi_trio.harness.driver import HarnessDriver
from pi_trio.harness.inbox import Inbox
from pi_trio.harness.retry import RetryPolicy
from pi_trio.hub import Hub
from pi_trio.llm.auth import Credential
from pi_trio.llm.partial import PartialView
from pi_trio.llm.protocol import Model, StreamFunction, StreamOptions, ThinkingLevel, ToolCallStart
from pi_trio.loop.arguments import preload
from pi_trio.loop.convert import LlmView
from pi_trio.loop.driver import QueueMode
from pi_trio.loop.hooks import Hooks
from pi_trio.loop.run import run_agent_loop
from pi_trio.messages import (
    AgentMessage,
    AssistantMessage,
    ImageContent,
    LlmMessage,
    SystemMessage,
    UserMessage,
)
from pi_trio.session import facts
from pi_trio.session.context import SessionContext, fold_system
from pi_trio.session.session import Session
from pi_trio.tool import ExecutionMode, Tool

__all__ = ["AgentHarness", "HarnessOptions"]


def _no_sections(_tools: Sequence[Tool]) -> dict[str, str]:
    return {}


@frozen(kw_only=True)
class HarnessOptions:
    """How a session is worked on.

    `sections` makes the system prompt's sections for the active tools. `credential` is asked
    before each request. `findings` are for a person to know. `abort_grace` is how long, in
    seconds, hooks and listeners may still take after an abort.
    """

    stream_function: Callable[[Model], StreamFunction]
    credential: Callable[[Model], Awaitable[Credential]]
    tools: tuple[Tool, ...] = ()
    sections: Callable[[Sequence[Tool]], dict[str, str]] = _no_sections
    hooks: Hooks = field(factory=Hooks)
    request: StreamOptions = field(factory=StreamOptions)
    steering_mode: QueueMode = "all"
    follow_up_mode: QueueMode = "one-at-a-time"
    tool_execution: ExecutionMode = "parallel"
    max_parallel_tool_calls: int = 10
    retry: RetryPolicy = field(factory=RetryPolicy)
    findings: tuple[str, ...] = ()
    abort_grace: float = 2.0


class Conversation:
    """The branch as the next request will have it, growing with what is committed."""

    def __init__(self, context: SessionContext) -> None:
        self.transcript: list[AgentMessage] = list(context.messages)
        self.system = context.system_message
        self.model = context.model
        self.thinking_level = context.thinking_level
        self._view = LlmView()

    def add(self, message: AgentMessage) -> None:
        """The next message of the branch."""
        if isinstance(message, SystemMessage):
            self.system = fold_system([message] if self.system is None else [self.system, message])
        else:
            self.transcript.append(message)

    def llm_messages(self) -> tuple[LlmMessage, ...]:
        """The transcript as models know it."""
        return self._view.extend(self.transcript)


class AgentHarness:
    """Drives one session. Its runs are tasks of `nursery`, which must outlive it.

    `model` and `thinking_level` hold for the next request; the branch remembers them with it.
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
        self.session = session
        self.options = options
        self.model = model
        self.thinking_level: ThinkingLevel = thinking_level
        self.hub = Hub(self._reduce)
        self._told_queue = QueueUpdate((), ())
        self.inbox = Inbox(options.steering_mode, options.follow_up_mode)
        self.turns = sum(head.detail == facts.TURN_START for head in session.heads)
        self._nursery = nursery
        self._driver: HarnessDriver | None = None
        self._idle = trio.Event()
        self._idle.set()
        self._failure: Exception | None = None
        self._preloading = False
        self._conversation: Conversation | None = None
        self._streaming: AssistantMessage | PartialView | None = None
        self._running_calls: dict[str, ToolExecutionStart] = {}
        session.on_append = lambda entry: self.hub.post(EntryAppended(entry))
        self._pumping = trio.CancelScope()
        nursery.start_soon(self._pump)

    # ------------------------------------------------------------------ state

    @property
    def running(self) -> bool:
        """Whether a run is in progress."""
        return self._driver is not None

    @property
    def streaming(self) -> AssistantMessage | None:
        """The answer that is streaming, so far."""
        streaming = self._streaming
        return streaming.message if isinstance(streaming, PartialView) else streaming

    @property
    def running_calls(self) -> tuple[ToolExecutionStart, ...]:
        """The calls that have started and not ended."""
        return tuple(self._running_calls.values())

    async def wait_for_idle(self) -> None:
        """Wait until no run is in progress and every listener is done.

        Raises what ended the last run, if that was an exception of a hook, a listener or the
        disk; once.
        """
        await self._idle.wait()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    # ------------------------------------------------------------------ input

    def prompt(self, text: str, images: Iterable[ImageContent] = ()) -> None:
        """Open a turn. Raises `BusyError` while a run is in progress."""
        if self.running:
            raise BusyError("The agent is already processing a prompt: steer, follow up, or abort first.")
        self.inbox.add_turn(_user(text, images), first=True)
        self._wake()

    def steer(self, text: str, images: Iterable[ImageContent] = ()) -> None:
        """Say something before the next request; idle: open a turn with it."""
        self.inbox.add_step(_user(text, images))
        self._wake()

    def follow_up(self, text: str, images: Iterable[ImageContent] = ()) -> None:
        """Say something when the agent would stop; idle: open a turn with it."""
        self.inbox.add_turn(_user(text, images))
        self._wake()

    def clear_queue(self) -> QueueUpdate:
        """Take out what waits, and hand it back."""
        waiting = self.inbox.summary()
        self.inbox.clear()
        self.tell_queue()
        return waiting

    async def abort(self) -> None:
        """Stop the run and wait until it is over. What waits in the inbox stays there."""
        if self._driver is not None:
            self._driver.lifetime.cancel()
            await self._idle.wait()

    # ------------------------------------------------------------------ the branch

    @property
    def conversation(self) -> Conversation:
        """What the branch says. Read from the file when it is first needed: opening is to be quick."""
        if self._conversation is None:
            self._conversation = Conversation(self.session.build_context())
        return self._conversation

    def navigate(self, leaf_id: str | None) -> None:
        """Move the leaf. Raises `BusyError` while a run is in progress."""
        if self.running:
            raise BusyError("A run is in progress: stop it before moving in the tree.")
        self.session.set_leaf(leaf_id)
        self._conversation = None

    # ------------------------------------------------------------------ runs

    def tell_queue(self) -> None:
        """Tell what waits, if that has changed."""
        waiting = self.inbox.summary()
        if waiting != self._told_queue:
            self._told_queue = waiting
            self.hub.post(waiting)

    def _wake(self) -> None:
        if self._driver is not None:
            self.tell_queue()
        else:
            self._idle = trio.Event()
            self._driver = HarnessDriver(self)
            self._nursery.start_soon(self._run, self._driver)

    async def _run(self, driver: HarnessDriver) -> None:
        """Run in the background: what fails is told in events, and raised by `wait_for_idle`."""
        try:
            await run_agent_loop(driver)
        except Exception as error:
            self._failure = error
        finally:
            self._driver = None
            self._streaming = None
            self._running_calls = {}
            self._idle.set()
            with driver.lifetime.shelter():
                await self.hub.emit(AgentSettled(aborted=driver.lifetime.ending))
        await self.save()

    def close(self) -> None:
        """Let go of the file, and end every subscription. Only when idle and saved."""
        self._pumping.cancel()
        self.hub.close()
        self.session.close()

    async def _pump(self) -> None:
        with self._pumping:
            await self.hub.pump()

    async def save(self) -> None:
        """See to it that what was written is on the disk. A failure is kept for `wait_for_idle`."""
        with trio.CancelScope(shield=True):
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
            case ToolExecutionEnd():
                self._running_calls.pop(event.tool_call_id, None)
            case _:
                pass


def _user(text: str, images: Iterable[ImageContent]) -> UserMessage:
    if not text.strip() and not images:
        raise UsageError("There is nothing to send: the text is blank.")
    return UserMessage.of(text, images)
