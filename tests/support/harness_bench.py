"""A harness over a real session file, with a scripted model and everything it told."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import trio

from pi_trio.events import AgentEvent, EntryAppended, MessageEnd
from pi_trio.harness.harness import AgentHarness, HarnessOptions
from pi_trio.llm.auth import Credential
from pi_trio.llm.protocol import Model
from pi_trio.loop.grammar import State, check_events
from pi_trio.messages import AgentMessage, text_of
from pi_trio.session.session import Session
from pi_trio.testing import ScriptedModel
from pi_trio.tool import Tool, ToolResult

__all__ = ["TOOLS", "Bench", "in_order", "open_bench"]


async def _echo(call_id: str, args: Any, on_update: Any) -> ToolResult:
    return ToolResult(f"echo {args.get('n', '')}")


async def _stuck(call_id: str, args: Any, on_update: Any) -> ToolResult:
    await trio.sleep_forever()
    raise AssertionError("not reached")


TOOLS = tuple(
    Tool(name=name, description=name, parameters={"type": "object"}, execute=body)
    for name, body in (("echo", _echo), ("stuck", _stuck))
)


class Bench:
    """A harness over a session file, with everything it told."""

    def __init__(self, harness: AgentHarness, model: ScriptedModel) -> None:
        self.harness = harness
        self.model = model
        self.events: list[AgentEvent] = []
        harness.hub.subscribe(self.events.append)

    @property
    def session(self) -> Session:
        return self.harness.session

    async def say(self, text: str) -> None:
        self.harness.prompt(text)
        await self.harness.wait_for_idle()

    def kinds(self) -> list[str]:
        """The entries of the branch: role of a message, name of a fact, else the type."""
        return [head.detail or head.type for head in self.session.tree.branch(self.session.get_leaf_id())]

    def log(self) -> list[str]:
        """All entries in file order, named in the same way."""
        return [head.detail or head.type for head in self.session.heads]

    def facts(self, name: str) -> list[Mapping[str, Any]]:
        """The data of all facts of this name."""
        ids = [head.id for head in self.session.heads if head.detail == name]
        return [self.session.raw(each)["data"] for each in ids]

    def turn_end(self) -> str:
        """Why the last turn ended."""
        return str(self.facts("turn/end")[-1]["reason"])

    def merged(self) -> list[str]:
        """Log and events in one order: entries as `=name`, which are told the moment they are written."""
        return [
            f"={_entry_name(event)}" if isinstance(event, EntryAppended) else event.type
            for event in self.events
        ]

    def texts(self) -> list[str]:
        transcript = self.harness.conversation.transcript
        return [
            text_of(getattr(message, "content", None) or getattr(message, "summary", ""))
            for message in transcript
        ]

    def said(self) -> list[AgentMessage]:
        """Every message whose end was told."""
        return [event.message for event in self.events if isinstance(event, MessageEnd)]

    def requested(self, number: int) -> list[str]:
        messages = self.model.requests[number].context.messages
        return [text_of(message.content) for message in messages]


def _entry_name(event: EntryAppended) -> str:
    entry = event.entry
    name = entry.get("customType") or entry.get("message", {}).get("role") or entry["type"]
    return str(name)


def in_order(sequence: list[str], *wanted: str) -> bool:
    """Whether `wanted` is a subsequence."""
    rest = iter(sequence)
    return all(any(each == name for each in rest) for name in wanted)


@asynccontextmanager
async def open_bench(session: Session, *answers: Any, **options: Any) -> AsyncIterator[Bench]:
    model = ScriptedModel(answers)

    async def credential(model: Model) -> Credential:
        return Credential("none", "a test")

    chosen = {
        "stream_function": lambda _: model,
        "credential": credential,
        "tools": TOOLS,
        "sections": lambda tools: {"preamble": "Be brief."},
    }
    async with trio.open_nursery() as nursery:
        harness = AgentHarness(session, HarnessOptions(**{**chosen, **options}), nursery, model=model.model)
        bench = Bench(harness, model)
        yield bench
        await harness.aclose()
        assert check_events(bench.events) is State.IDLE
        nursery.cancel_scope.cancel()
