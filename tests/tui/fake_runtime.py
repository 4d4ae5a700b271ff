"""A runtime without models or files, for tests of the screen: scripted answers on a real trio thread.

It keeps real entries in a real tree and emits the events of a run through a real hub, so the
screen sees what it would see of the real one. What it answers is decided by words in the
prompt: `wait` never ends until it is aborted, nor does `mute`, which says nothing before; for `full`
room is made in the context until it is aborted; `tool` runs a call, `crash` raises.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio
from attrs import evolve

from pi_trio import codec
from pi_trio.approval import GateMode, Question
from pi_trio.errors import BusyError, SessionError, UsageError
from pi_trio.events import (
    AgentEnd,
    AgentSettled,
    AgentStart,
    ApprovalRequested,
    ApprovalResolved,
    BashExecutionUpdate,
    CompactionEnd,
    CompactionResult,
    CompactionStart,
    EntryAppended,
    InputReturned,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    QueueUpdate,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
)
from pi_trio.hub import Hub, Outbox
from pi_trio.llm.partial import PartialMessage
from pi_trio.llm.protocol import Model, ModelCost, TextDelta
from pi_trio.messages import (
    AgentMessage,
    AssistantMessage,
    BashExecutionMessage,
    Cost,
    TextContent,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
    text_of,
)
from pi_trio.remote.interface import CommandInfo, Destination, Moved, SessionInfo, Snapshot
from pi_trio.remote.offers import KeptSession, KeyPlace, Surroundings
from pi_trio.resources.setting_changes import Scope, SettingInfo, change_setting, list_settings
from pi_trio.session.digest import Digest, digest, said
from pi_trio.session.scan import head_of
from pi_trio.tool import ToolResult

MODELS = (
    Model("fake-1", provider="fake", cost=ModelCost(1, 5), context_window=100_000),
    Model("fake-2", provider="fake", reasoning=True, context_window=100_000, input=("text", "image")),
)
MODEL = MODELS[0]


class FakeSession:
    """Entries, a leaf, a queue and perhaps a run."""

    def __init__(self, session_id: str, entries: Sequence[Mapping[str, Any]] = ()) -> None:
        self.id = session_id
        self.hub = Hub(lambda event: None)
        self.entries: dict[str, Mapping[str, Any]] = {}
        self.leaf: str | None = None
        self.steering: list[tuple[str, str]] = []
        self.follow_up: list[tuple[str, str]] = []
        self.returned: list[str] = []
        self._items = itertools.count(1)
        self.scope: trio.CancelScope | None = None
        self.shell: trio.CancelScope | None = None
        self.questions: dict[str, Question] = {}
        self.answered: dict[str, str] = {}
        self.level = "off"
        self.model = MODEL
        self.mode: GateMode = "auto"
        self.max_cost: float | None = None
        self.idle = trio.Event()
        self.summarised = trio.Event()
        self.idle.set()
        self._ids = map("{:08x}".format, itertools.count(1))
        for entry in entries:
            self._keep(entry)

    async def append(self, entry: Mapping[str, Any]) -> None:
        whole = {
            "id": next(self._ids),
            "parentId": self.leaf,
            "timestamp": "2026-11-30T12:00:00.000Z",
            **entry,
        }
        self._keep(whole)
        await self.hub.emit(EntryAppended(whole))

    async def append_message(self, message: AgentMessage) -> None:
        await self.append({"type": "message", "message": codec.to_json(message)})

    def _keep(self, entry: Mapping[str, Any]) -> None:
        self.entries[entry["id"]] = entry
        self.leaf = entry["targetId"] if entry["type"] == "leaf" else entry["id"]

    @property
    def queue(self) -> QueueUpdate:
        lists = self.steering, self.follow_up
        texts = (tuple(text for _, text in each) for each in lists)
        return QueueUpdate(*texts, *(tuple(id_ for id_, _ in each) for each in lists))

    def add_queued(self, waiting: list[tuple[str, str]], text: str) -> None:
        waiting.append((f"item-{next(self._items)}", text))

    def find_queued(self, item_id: str) -> tuple[list[tuple[str, str]], int]:
        for waiting in (self.steering, self.follow_up):
            for place, (id_, _) in enumerate(waiting):
                if id_ == item_id:
                    return waiting, place
        raise UsageError(f"Nothing with the id {item_id} waits.")


class FakeRuntime:
    """See `pi_trio.remote.interface.Runtime`. `log` tells which commands came."""

    def __init__(self, nursery: trio.Nursery, entries: Sequence[Mapping[str, Any]] = ()) -> None:
        self.log: list[str] = []
        self.answers: dict[str, str] = {}
        self.keys: dict[str, str] = {}
        self.images: list[str] = []
        self.kept: dict[str, KeptSession] = {}
        self.setting_files: dict[Scope, Path] = {}
        self.destinations: dict[str, Destination] = {}
        self.templates: dict[str, str] = {}
        self._nursery = nursery
        self._entries = entries
        self._sessions: dict[str, FakeSession] = {}

    def _add(self, entries: Sequence[Mapping[str, Any]]) -> FakeSession:
        session = FakeSession(f"session-{len(self._sessions) + 1}", entries)
        self._sessions[session.id] = session
        return session

    async def new_session(self) -> Snapshot:
        entries, self._entries = self._entries, ()
        return await self.snapshot(self._add(entries).id)

    async def continue_session(self) -> Snapshot:
        return await self.new_session()

    async def open_session(self, reference: str) -> Snapshot:
        if reference in self.kept:
            return await self.snapshot(self._add(conversation(1, prompt=f"in {reference}")).id)
        raise SessionError(f"there is no session {reference!r}")

    async def close_session(self, session_id: str) -> None:
        self.log.append(f"close {session_id}")
        await self.abort(session_id)
        del self._sessions[session_id]

    async def snapshot(self, session_id: str) -> Snapshot:
        session = self._sessions[session_id]
        return Snapshot(
            session=SessionInfo(id=session.id, path=None, cwd="/project"),
            epoch="1",
            seq=session.hub.seq,
            heads=tuple(map(head_of, session.entries.values())),
            leaf_id=session.leaf,
            running=session.scope is not None,
            streaming=None,
            running_calls=(),
            queue=session.queue,
            model=session.model,
            thinking_level=session.level,
            questions=tuple(session.questions.values()),
            shell_running=session.shell is not None,
            notice=f"{session.model.reference} · no key needed",
            mode=session.mode,
            max_cost=session.max_cost,
            labels={
                entry["targetId"]: entry["label"]
                for entry in session.entries.values()
                if entry["type"] == "label" and entry["label"]
            },
        )

    async def subscribe(self, session_id: str, outbox: Outbox) -> Snapshot:
        self._sessions[session_id].hub.attach(outbox)
        return await self.snapshot(session_id)

    async def unsubscribe(self, session_id: str, outbox: Outbox) -> None:
        self._sessions[session_id].hub.detach(outbox)

    async def entries(self, session_id: str, ids: Sequence[str]) -> list[Mapping[str, Any]]:
        known = self._sessions[session_id].entries
        return [known[each] for each in ids if each in known]

    async def prompt(self, session_id: str, text: str, images: Sequence[Any] = ()) -> str:
        session = self._sessions[session_id]
        if session.scope is not None:
            raise BusyError("a run is in progress")
        self.log.append(f"prompt {text}")
        text = text.replace("/review", "Please review mute")
        self.images += [image.mime_type for image in images]
        session.scope, session.idle = trio.CancelScope(), trio.Event()
        self._nursery.start_soon(self._run, session, session.scope, UserMessage.of(text, images))
        return "started"

    async def steer(self, session_id: str, text: str, images: Sequence[Any] = ()) -> str:
        self.log.append(f"steer {text}")
        session = self._sessions[session_id]
        session.add_queued(session.steering, text)
        await session.hub.emit(session.queue)
        return "queued"

    async def follow_up(self, session_id: str, text: str, images: Sequence[Any] = ()) -> str:
        self.log.append(f"follow_up {text}")
        session = self._sessions[session_id]
        session.add_queued(session.follow_up, text)
        await session.hub.emit(session.queue)
        return "queued"

    async def edit_queued(self, session_id: str, item_id: str, text: str) -> None:
        session = self._sessions[session_id]
        waiting, place = session.find_queued(item_id)
        waiting[place] = (f"{item_id}'", text)
        await session.hub.emit(session.queue)

    async def remove_queued(self, session_id: str, item_id: str) -> None:
        session = self._sessions[session_id]
        waiting, place = session.find_queued(item_id)
        del waiting[place]
        await session.hub.emit(session.queue)

    async def move_queued(self, session_id: str, item_id: str, place: int) -> None:
        session = self._sessions[session_id]
        waiting, old = session.find_queued(item_id)
        waiting.insert(place, waiting.pop(old))
        await session.hub.emit(session.queue)

    async def abort(self, session_id: str) -> None:
        session = self._sessions[session_id]
        if session.scope is not None:
            self.log.append("abort")
            session.scope.cancel()
            await session.idle.wait()

    async def clear_queue(self, session_id: str) -> QueueUpdate:
        session = self._sessions[session_id]
        queue = session.queue
        session.steering, session.follow_up = [], []
        if session.scope is not None:
            await session.hub.emit(session.queue)
        return queue

    async def wait_for_idle(self, session_id: str) -> None:
        await self._sessions[session_id].idle.wait()

    async def digests(self, session_id: str, groups: Sequence[Sequence[str]]) -> list[Digest]:
        return [digest(await self.entries(session_id, ids)) for ids in groups]

    async def find_entries(self, session_id: str, text: str) -> Sequence[str]:
        words = text.lower().split()
        self.log.append(f"find {text}")
        entries = self._sessions[session_id].entries.items()
        return [id_ for id_, entry in entries if all(word in said(entry).lower() for word in words)]

    async def destination(self, session_id: str, entry_id: str) -> Destination:
        return self.destinations.get(entry_id, Destination(leaf_id=entry_id, context=1000))

    async def set_label(self, session_id: str, entry_id: str, label: str | None) -> None:
        self.log.append(f"label {entry_id} {label}")
        await self._sessions[session_id].append({"type": "label", "targetId": entry_id, "label": label})

    async def export(self, session_id: str, path: str | None, leaf_id: str | None = None) -> str:
        self.log.append(f"export {leaf_id} {path}")
        return f"/project/{path}"

    async def navigate(
        self, session_id: str, target_id: str, *, summarise: bool = False, instructions: str = ""
    ) -> Moved:
        session = self._sessions[session_id]
        if session.scope is not None:
            raise BusyError("a run is in progress")
        if summarise:
            self.log.append(f"summarise {instructions}".strip())
            await self._summarise(session)
        self.log.append(f"navigate {target_id}")
        leaf, text = _place(session.entries[target_id])
        await session.append({"type": "leaf", "targetId": leaf, "parentId": leaf})
        return Moved(session_id=session.id, leaf_id=leaf, text=text)

    async def fork(self, session_id: str, target_id: str, position: str) -> Moved:
        self.log.append(f"fork {position} {target_id}")
        source = self._sessions[session_id]
        leaf, text = _place(source.entries[target_id]) if position == "before" else (target_id, "")
        path: list[Mapping[str, Any]] = []
        at = leaf
        while at is not None:
            path.insert(0, source.entries[at])
            at = source.entries[at]["parentId"]
        return Moved(session_id=self._add(path).id, leaf_id=leaf, text=text)

    async def take_returned(self, session_id: str) -> Sequence[str]:
        session = self._sessions[session_id]
        taken, session.returned = session.returned, []
        return taken

    async def record(self, session_id: str, entry: Mapping[str, Any]) -> None:
        """Have an entry be written."""
        await self._sessions[session_id].append(entry)

    async def set_model(self, session_id: str, reference: str) -> Model:
        session = self._sessions[session_id]
        session.model = next(model for model in MODELS if reference in (model.reference, model.id))
        return session.model

    async def limit_cost(self, session_id: str, dollars: float) -> None:
        self._sessions[session_id].max_cost = dollars

    async def set_mode(self, session_id: str, mode: GateMode) -> None:
        self._sessions[session_id].mode = mode

    async def models(self) -> Sequence[Model]:
        return MODELS

    async def set_thinking_level(self, session_id: str, level: str) -> str:
        self._sessions[session_id].level = level
        return level

    async def continue_turn(self, session_id: str) -> str:
        self.log.append("continue")
        return await self.prompt(session_id, "go on")

    async def abort_call(self, session_id: str, call_id: str) -> bool:
        self.log.append(f"abort_call {call_id}")
        return True

    async def answer(self, session_id: str, question_id: str, answer: str) -> None:
        self.log.append(f"answer {question_id} {answer}")
        session = self._sessions[session_id]
        session.questions.pop(question_id, None)
        await session.hub.emit(ApprovalResolved(question_id))

    async def renderers(self, session_id: str) -> Mapping[str, str]:
        return dict(self.templates)

    async def commands(self, session_id: str) -> Sequence[CommandInfo]:
        return [CommandInfo("review", "look at a change", "prompt")]

    async def settings(self, session_id: str) -> Sequence[SettingInfo]:
        return list_settings(self.setting_files)

    async def change_setting(self, session_id: str, scope: Scope, key: str, value: Any) -> None:
        change_setting(self.setting_files[scope], key, value)

    async def reload(self, session_id: str) -> Sequence[str]:
        self.log.append("reload")
        return ()

    async def compact(self, session_id: str, instructions: str = "") -> CompactionResult | None:
        session = self._sessions[session_id]
        await session.hub.emit(CompactionStart("manual"))
        session.scope, session.idle = trio.CancelScope(), trio.Event()
        with session.scope:
            await trio.sleep_forever()
        session.scope = None
        session.idle.set()
        await session.hub.emit(CompactionEnd("manual", aborted=True))
        return None

    async def run_shell(
        self, session_id: str, command: str, exclude_from_context: bool = False
    ) -> BashExecutionMessage:
        self.log.append(f"shell {command}")
        session = self._sessions[session_id]
        await session.hub.emit(BashExecutionUpdate(f"output of {command}\n"))
        session.shell = trio.CancelScope()
        with session.shell:
            if "wait" in command:
                await trio.sleep_forever()
        message = BashExecutionMessage(
            command,
            f"output of {command}\n",
            exit_code=None if session.shell.cancelled_caught else 3,
            cancelled=session.shell.cancelled_caught,
            exclude_from_context=exclude_from_context or None,
        )
        session.shell = None
        await session.append_message(message)
        return message

    async def abort_shell(self, session_id: str) -> None:
        self.log.append("abort_shell")
        scope = self._sessions[session_id].shell
        if scope is not None:
            scope.cancel()

    async def _summarise(self, session: FakeSession) -> None:
        session.scope, session.idle = trio.CancelScope(), trio.Event()
        with session.scope:
            await session.summarised.wait()
        session.scope = None
        session.idle.set()

    async def end_summary(self, session_id: str) -> None:
        """Have the summary be there."""
        self._sessions[session_id].summarised.set()

    # ------------------------------------------------------------------ offers

    async def list_sessions(self, words: str = "", *, everywhere: bool = False) -> Sequence[KeptSession]:
        wanted = words.lower().split()
        return [
            each
            for each in self.kept.values()
            if all(word in f"{each.name} {each.first_message}".lower() for word in wanted)
            and (everywhere or each.cwd == "/project")
        ]

    async def preview_session(self, path: str) -> tuple[str, str]:
        return f"last prompt of {path}", f"last answer of {path}"

    async def rename_session(self, path: str, name: str) -> None:
        self.log.append(f"rename {path} {name}")
        self.kept[path] = evolve(self.kept[path], name=name)

    async def delete_session(self, path: str) -> bool:
        self.log.append(f"delete {path}")
        del self.kept[path]
        return True

    async def copy_session(self, path: str, folder: str) -> Snapshot:
        if folder == "/nowhere":
            raise UsageError("/nowhere is not a folder.")
        self.log.append(f"copy {path} {folder}")
        return await self.new_session()

    async def key_places(self) -> Sequence[KeyPlace]:
        return [KeyPlace("anthropic", "Anthropic"), KeyPlace("openai", "OpenAI", "key from OPENAI_API_KEY")]

    async def store_key(self, session_id: str, provider: str, key: str) -> str:
        self.keys[provider] = key
        return "/agent/auth.json"

    async def surroundings(self, session_id: str) -> Surroundings:
        return Surroundings(
            version="9.9",
            sessions=3,
            trust="nothing here needs trust",
            local=("Ollama: tiny (4,096 tokens, too few for much work)",),
            pi="/home/.pi/agent: 2 sessions",
        )

    async def import_pi(self, *, dry_run: bool) -> Sequence[str]:
        return ["There is nothing to import."]

    async def doctor(self, session_id: str) -> Sequence[str]:
        return ["  ok versions: all"]

    async def complete_file(self, session_id: str, word: str) -> Sequence[str]:
        return [each for each in ("src/main.py", "a b.txt", "notes.md") if word in each]

    async def ask(self, session_id: str, *questions: Question) -> None:
        """Put questions, as the gate of a call would."""
        session = self._sessions[session_id]
        for question in questions:
            session.questions[question.id] = question
            await session.hub.emit(ApprovalRequested(question))

    # ------------------------------------------------------------------ a run

    async def _run(self, session: FakeSession, scope: trio.CancelScope, said: UserMessage) -> None:
        text = text_of(said.content)
        if "crash" in text:
            raise RuntimeError("the runtime broke")
        emit = session.hub.emit
        await emit(AgentStart())
        if "full" in text:
            await self._make_room(session, scope, said)
            return
        await session.append_message(said)
        with scope:
            await self._answer(session, text)
        if scope.cancelled_caught and "mute" not in text:
            await session.append_message(_answer("so far", stop_reason="aborted"))
        await session.append({"type": "custom", "customType": "turn/end", "data": {}})
        session.scope = None
        await emit(AgentEnd(()))
        await emit(AgentSettled(aborted=scope.cancelled_caught))
        session.idle.set()

    async def _make_room(self, session: FakeSession, scope: trio.CancelScope, said: UserMessage) -> None:
        emit = session.hub.emit
        await emit(CompactionStart("threshold"))
        with scope:
            await trio.sleep_forever()
        await emit(CompactionEnd("threshold", aborted=True))
        session.returned.append(text_of(said.content))
        await emit(InputReturned((said,)))
        session.scope = None
        await emit(AgentEnd(()))
        await emit(AgentSettled(aborted=True))
        session.idle.set()

    async def _answer(self, session: FakeSession, text: str) -> None:
        if "mute" in text:
            await trio.sleep_forever()
        said = self.answers.get(text, f"You said **{text}**.")
        await self._stream(session, said)
        if "wait" in text:
            await trio.sleep_forever()
        calls = (ToolCall("call-1", "bash", {"command": "make test"}),) if "tool" in text else ()
        message = _answer(said, calls)
        await session.append_message(message)
        await session.hub.emit(MessageEnd(message))
        for call in calls:
            await self._call(session, call, wait="hold" in text)

    async def _stream(self, session: FakeSession, said: str) -> None:
        partial = PartialMessage(AssistantMessage(()))
        await session.hub.emit(MessageStart(AssistantMessage((), stop_reason="pending")))
        for at in range(0, len(said), 7):
            delta = TextDelta(0, said[at : at + 7])
            partial.apply(delta)
            await session.hub.emit(MessageUpdate(delta, partial.view()))

    async def _call(self, session: FakeSession, call: ToolCall, *, wait: bool) -> None:
        emit = session.hub.emit
        await emit(ToolExecutionStart(call.id, call.name, call.arguments))
        output = self.answers.get("tool output", "first line\nlast line")
        await emit(ToolExecutionUpdate(call.id, call.name, call.arguments, ToolResult(output)))
        if wait:
            await trio.sleep_forever()
        result = ToolResult(output + "\n\nCommand exited with code 2", is_error=True)
        await emit(ToolExecutionEnd(call.id, call.name, result, is_error=True, duration_ms=1500))
        await session.append_message(
            ToolResultMessage(call.id, call.name, result.content, is_error=True, duration_ms=1500)
        )


@asynccontextmanager
async def open_fake(
    entries: Sequence[Mapping[str, Any]] = (), answers: Mapping[str, str] | None = None
) -> AsyncIterator[FakeRuntime]:
    """A runtime whose first session has these entries, and which says these answers to prompts."""
    async with trio.open_nursery() as nursery:
        runtime = FakeRuntime(nursery, entries)
        runtime.answers.update(answers or {})
        yield runtime
        nursery.cancel_scope.cancel()


def conversation(
    turns: int, *, prompt: str = "question {}", answer: str = "answer {}"
) -> list[dict[str, Any]]:
    """The entries of a straight conversation; ids are `u0 a0 u1 a1 …`."""
    entries: list[dict[str, Any]] = []
    parent = None
    for turn in range(turns):
        for name, message in (
            (f"u{turn}", UserMessage.of(prompt.format(turn), ())),
            (f"a{turn}", _answer(answer.format(turn))),
        ):
            entries.append(
                {
                    "type": "message",
                    "id": name,
                    "parentId": parent,
                    "timestamp": "2026-11-30T10:00:00.000Z",
                    "message": codec.to_json(message),
                }
            )
            parent = name
    return entries


def _answer(text: str, calls: Sequence[ToolCall] = (), stop_reason: Any = "stop") -> AssistantMessage:
    usage = Usage(input=900, output=100, total_tokens=1000, cost=Cost(total=0.01))
    return AssistantMessage((TextContent(text), *calls), usage=usage, stop_reason=stop_reason)


def _place(entry: Mapping[str, Any]) -> tuple[str | None, str]:
    """Where navigating to an entry leads: before a prompt, with its text."""
    message = entry.get("message", {})
    if message.get("role") == "user":
        return entry["parentId"], text_of(codec.message_from_json(message).content)
    return entry["id"], ""
