"""The parts of RPC mode on their own."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import trio
import trio.testing

from pi_trio.approval import Question
from pi_trio.codec import dumps, loads
from pi_trio.errors import UsageError
from pi_trio.events import AgentSettled, AgentStart, MessageUpdate, TurnStart
from pi_trio.llm.partial import PartialMessage
from pi_trio.llm.protocol import TextDelta
from pi_trio.messages import AssistantMessage, UserMessage
from pi_trio.remote.rpc.outgoing import STEPS_BEHIND, Outgoing
from pi_trio.remote.rpc.parameters import check, choice, flag, images, text
from pi_trio.remote.rpc.questions import Dialogs
from pi_trio.remote.rpc.shapes import session_tree
from pi_trio.session.session import Session
from pi_trio.wire import event_to_json

# ------------------------------------------------------------------ what a command may say

PARAMETERS = (text("message"), images("images"), choice("mode", "a", "b", required=False))


def test_only_declared_fields_are_taken() -> None:
    assert check(PARAMETERS, {"message": "hi", "other": 1, "mode": None}) == {"message": "hi"}


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        ({}, "`message` is missing: it is a text."),
        ({"message": None}, "`message` is missing: it is a text."),
        ({"message": 5}, "`message` must be a text."),
        ({"message": "", "mode": "c"}, "`mode` must be one of a, b."),
        ({"message": "", "mode": ["a"]}, "`mode` must be one of a, b."),
        (
            {"message": "", "images": {}},
            "`images` must be a list of images, each with `data` and `mimeType`.",
        ),
        (
            {"message": "", "images": [{"data": ""}]},
            "`images` must be a list of images, each with `data` and `mimeType`.",
        ),
    ],
)
def test_what_is_missing_or_wrong_is_told(command: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError) as caught:
        check(PARAMETERS, command)
    assert str(caught.value) == complaint


def test_a_number_is_no_flag() -> None:
    with pytest.raises(UsageError, match="true or false"):
        check([flag("enabled")], {"enabled": 1})


# ------------------------------------------------------------------ what goes to the client


class Reader:
    """A client that reads only while it is told to."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []
        self.reads = trio.Event()

    async def take(self, data: bytes) -> None:
        await self.reads.wait()
        assert data.endswith(b"\n")
        self.lines += [json.loads(line) for line in data[:-1].split(b"\n")]


def _outgoing(reader: Reader) -> Outgoing:
    return Outgoing(reader.take, event_to_json)


def _piece(partial: PartialMessage, delta: str) -> MessageUpdate:
    event = TextDelta(0, delta)
    partial.apply(event)
    return MessageUpdate(event, partial.view())


async def test_events_come_before_what_is_sent_after_them() -> None:
    reader = Reader()
    reader.reads.set()
    outgoing = _outgoing(reader)
    outgoing.outbox.put(1, AgentStart())
    await outgoing.send(dumps({"type": "response"}))
    outgoing.outbox.put(2, TurnStart())
    await outgoing.send()
    assert [line["type"] for line in reader.lines] == ["agent_start", "response", "turn_start"]


async def test_what_is_cancelled_comes_with_the_next_call() -> None:
    reader = Reader()
    reader.reads.set()
    outgoing = _outgoing(reader)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(outgoing.pass_on)
        await trio.testing.wait_all_tasks_blocked()
        outgoing.outbox.put(1, AgentStart())
        nursery.cancel_scope.cancel()
    await outgoing.send()
    assert [line["type"] for line in reader.lines] == ["agent_start"]


async def test_pieces_merge_while_the_client_is_slow() -> None:
    reader, partial = Reader(), PartialMessage(AssistantMessage(()))
    outgoing = _outgoing(reader)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(outgoing.pass_on)
        outgoing.outbox.put(1, AgentStart())
        await trio.testing.wait_all_tasks_blocked()
        for number in range(1_000):
            outgoing.outbox.put(2 + number, _piece(partial, "x"))
        outgoing.outbox.put(1_002, AgentSettled(aborted=False))
        reader.reads.set()
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert [line["type"] for line in reader.lines] == ["agent_start", "message_update", "agent_settled"]
    assert reader.lines[1]["assistantMessageEvent"]["delta"] == "x" * 1_000


async def test_the_agent_waits_for_a_client_that_is_far_behind() -> None:
    reader, steps = Reader(), 0
    outgoing = _outgoing(reader)

    async def work() -> None:
        nonlocal steps
        for _ in range(2 * STEPS_BEHIND):
            await outgoing.hold()
            outgoing.outbox.put(steps, TurnStart())
            steps += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(outgoing.pass_on)
        nursery.start_soon(work)
        await trio.testing.wait_all_tasks_blocked()
        assert steps == STEPS_BEHIND
        reader.reads.set()
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert len(reader.lines) == steps == 2 * STEPS_BEHIND


# ------------------------------------------------------------------ questions


def _question(rules: tuple[str, ...] = ()) -> Question:
    return Question(
        id="call", tool_name="bash", args={"command": "ls"}, reason="Why?", rules=rules, preview="-a"
    )


@pytest.mark.parametrize(
    ("place", "answer"), [(0, "once"), (1, "always"), (2, "no")], ids=["once", "always", "no"]
)
def test_every_option_is_an_answer(place: int, answer: str) -> None:
    dialogs = Dialogs()
    request = dialogs.request(_question(("bash(ls)",)))
    assert request["title"] == 'Why?\nbash {"command":"ls"}\n-a'
    response = {"id": request["id"], "value": request["options"][place]}
    assert dialogs.answer(response) == ("call", answer)
    assert dialogs.answer(response) is None


def test_without_rules_there_is_no_always() -> None:
    assert Dialogs().request(_question())["options"] == ["Allow once", "Deny"]


def test_a_question_that_was_withdrawn_cannot_be_answered() -> None:
    dialogs = Dialogs()
    request = dialogs.request(_question())
    dialogs.withdraw("call")
    assert dialogs.answer({"id": request["id"], "value": "Allow once"}) is None


# ------------------------------------------------------------------ the tree


def _tree(session: Session) -> Any:
    return loads(session_tree(session).json)


def test_an_empty_tree_is_a_list() -> None:
    assert _tree(Session.in_memory("/p")) == {"tree": [], "leafId": None}


def test_branches_and_labels_are_in_the_tree(new_log: Callable[[], Any]) -> None:
    log = new_log()
    first = log.user("one")
    left = log.answer("left")
    log.session.set_leaf_id(first)
    right = log.answer("right")
    log.session.append_label(left, "kept")
    (root,) = _tree(log.session)["tree"]
    assert [child["entry"]["id"] for child in root["children"]] == [left, right]
    assert [child.get("label") for child in root["children"]] == ["kept", None]
    assert root["entry"]["message"]["content"] == [{"type": "text", "text": "one"}]


def test_a_branch_may_be_thousands_deep() -> None:
    session = Session.in_memory("/p")
    for number in range(5_000):
        session.append_message(UserMessage.of(str(number)))
    data = session_tree(session).json
    assert data.count(b'"children":[') == 5_000
    assert data.endswith(b"]}" * 5_000 + b'],"leafId":' + dumps(session.get_leaf_id()) + b"}")
