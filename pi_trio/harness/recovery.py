"""What a session file says of a life before this one: what waits, and what a crash left open.

Inbox, brackets and turn numbers fold over the file in its own order; facts of another
session, which a fork inherits, count for turn numbers only. Reading is cheap at any length:
a `turn/end` tells how much waited, so that the fold starts at the last one with nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from attrs import define, field

from pi_trio.harness.inbox import TARGETS, Inbox, InboxItem, Splice, Target
from pi_trio.messages import AssistantMessage, ToolResultMessage
from pi_trio.session import facts
from pi_trio.session.branching import is_input
from pi_trio.session.entries import CustomEntry, Entry, MessageEntry
from pi_trio.session.repair import NOT_STARTED, OUTCOME_UNKNOWN, missing_result
from pi_trio.session.session import Session
from pi_trio.session.tree import EntryHead

__all__ = ["Interruption", "Remains", "closers", "read_remains"]

BRACKETS = frozenset({facts.TURN_START, facts.TURN_END, facts.STEP_START, facts.STEP_END})


@define
class Interruption:
    """A turn that is open at the end of the file: the program ended in it."""

    turn: int
    step: int | None = None


@define
class Remains:
    """What the file tells a new driver. `lost` was claimed and neither admitted nor handed back."""

    turns: int = 0
    interruption: Interruption | None = None
    waiting: list[Splice] = field(factory=list)
    lost: list[InboxItem] = field(factory=list)
    findings: list[str] = field(factory=list)


def read_remains(session: Session) -> Remains:
    """Fold the file. It is only read; `closers` are what a repair would append."""
    remains = Remains(turns=sum(head.detail == facts.TURN_START for head in session.heads))
    remains.interruption = _interruption(session)
    _fold_inbox(session, remains)
    return remains


def closers(session: Session, remains: Remains) -> Iterator[Entry]:
    """The entries that make an interrupted file whole. None for one that is.

    Results of open calls are among them only if the leaf is still where the turn was: where
    another program went on meanwhile, contexts supply them in memory.
    """
    if remains.lost:
        items = [item.to_json() for item in remains.lost]
        yield facts.fact(facts.INBOX_RETURNED, session.id, items=items, reason="interrupted")
    interruption = remains.interruption
    if interruption is None:
        return
    if interruption.step is not None:
        for message in _missing_results(session):
            yield MessageEntry(message)
        place = {"turn": interruption.turn, "step": interruption.step}
        yield facts.fact(facts.STEP_END, session.id, **place)
    yield facts.fact(facts.TURN_END, session.id, turn=interruption.turn, reason="interrupted", pending=None)


# ------------------------------------------------------------------ brackets


def _interruption(session: Session) -> Interruption | None:
    """The bracket of ours that is open at the end of the file, if one is."""
    step: int | None = None
    step_closed = False
    for head in reversed(session.heads):
        if head.type != "custom" or head.detail not in BRACKETS:
            continue
        data = _own(session, head)
        if data is None or head.detail == facts.TURN_END:
            return None
        if head.detail == facts.TURN_START:
            return Interruption(int(data.get("turn", 0)), step)
        if head.detail == facts.STEP_END:
            step_closed = True
        elif not step_closed and step is None:
            step = int(data.get("step", 0))
    return None


def _missing_results(session: Session) -> list[ToolResultMessage]:
    """One result for each call of the open step's answer that has none, if the leaf is there."""
    started: set[str] = set()
    answered: set[str] = set()
    for head in reversed(session.tree.branch(session.get_leaf_id())):
        if head.type == "custom" and head.detail == facts.TOOL_CALL:
            started.add(str((_own(session, head) or {}).get("callId")))
        elif head.type == "custom" and head.detail in BRACKETS:
            return []
        elif head.type == "message":
            message = _message(session.entry(head.id))
            if isinstance(message, ToolResultMessage):
                answered.add(message.tool_call_id)
            elif isinstance(message, AssistantMessage):
                return _results(message, started, answered)
            else:
                return []
    return []


def _results(answer: AssistantMessage, started: set[str], answered: set[str]) -> list[ToolResultMessage]:
    if answer.stop_reason in ("error", "aborted"):
        return []
    return [
        missing_result(call, OUTCOME_UNKNOWN if call.id in started else NOT_STARTED, answer.timestamp)
        for call in answer.tool_calls
        if call.id not in answered
    ]


def _message(entry: Entry) -> Any:
    return entry.message if isinstance(entry, MessageEntry) else None


# ------------------------------------------------------------------ the inbox


def _fold_inbox(session: Session, remains: Remains) -> None:
    inbox = Inbox(lambda change: None)
    claimed: dict[str, InboxItem] = {}
    for head in _since_nothing_waited(session):
        if is_input(head):
            claimed.pop(str(session.raw(head.id).get("inboxId")), None)
        elif head.type == "custom" and (data := _own(session, head)) is not None:
            try:
                _fold_fact(head.detail, data, inbox, claimed)
            except (AttributeError, KeyError, TypeError, ValueError):
                remains.findings.append(
                    f"entry {head.id}, a change of the inbox, is damaged and was left out"
                )
    remains.lost = list(claimed.values())
    remains.waiting = [
        Splice(target, 0, inserted=inbox.items(target)) for target in TARGETS if inbox.items(target)
    ]


def _fold_fact(
    name: str | None, data: Mapping[str, Any], inbox: Inbox, claimed: dict[str, InboxItem]
) -> None:
    match name:
        case facts.INBOX_SPLICED:
            change = _splice(inbox, data)
            inbox.apply(change)
            if not change.canceled:
                claimed.update((item.id, item) for item in change.removed)
        case facts.INBOX_RETURNED:
            for item in data["items"]:
                claimed.pop(item["id"], None)
        case facts.STEP_START:
            for dropped in data.get("dropped", ()):
                claimed.pop(dropped, None)
        case _:
            pass  # it says nothing of the inbox


def _since_nothing_waited(session: Session) -> list[EntryHead]:
    """The heads after the last turn of ours that ended with an empty inbox."""
    heads = session.heads
    for place in range(len(heads) - 1, -1, -1):
        head = heads[place]
        if head.type == "custom" and head.detail == facts.TURN_END:
            data = _own(session, head)
            if data is None or data.get("pending") == 0:
                return heads[place + 1 :]
    return heads


def _splice(inbox: Inbox, data: Mapping[str, Any]) -> Splice:
    """The change that a fact records, with what it removed."""
    target: Target = "next-step" if data["target"] == "next-step" else "next-turn"
    start = int(data["start"])
    removed = inbox.items(target)[start : start + int(data.get("removedCount", 0))]
    inserted = tuple(InboxItem.from_json(item) for item in data["inserted"])
    return Splice(target, start, removed, inserted, data.get("outcome") == "canceled")


def _own(session: Session, head: EntryHead) -> dict[str, Any] | None:
    """The data of a fact of this session; None for one that a fork inherited."""
    entry = session.entry(head.id)
    if not isinstance(entry, CustomEntry) or facts.session_of(entry) != session.id:
        return None
    return dict(entry.data)
