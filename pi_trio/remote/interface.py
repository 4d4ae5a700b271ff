"""What screens and command lines see of the runtime, wherever it runs.

A local runtime (`pi_trio.harness.runtime`) and, later, a websocket client offer the same
`Runtime`, so that a screen has one code path. All of it runs on the trio thread; every
command names its session. Entries travel as their JSON objects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from attrs import frozen

from pi_trio.approval import Answer, GateMode, Question
from pi_trio.events import CompactionResult, QueueUpdate, ToolExecutionStart
from pi_trio.hub import Outbox
from pi_trio.llm.protocol import Model
from pi_trio.messages import EMPTY, AssistantMessage, BashExecutionMessage, ImageContent
from pi_trio.resources.trust import Trust
from pi_trio.session.digest import Digest
from pi_trio.session.tree import EntryHead

__all__ = [
    "CommandInfo",
    "CommandSource",
    "ContextPart",
    "ContextUse",
    "Destination",
    "Disposition",
    "Files",
    "ForkPosition",
    "Moved",
    "Runtime",
    "SessionInfo",
    "Snapshot",
]

Disposition: TypeAlias = Literal["started", "queued"]
ForkPosition: TypeAlias = Literal["before", "at"]
CommandSource: TypeAlias = Literal["builtin", "extension", "prompt", "skill"]


@frozen
class CommandInfo:
    """A slash command. `path` is the file that it comes from, `choices` are offered as its argument."""

    name: str
    description: str
    source: CommandSource
    argument_hint: str = ""
    path: str | None = None
    choices: tuple[str, ...] = ()


@frozen(kw_only=True)
class SessionInfo:
    """What identifies a session. `path` is None in memory; its file appears with the first input.

    `timestamp` is when it was begun, as its header has it.
    """

    id: str
    path: str | None
    cwd: str
    timestamp: str = ""
    name: str | None = None
    parent_session: str | None = None


@frozen(kw_only=True)
class Snapshot:
    """A session at one moment. The events after `seq` of `epoch` continue it.

    `heads` are all entries in file order; bodies are asked for with `Runtime.entries`.
    `interrupted` tells that the program ended in a turn, which `continue_turn` goes on with;
    `returned` are the texts of input that was claimed and not used, until somebody takes them.
    `unsaved` counts the entries that there was no room for yet on the disk.
    `findings` are sentences about what was odd in the file. `notice` says what a person should
    know before the first prompt, such as which credential was found. `questions` wait for `Runtime.answer`.
    `labels` are those of entries, by id. `spent` is what `max_cost` limits, in US dollars: all requests
    since the session was opened; None is no limit.
    """

    session: SessionInfo
    epoch: str
    seq: int
    heads: tuple[EntryHead, ...]
    leaf_id: str | None
    labels: Mapping[str, str] = EMPTY
    running: bool
    streaming: AssistantMessage | None
    running_calls: tuple[ToolExecutionStart, ...]
    queue: QueueUpdate
    model: Model
    thinking_level: str
    interrupted: bool = False
    returned: tuple[str, ...] = ()
    mode: GateMode = "auto"
    questions: tuple[Question, ...] = ()
    shell_running: bool = False
    unsaved: int = 0
    spent: float = 0.0
    max_cost: float | None = None
    notice: str = ""
    findings: tuple[str, ...] = ()


@frozen(kw_only=True)
class Moved:
    """Where a navigation or fork led. `text` is the prompt that was there, for the editor."""

    session_id: str
    leaf_id: str | None
    text: str = ""


@frozen(kw_only=True)
class ContextPart:
    """A part of a context, and about how many tokens it takes."""

    name: str
    tokens: int


@frozen(kw_only=True)
class ContextUse:
    """What fills a context. `measured`: a provider told the sum; the parts are estimates either way.

    `window` is how many tokens fit in, 0 if nobody knows.
    """

    parts: tuple[ContextPart, ...]
    tokens: int
    window: int
    measured: bool


@frozen(kw_only=True)
class Destination:
    """What going to an entry would find. Files stay as they are: nobody moves them.

    `leaf_id` is where the leaf would be. `context` is in tokens, None where it is not known.
    `model` and `thinking_level` are those that were used there. `differ` are paths whose content
    is now another than it was there, of `compared` ones: those that tools touched, with their
    content on record, before or after that place.
    """

    leaf_id: str | None
    context: int | None = None
    model: str | None = None
    thinking_level: str | None = None
    differ: tuple[str, ...] = ()
    compared: int = 0


class Runtime(Protocol):
    """Holds sessions and runs them. Raises `PiError`s; cancelling a call undoes nothing."""

    async def new_session(self) -> Snapshot:
        """Start an empty session. No file is made before its first input."""

    async def continue_session(self) -> Snapshot:
        """Open the latest session of the working directory, or start one."""

    async def open_session(self, reference: str) -> Snapshot:
        """Open a session by path or by (part of) its id."""

    async def close_session(self, session_id: str) -> None:
        """Stop its run, save, and forget the session. Its file stays."""

    async def snapshot(self, session_id: str) -> Snapshot:
        """The session now."""

    async def subscribe(self, session_id: str, outbox: Outbox) -> Snapshot:
        """Fill `outbox` from now on. The snapshot and the first event in it are adjacent."""

    async def unsubscribe(self, session_id: str, outbox: Outbox) -> None:
        """Stop filling `outbox`."""

    async def entries(self, session_id: str, ids: Sequence[str]) -> list[Mapping[str, Any]]:
        """The bodies of these entries, in the order asked; unknown ids are left out."""

    async def digests(self, session_id: str, groups: Sequence[Sequence[str]]) -> list[Digest]:
        """What a list shows of entries, a value for each group of ids; unknown ids are left out."""

    async def find_entries(self, session_id: str, text: str) -> Sequence[str]:
        """The ids of entries that have all words of `text`, in file order, the newest 5000 at most.

        Looked at are what was said, calls and their results, the session's names, and labels,
        which give the entry that they are on.
        """

    async def destination(self, session_id: str, entry_id: str) -> Destination:
        """What going to an entry would find; at a prompt, before it. Raises `UsageError`."""

    async def set_label(self, session_id: str, entry_id: str, label: str | None) -> None:
        """Put a label on an entry; None takes it away. Raises `UsageError` for an unknown entry."""

    async def export(self, session_id: str, path: str | None, leaf_id: str | None = None) -> str:
        """Write a session to a new file, as the ending of its name says. Gives the file's path.

        Markdown and JSON lines are of the branch that ends at `leaf_id`, without it the current
        one; a page has all branches and opens there. Without a `path` it is a page in the
        session's folder, where a relative path begins, too. Raises `UsageError`, `StorageError`.
        """

    async def prompt(self, session_id: str, text: str, images: Sequence[ImageContent] = ()) -> Disposition:
        """Start a turn. Raises `BusyError` while a run is in progress."""

    async def steer(self, session_id: str, text: str, images: Sequence[ImageContent] = ()) -> Disposition:
        """Say something before the next request of the running turn; idle: start a turn."""

    async def follow_up(self, session_id: str, text: str, images: Sequence[ImageContent] = ()) -> Disposition:
        """Say something when the agent would stop; idle: start a turn."""

    async def continue_turn(self, session_id: str) -> Disposition:
        """Go on where an answer is owed or was cut off. Raises `UsageError` if nothing is owed."""

    async def abort(self, session_id: str) -> None:
        """Stop the run and wait until it is over. The queues stay as they are."""

    async def abort_call(self, session_id: str, call_id: str) -> bool:
        """Stop one running tool call; the run goes on. False if it is not running."""

    async def edit_queued(self, session_id: str, item_id: str, text: str) -> None:
        """Put another text in the place of one that waits. Raises `UsageError` if it does not."""

    async def remove_queued(self, session_id: str, item_id: str) -> None:
        """Take one out that waits. Raises `UsageError` if it does not."""

    async def move_queued(self, session_id: str, item_id: str, place: int) -> None:
        """Put one that waits in another place of its list. Raises `UsageError` if it does not."""

    async def take_returned(self, session_id: str) -> Sequence[str]:
        """The texts of what was claimed and not used, once."""

    async def run_shell(
        self, session_id: str, command: str, exclude_from_context: bool = False
    ) -> BashExecutionMessage:
        """Run the user's command to its end, and keep it in the branch for the next request to see.

        What it prints comes in `bash_execution_update` events. During a run its message is
        written at the end of the step. Raises `BusyError` if one is running already.
        """

    async def abort_shell(self, session_id: str) -> None:
        """Stop the user's command and wait until nothing of it is left."""

    async def answer(self, session_id: str, question_id: str, answer: Answer) -> None:
        """Answer a question of `Snapshot.questions` or `approval_requested`.

        Raises `UsageError` if it does not wait any more.
        """

    async def set_mode(self, session_id: str, mode: GateMode) -> None:
        """Say what may happen unasked, from the next call on. The tools follow at the next step."""

    async def clear_queue(self, session_id: str) -> QueueUpdate:
        """Take everything out of the inbox and hand it back."""

    async def wait_for_idle(self, session_id: str) -> None:
        """Wait until nothing runs and every listener is done."""

    async def navigate(
        self, session_id: str, target_id: str, *, summarise: bool = False, instructions: str = ""
    ) -> Moved:
        """Move the leaf. At a user message: before it, and its text comes back.

        With `summarise` a summary of the branch that is left is hung there first, made with
        `instructions` in mind; `abort` ends that, and then nothing has moved. Raises `BusyError`
        while something is in progress, `SummaryError` if no summary came of it.
        """

    async def compact(self, session_id: str, instructions: str = "") -> CompactionResult | None:
        """Have older context summarised. A run in progress is stopped first; None: aborted.

        Raises `UsageError` if there is nothing to summarise, `SummaryError` if none came of it.
        """

    async def fork(self, session_id: str, target_id: str, position: ForkPosition) -> Moved:
        """Open a new session with the path up to (`at`) or `before` an entry.

        The source file is not touched, and no new file is made before the first input.
        """

    async def set_model(self, session_id: str, reference: str) -> Model:
        """Use another model from the next request on. Raises `ConfigError` for an unknown one."""

    async def models(self) -> Sequence[Model]:
        """The models that can be chosen."""

    async def set_thinking_level(self, session_id: str, level: str) -> str:
        """Think this much from the next request on. Gives what the model can do of it.

        Raises `UsageError` for a level that there is not.
        """

    async def set_session_name(self, session_id: str, name: str | None) -> None:
        """Name the session; None removes its name."""

    async def commands(self, session_id: str) -> Sequence[CommandInfo]:
        """The slash commands of the session's extensions, templates and skills."""

    async def run_command(self, session_id: str, name: str, arguments: str) -> str:
        """Run a command of an extension. Gives what the person is told; raises `UsageError`."""

    async def renderers(self, session_id: str) -> Mapping[str, str]:
        """How entries of extensions are shown: custom types to templates of `extensions.renderers`."""

    async def reload(self, session_id: str) -> Sequence[str]:
        """Read settings, resources and extensions again. Gives the findings; raises `BusyError`."""

    async def trust(self, session_id: str) -> Trust:
        """Whether the resources of the session's own folder are used."""

    async def set_trust(self, session_id: str, folder: str, trusted: bool) -> None:
        """Remember a decision about the session's folder or one above it; it holds after `reload`."""


@runtime_checkable
class Files(Protocol):
    """What a runtime can do that has the session files itself."""

    async def session_of(self, session_id: str) -> Snapshot:
        """Open the session of exactly this id, or begin it. Raises `UsageError` for what is no id."""

    async def fork_file(self, reference: str) -> Snapshot:
        """Open a new session of this directory with all branches of another, which is only read."""
