"""The session tree as an outline, and its rows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_trio.session.tree import EntryHead
from pi_tui.outline import SUBSTANCE, Code, Outline, letter
from pi_tui.tree_rows import DEEPEST, MOST_MADE, Row, Rows
from pi_tui.tree_shown import SHOWS, Show


def heads(*lines: str) -> list[EntryHead]:
    """`id parent role` each; `-` is no parent, a role with a slash a fact."""
    made = []
    for text in lines:
        name, parent, detail = text.split()
        own = ("compaction", "leaf", "label", "branch_summary", "usage", "model_change")
        kind = "custom" if "/" in detail else detail if detail in own else "message"
        made.append(EntryHead(name, None if parent == "-" else parent, kind, detail))
    return made


BRANCHED = heads(
    "u1 - user", "a1 u1 assistant", "t1 a1 toolResult", "e1 t1 turn/end",
    "u2 e1 user", "a2 u2 assistant",
    "u3 e1 user", "a3 u3 assistant", "u4 a3 user",
)  # fmt: skip


def rows_of(entries: list[EntryHead], leaf: str | None, show: Show = "turns") -> list[Row]:
    rows = Rows(Outline(entries), show)
    rows.sync(leaf)
    return [rows[at] for at in range(len(rows))]


def ids(rows: list[Row]) -> list[str]:
    return [row.id for row in rows]


def test_a_straight_conversation_is_not_indented():
    outline = Outline(BRANCHED[:6])
    assert [(row.id, row.number, row.prefix) for row in rows_of(BRANCHED[:6], "a2")] == [
        ("u1", 1, ""),
        ("u2", 2, ""),
    ]
    assert (outline.branch("a2"), outline.branches) == ("A", 1)


def test_branches_are_lettered_and_only_they_indent():
    outline, rows = Outline(BRANCHED), rows_of(BRANCHED, "u4")
    assert [(row.id, row.prefix, row.rest) for row in rows] == [
        ("u1", "", ""),
        ("u2", "├─A", "│  "),
        ("u3", "└─B", ""),
        ("u4", "", ""),
    ]
    assert ids([row for row in rows if row.active]) == ["u1", "u3", "u4"]
    assert (outline.branch("u4"), outline.branches) == ("B", 2)
    assert [outline.letter(each) for each in ("u1", "a2", "u4")] == ["A", "A", "B"]


def test_inside_the_tree_there_is_no_letter():
    outline = Outline(BRANCHED)
    assert (outline.branch("e1"), outline.branches) == ("", 2)
    assert outline.branch("a3") == ""
    assert ids([row for row in rows_of(BRANCHED, "e1") if row.active]) == ["u1"]


@pytest.mark.parametrize(
    ("target", "leaf", "is_at"),
    [
        ("e1", "e1", True),
        ("e1", "i1", True),
        ("e1", "e2", True),  # a turn that was stopped before anything of it was there
        ("i1", "e2", True),
        ("e1", "m1", False),  # another model was chosen
        ("a1", "i1", True),
        ("u1", "i1", False),  # before a prompt
        ("e2", "e1", False),
        ("e1", None, False),
    ],
)
def test_what_waits_is_no_other_place(target, leaf, is_at):
    records = heads(
        "u1 - user", "a1 u1 assistant", "e1 a1 turn/end",
        "i1 e1 inbox/spliced", "s2 i1 turn/start", "r2 s2 inbox/returned", "e2 r2 turn/end",
        "m1 e2 model_change",
    )  # fmt: skip
    assert Outline(records).is_at(target, leaf) is is_at


def test_one_is_at_a_prompt_that_nothing_follows():
    assert Outline(heads("u1 - user")).is_at("u1", "u1")


def test_a_turn_counts_its_tools_and_ends_at_its_end():
    row = rows_of(BRANCHED, None)[0]
    assert (row.tools, row.end, list(row.members)) == (1, "e1", ["u1", "a1", "t1", "e1"])


def test_each_filter_shows_what_it_says():
    entries = heads(
        "s1 - system", "u1 s1 user", "a1 u1 assistant", "t1 a1 toolResult", "l1 t1 label",
        "c1 l1 compaction", "m1 c1 model_change", "x1 m1 usage", "u2 x1 user",
    )  # fmt: skip
    shown = {show: ids(rows_of(entries, "u2", show)) for show in SHOWS}
    assert shown["turns"] == ["u1", "c1", "u2"]
    assert shown["default"] == ["u1", "a1", "t1", "c1", "u2"]
    assert shown["no-tools"] == ["u1", "a1", "c1", "u2"]
    assert shown["user-only"] == ["u1", "u2"]
    assert shown["all"] == ["s1", "u1", "a1", "t1", "l1", "c1", "m1", "u2"]
    rows = Rows(Outline(entries), "labeled-only")
    rows.sync("u2", ["a1", "not there"])
    assert ids([rows[at] for at in range(len(rows))]) == ["a1"]


def test_going_to_an_entry_leads_to_that_entry():
    assert [(row.id, row.end) for row in rows_of(BRANCHED, "u4", "default")][:2] == [
        ("u1", "u1"),
        ("a1", "a1"),
    ]


def test_the_end_of_a_turn_whose_rest_was_left_has_a_row():
    """TR-08: from the middle of a turn one can go on elsewhere, and the old end stays in sight."""
    entries = heads(
        "u1 - user", "a1 u1 assistant", "t1 a1 toolResult", "a2 t1 assistant", "e1 a2 turn/end", "u2 t1 user",
    )  # fmt: skip
    rows = rows_of(entries, "u2")
    assert [(row.id, row.prefix, row.end) for row in rows] == [
        ("u1", "", "t1"),
        ("a2", "├─A", "e1"),
        ("u2", "└─B", "u2"),
    ]
    assert list(rows[1].members) == ["a2", "e1"]


def test_records_alone_are_no_branch():
    entries = [*BRANCHED[:4], *heads("l1 e1 label", "p1 e1 leaf", "u2 p1 user")]
    outline = Outline(entries)
    assert (outline.branches, ids(rows_of(entries, "u2"))) == (1, ["u1", "u2"])
    assert rows_of(entries, "u2")[1].prefix == ""
    assert outline.branch("p1") == ""


ASKED = "t1 - turn/start", "u1 t1 user", "a1 u1 assistant", "e1 a1 turn/end"
LEFT = "t2 e1 turn/start", "u2 t2 user", "e2 u2 turn/end"


@pytest.mark.parametrize(
    ("lines", "leaf", "shown"),
    [
        ((*ASKED, *LEFT, "p1 e1 leaf"), "e1", ["u1"]),
        ((*ASKED, *LEFT, "p1 e1 leaf", "t3 e1 turn/start", "u3 t3 user"), "u3", ["u1", "u3"]),
        (("t2 - turn/start", "u2 t2 user", "p1 - leaf", "t3 - turn/start", "u3 t3 user"), "u3", ["u3"]),
        ((*ASKED, "p1 - leaf", "u2 - user", "p2 - leaf", "u3 - user"), "u3", ["u1", "u3"]),
    ],
)
def test_a_prompt_that_was_left_before_anything_came_of_it_is_no_branch(lines, leaf, shown):
    """Only `all` shows it; read at once or while it happens."""
    entries = heads(*lines)
    rows = Rows(Outline())
    for head in entries:
        rows.outline.add(head)
        rows.sync(head.id)
    rows.sync(leaf)
    assert ids([rows[at] for at in range(len(rows))]) == ids(rows_of(entries, leaf)) == shown
    assert "u2" in ids(rows_of(entries, leaf, "all"))
    assert rows[len(rows) - 1].number == rows.outline.turn_number(leaf)


def test_the_turn_before_a_withdrawn_prompt_ends_where_it_did():
    for more in ((), ("t3 e1 turn/start", "u3 t3 user")):
        row = rows_of(heads(*ASKED, *LEFT, "p1 e1 leaf", *more), "e1")[0]
        assert (row.id, row.end) == ("u1", "e1")
        assert "u2" not in row.members
        assert "e2" not in row.members
    withdrawn = rows_of(heads(*ASKED, *LEFT, "p1 e1 leaf"), "e1", "all")[5]
    assert (withdrawn.id, withdrawn.end, list(withdrawn.members)) == ("u2", "u2", ["u2"])


@pytest.mark.parametrize(
    "lines",
    [
        ("p2 e2 leaf", "a2 e2 assistant"),
        ("p2 u2 leaf", "a2 u2 assistant"),
        ("t3 e1 turn/start", "u3 t3 user", "a3 u3 assistant", "p2 e2 leaf", "a2 e2 assistant"),
    ],
)
def test_a_prompt_to_which_one_returns_is_not_withdrawn_any_more(lines):
    """Read at once or while it happens."""
    entries = heads(*ASKED, *LEFT, "p1 e1 leaf", *lines)
    rows = Rows(Outline())
    for head in entries:
        rows.outline.add(head)
        rows.sync(head.id)
    rows.sync("a2")
    made = [rows[at] for at in range(len(rows))]
    assert ids(made) == ids(rows_of(entries, "a2"))
    assert ("u2", 2, True) in [(row.id, row.number, row.active) for row in made]
    assert rows.outline.turn_number("a2") == 2


def test_a_prompt_that_is_looked_at_is_withdrawn_again_when_it_is_left():
    entries = heads(*ASKED, *LEFT, "p1 e1 leaf", "p2 e2 leaf")
    assert ids(rows_of(entries, "e2")) == ["u1", "u2"]
    assert ids(rows_of([*entries, *heads("p3 e1 leaf")], "e1")) == ["u1"]


def test_a_prompt_that_was_left_for_elsewhere_or_after_something_is_a_branch():
    for lines in (
        (*ASKED, *LEFT, "p1 u1 leaf"),
        (*ASKED, *LEFT[:2], "a2 u2 assistant", "p1 e1 leaf"),
        (*ASKED, *LEFT, "l1 e2 label", "c1 l1 compaction", "p1 e1 leaf"),
    ):
        assert "u2" in ids(rows_of(heads(*lines), "e1"))


def test_a_leaf_entry_stands_for_what_it_points_at():
    outline = Outline([*BRANCHED, *heads("p1 u1 leaf")])
    assert outline.place("p1") == outline.place("u1")
    assert len(outline) == len(BRANCHED)


def test_repeated_ids_and_unknown_parents_are_survived():
    """TR-01: each id is shown once, and nothing hangs."""
    assert ids(rows_of(heads("a - user", "a - user", "b x user", "c c user"), "c")) == ["a", "b", "c"]


def test_a_very_long_chain_needs_no_recursion():
    chain = [EntryHead(f"u{at}", f"u{at - 1}" if at else None, "message", "user") for at in range(20_000)]
    rows = Rows(Outline(chain))
    rows.sync("u19999")
    assert len(rows) == 20_000
    assert (rows[19_999].prefix, rows[19_999].number) == ("", 20_000)
    assert rows.index("u777") == 777
    assert [rows[at].number for at in range(20_000)] == list(range(1, 20_001))
    assert len(rows._made) <= MOST_MADE


def test_branches_in_branches_keep_a_bounded_indentation():
    """Of a prompt that is tried again at each turn, the first or the last of them being continued."""
    nested, straight = heads("u0 - user"), heads("u0 - user")
    for at in range(1, 1000):
        again = f"u{at} u{at - 1} user", f"v{at} u{at - 1} user"
        nested += heads(*again)
        straight += heads(*reversed(again))
    rows = rows_of(nested, "u999")
    assert len(rows) == len(nested)
    assert max(len(row.prefix) for row in rows) <= DEEPEST + 3
    assert rows[999].prefix.startswith("…")
    assert {row.rest for row in rows_of(straight, "u999") if row.active} == {""}


def test_letters_never_end():
    assert [letter(at) for at in range(24, 29)] == ["Y", "Z", "AA", "AB", "AC"]


# ---------------------------------------------------------------- moving and folding


def test_branch_points_are_found_both_ways():
    rows = Rows(Outline(BRANCHED), "default")
    rows.sync("u4")
    point = rows.index("e1")
    assert point == rows.index("t1") == 2
    assert (rows.next_fork(0, 1), rows.next_fork(5, -1), rows.next_fork(point, 1)) == (point, point, None)


def test_a_branch_folds_into_its_first_row_and_unfolds():
    rows = Rows(Outline(BRANCHED))
    rows.sync("u4")
    assert rows.fold_or_up(3) == 2  # to where the branch begins
    assert rows.fold_or_up(2) == 2
    rows.sync("u4")
    assert [(rows[at].id, rows[at].hidden) for at in range(len(rows))] == [("u1", 0), ("u2", 0), ("u3", 1)]
    assert rows.index("u4") == 2
    assert rows[2].members == ["u3", "a3"]
    assert rows.fold_or_up(2) == 0  # it is folded: one level up
    assert rows.unfold_or_down(0) == 1  # to the next branch
    assert rows.unfold_or_down(2) == 2
    rows.sync("u4")
    assert len(rows) == 4


def test_folding_keeps_the_letters():
    entries = [*BRANCHED, *heads("u5 a2 user", "u6 a2 user")]
    rows = Rows(Outline(entries))
    rows.sync("u4")
    before = [rows[at].prefix for at in range(len(rows))]
    assert before == ["", "├─A", "│  ├─A", "│  └─B", "└─C", ""]
    rows.fold_or_up(1)
    rows.sync("u4")
    assert [rows[at].prefix for at in range(len(rows))] == ["", "├─A", "└─C", ""]
    assert rows[1].hidden == 2


# ---------------------------------------------------------------- growing


@st.composite
def trees(draw: st.DrawFn) -> list[EntryHead]:
    """Entries of all kinds, hung on any earlier one, mostly on the last."""
    made: list[EntryHead] = []
    kinds = st.sampled_from([
        ("message", "user"), ("message", "assistant"), ("message", "toolResult"), ("label", "e0"),
        ("custom", "turn/end"), ("branch_summary", None), ("leaf", None),
    ])  # fmt: skip
    for at in range(draw(st.integers(1, 30))):
        kind, detail = draw(kinds)
        parent = draw(st.one_of(st.just(at - 1), st.integers(-1, at - 1))) if at else -1
        made.append(EntryHead(f"e{at}", f"e{parent}" if parent >= 0 else None, kind, detail))
    return made


def test_a_rest_without_a_prompt_has_no_row_once_something_follows():
    entries = heads("a1 - assistant", "t1 a1 turn/start", "s1 a1 system", "b1 a1 assistant")
    rows = Rows(Outline())
    for head in entries:
        rows.outline.add(head)
        rows.sync(head.id)
    assert ids([rows[at] for at in range(len(rows))]) == ids(rows_of(entries, "b1")) == ["b1"]


@given(trees(), st.sampled_from([show for show in SHOWS if show != "labeled-only"]))
def test_rows_that_grew_are_those_made_at_once(entries: list[EntryHead], show: Show):
    outline = Outline()
    rows = Rows(outline, show)
    for head in entries:
        outline.add(head)
        rows.sync(head.id)
    assert [rows[at] for at in range(len(rows))] == rows_of(entries, entries[-1].id, show)


@given(trees())
def test_every_entry_has_one_row_among_all(entries: list[EntryHead]):
    rows = rows_of(entries, None, "all")
    assert sorted(ids(rows)) == sorted(head.id for head in entries if head.type != "leaf")


@given(trees())
def test_every_end_of_substance_is_at_hand_among_the_turns(entries: list[EntryHead]):
    """TR-08: whatever was left, a row leads there."""
    outline = Outline(entries)
    rows = Rows(outline)
    rows.sync(None)
    outline.number()
    for segment in outline.walk():
        if segment.is_tip:
            last = [at for at, code in enumerate(segment.codes) if code in SUBSTANCE][-1]
            at = rows.index(outline.heads[segment.places[last]].id)
            assert at is not None
            row = rows[at]
            assert outline.segment(outline.place(row.end) or 0) is segment
            assert Code(segment.codes[segment.index(outline.place(row.end) or 0)]) in (
                *SUBSTANCE,
                Code.TURN_END,
            )
