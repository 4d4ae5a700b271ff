"""Long tool results are shortened in the context, not in the file."""

from __future__ import annotations

import pytest

from pi_trio.compaction.cut import find_cut
from pi_trio.compaction.estimate import estimate_all, measure
from pi_trio.compaction.prune import HEAD, LONGEST, TAIL, prune
from pi_trio.compaction.surface import surface_of
from pi_trio.messages import ImageContent, TextContent, ToolResultMessage, text_of
from pi_trio.session import facts

LONG = "\N{SNOWMAN}" * HEAD + "m" * LONGEST + "z" * TAIL

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def apply(session, pruned) -> None:
    for each in pruned:
        for entry in each.entries(session.id):
            session.append(entry)


def test_head_marker_and_tail_remain(new_log) -> None:
    """L55: what is written is a fact and, directly after it, the edit that pi understands."""
    log = new_log()
    log.user()
    log.answer("", "c")
    image = ImageContent(PIXEL, "image/png")
    result = log.message(
        ToolResultMessage("c", "bash", (TextContent(LONG), image), {"exit": 1}, is_error=True)
    )
    raw = log.session.line(result)
    before = estimate_all(log.session.build_context().messages)
    (pruned,) = prune(surface_of(log.session).nodes)
    apply(log.session, [pruned])

    fact, edit = log.session.get_branch()[-2:]
    assert (fact.type, edit.type) == ("custom", "context_edit")
    assert fact.custom_type == facts.PRUNE == "prune"
    assert fact.data == {
        "sessionId": log.session.id,
        "targetId": result,
        "callId": "c",
        "charactersCut": LONGEST,
        "tokensSaved": pruned.saved,
    }
    shown = log.session.build_context().messages[-1]
    assert isinstance(shown, ToolResultMessage)
    text = text_of(shown.content)
    assert text.startswith("\N{SNOWMAN}" * HEAD + "\n\n[8,192 characters are left out here")
    assert text.endswith("]\n\n" + "z" * TAIL)
    assert shown.content[1:] == (image,)
    assert (shown.details, shown.is_error) == ({"exit": 1}, True)
    assert before - estimate_all(log.session.build_context().messages) == pruned.saved > 1_000
    assert log.session.line(result) == raw
    assert prune(surface_of(log.session).nodes) == ()  # once is enough


@pytest.mark.parametrize(("length", "pruned"), [(LONGEST, 0), (LONGEST + 1, 1)])
def test_results_up_to_a_length_are_left_alone(new_log, length: int, pruned: int) -> None:
    log = new_log()
    log.user("x" * 20_000)
    log.step("c", "x" * length)
    assert len(prune(surface_of(log.session).nodes)) == pruned


def test_the_lengths_are_those_of_all_text_together(new_log) -> None:
    log = new_log()
    log.answer("", "c")
    halves = (TextContent("x" * 5_000), TextContent("y" * 5_000))
    log.message(ToolResultMessage("c", "bash", halves))
    (pruned,) = prune(surface_of(log.session).nodes)
    assert len(pruned.content) == 1
    assert pruned.cut == 10_001 - HEAD - TAIL


def test_what_the_model_works_with_is_spared(new_log) -> None:
    """L55: under pressure only what is before the kept part is shortened, never an unread result."""
    log = new_log()
    log.user()
    old = log.step("1", LONG)
    log.answer("", "2", "3")
    log.result("2", LONG)
    log.result("3", LONG)
    nodes = surface_of(log.session).nodes
    cut = find_cut(nodes, 2_000)  # reached inside the last group
    assert cut is not None
    assert [each.call_id for each in prune(nodes[: cut.kept])] == ["1"]
    assert [each.call_id for each in prune(nodes)] == ["1", "2", "3"]
    assert old in {node.id for node in nodes[: cut.kept]}


def test_a_pruned_context_is_estimated_anew(new_log) -> None:
    """CP-04 for pruning: the usage told before it is old."""
    log = new_log()
    log.user()
    log.step("1", LONG)
    log.answer("ok", told=150_000)
    apply(log.session, prune(surface_of(log.session).nodes))
    meter = measure(log.session)
    assert not meter.measured
    assert meter.size < 2_000
