"""Whatever was said: a cut keeps enough and parts nothing, and a summary makes a smaller context."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from pi_trio.compaction.cut import find_cut
from pi_trio.compaction.estimate import Meter, estimate_all, measure
from pi_trio.compaction.plan import Nothing, make_plan
from pi_trio.compaction.prune import prune
from pi_trio.compaction.summary import Summary
from pi_trio.compaction.surface import surface_of
from pi_trio.messages import AgentMessage, AssistantMessage, ToolResultMessage, Usage
from pi_trio.session import facts
from pi_trio.session.entries import BranchSummaryEntry, ContextEditEntry, CustomEntry, CustomMessageEntry
from pi_trio.session.session import Session

WORDS = st.integers(0, 4_000).map("x".__mul__)
RESULTS = st.integers(0, 12_000).map("r".__mul__)


@st.composite
def steps(draw, log) -> None:
    """One more thing that may happen to a branch, odd ones included."""
    kind = draw(st.sampled_from(["user", "answer", "calls", "dangling", "stray", "odd", "edit", "fact"]))
    if kind == "user":
        log.user(draw(WORDS))
    elif kind == "answer":
        log.answer(draw(WORDS), stop=draw(st.sampled_from(["stop", "error", "aborted"])))
    elif kind in ("calls", "dangling"):
        calls = draw(st.lists(st.sampled_from(["c1", "c2", "c3"]), min_size=1, unique=True))
        log.answer(draw(WORDS), *calls)
        for each in draw(st.permutations(calls))[kind == "dangling" :]:
            if draw(st.booleans()):
                log.user("steered in between")
            log.result(each, draw(RESULTS))
    elif kind == "stray":
        log.result(draw(st.sampled_from(["c1", "c4"])), draw(WORDS))
    elif kind == "odd":
        log.add(
            draw(
                st.sampled_from(
                    [CustomMessageEntry("n", "note"), BranchSummaryEntry("root", "s"), CustomEntry("n", {})]
                )
            )
        )
    elif kind == "edit" and log.session.heads:
        target = draw(st.sampled_from(log.session.heads)).id
        log.add(ContextEditEntry(target, draw(st.sampled_from([None, {"content": "edited"}]))))
    else:
        log.add(facts.fact(facts.STEP_START, log.session.id))


def happen(data: st.DataObject, log, most: int = 12) -> None:
    for _ in range(data.draw(st.integers(0, most))):
        data.draw(steps(log))


def check_legal(messages: Iterable[AgentMessage]) -> None:
    owed: list[str] = []
    for message in messages:
        if isinstance(message, ToolResultMessage):
            assert owed
            assert message.tool_call_id == owed.pop(0)
        else:
            assert not owed
            if isinstance(message, AssistantMessage):
                owed = [call.id for call in message.tool_calls]
    assert not owed


@given(st.data(), st.integers(0, 6_000))
def test_a_cut_keeps_enough_and_parts_nothing(new_log, data: st.DataObject, keep: int) -> None:
    """E55, E56, F2, CP-10"""
    log = new_log()
    happen(data, log)
    nodes = surface_of(log.session).nodes
    cut = find_cut(nodes, keep)
    if cut is None:
        return
    assert sum(node.tokens for node in nodes[cut.kept :]) >= keep
    assert any(node.message is not None for node in nodes[: cut.kept])
    open_calls: set[str] = set()
    for node in nodes[: cut.kept]:
        if isinstance(node.message, AssistantMessage):
            open_calls = {call.id for call in node.message.tool_calls}
        elif isinstance(node.message, ToolResultMessage):
            open_calls.discard(node.message.tool_call_id)
    for node in nodes[cut.kept :]:
        if isinstance(node.message, AssistantMessage):
            break
        assert not (isinstance(node.message, ToolResultMessage) and node.message.tool_call_id in open_calls)


@given(st.data(), st.integers(0, 4_000), st.booleans())
def test_summaries_leave_a_smaller_legal_context(
    new_log, data: st.DataObject, keep: int, pruning: bool
) -> None:
    """E56, E57, CP-10: also done again and again; each covers what the last one kept and what is new."""
    log = new_log()
    for number in range(3):
        happen(data, log)
        if pruning:
            prune_all(log.session)
        before = log.session.build_context().messages
        plan = make_plan(log.session, keep=keep, size=measure(log.session).size)
        if isinstance(plan, Nothing):
            continue
        assert plan.covered == before[: len(plan.covered)]
        if plan.previous is not None:
            assert plan.covered[0].summary == plan.previous
        log.session.append(Summary(f"s{number}", Usage()).entry(plan))
        after = log.session.build_context().messages
        check_legal(after)
        assert after[0].summary == f"s{number}"
        assert after[1:] == before[len(plan.covered) :]
        assert estimate_all(after[1:]) <= estimate_all(before)


def prune_all(session: Session) -> None:
    before = session.build_context().messages
    found = prune(surface_of(session).nodes)
    for each in found:
        for entry in each.entries(session.id):
            session.append(entry)
    after = session.build_context().messages
    check_legal(after)
    assert estimate_all(before) - estimate_all(after) == sum(each.saved for each in found)
    assert prune(surface_of(session).nodes) == ()


@given(st.data())
def test_the_nodes_are_the_context(new_log, data: st.DataObject) -> None:
    """But for the results that a context makes up for calls without one."""
    log = new_log()
    happen(data, log)
    nodes = surface_of(log.session).nodes
    context = [
        each
        for each in log.session.build_context().messages
        if not (isinstance(each, ToolResultMessage) and each.is_error)
    ]
    assert sum(node.message is not None for node in nodes) == len(context)
    assert sum(node.tokens for node in nodes) == estimate_all(context)


@given(st.data())
def test_a_growing_meter_agrees_with_a_new_one(new_log, data: st.DataObject) -> None:
    log = new_log()
    happen(data, log)
    context = log.session.build_context()
    grown = Meter(context.system_message, context.messages)
    anew = Meter(context.system_message)
    for message in context.messages:
        anew.add(evolve(message, usage=Usage()) if isinstance(message, AssistantMessage) else message)
    assert grown.size == anew.size
