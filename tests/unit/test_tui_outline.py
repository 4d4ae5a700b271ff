"""The session tree as rows."""

from __future__ import annotations

from itertools import islice

from pi_trio.session.tree import EntryHead
from pi_tui.outline import Outline, branch_letters


def heads(*lines: str) -> list[EntryHead]:
    """`id parent role` each; `-` is no parent, a role with a slash a fact."""
    made = []
    for text in lines:
        name, parent, detail = text.split()
        kind = "custom" if "/" in detail else detail if detail in ("compaction", "leaf") else "message"
        made.append(EntryHead(name, None if parent == "-" else parent, kind, detail))
    return made


BRANCHED = heads(
    "u1 - user", "a1 u1 assistant", "t1 a1 toolResult", "e1 t1 turn/end",
    "u2 e1 user", "a2 u2 assistant",
    "u3 e1 user", "a3 u3 assistant", "u4 a3 user",
)  # fmt: skip


def test_a_straight_conversation_is_not_indented():
    flat = Outline(BRANCHED[:6]).flatten("a2")
    assert [(row.id, row.number, row.prefix) for row in flat.rows] == [("u1", 1, ""), ("u2", 2, "")]
    assert (flat.branch, flat.branches) == ("A", 1)


def test_branches_are_lettered_and_only_they_indent():
    flat = Outline(BRANCHED).flatten("u4")
    assert [(row.id, row.prefix, row.rest) for row in flat.rows] == [
        ("u1", "", ""),
        ("u2", "├─A", "│  "),
        ("u3", "└─B", "   "),
        ("u4", "   ", "   "),
    ]
    assert [row.id for row in flat.rows if row.active] == ["u1", "u3", "u4"]
    assert (flat.branch, flat.branches) == ("B", 2)


def test_inside_the_tree_there_is_no_letter():
    flat = Outline(BRANCHED).flatten("e1")
    assert (flat.branch, flat.branches) == ("", 2)
    assert [row.id for row in flat.rows if row.active] == ["u1"]


def test_a_turn_counts_its_tools_and_ends_at_its_end():
    row = Outline(BRANCHED).flatten(None).rows[0]
    assert (row.tools, row.end) == (1, "e1")


def test_entries_on_request():
    rows = Outline(BRANCHED, entries=True).flatten("a2").rows
    assert [row.id for row in rows] == ["u1", "a1", "t1", "u2", "a2", "u3", "a3", "u4"]


def test_repeated_ids_and_unknown_parents_are_survived():
    """TR-01: each id is shown once, and nothing hangs."""
    odd = heads("a - user", "a - user", "b x user", "c c user")
    assert [row.id for row in Outline(odd).flatten("c").rows] == ["a", "b", "c"]


def test_a_very_long_chain_needs_no_recursion():
    chain = [EntryHead(f"u{at}", f"u{at - 1}" if at else None, "message", "user") for at in range(20_000)]
    flat = Outline(chain).flatten("u19999")
    assert len(flat.rows) == 20_000
    assert flat.rows[-1].prefix == ""


def test_letters_never_end():
    assert list(islice(branch_letters(), 24, 29)) == ["Y", "Z", "AA", "AB", "AC"]
