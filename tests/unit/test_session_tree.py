"""The pure tree: paths, pointers, and what a file from elsewhere may do to them."""

from __future__ import annotations

from collections.abc import Iterable

from pi_trio.session.tree import EntryHead, Tree


def tree_of(*heads: tuple[str, str | None] | EntryHead) -> Tree:
    tree = Tree()
    for head in heads:
        tree.add(head if isinstance(head, EntryHead) else EntryHead(head[0], head[1], "message", "user"))
    return tree


def pointer(entry_id: str, target: str | None, parent: str | None) -> EntryHead:
    return EntryHead(entry_id, parent, "leaf", target)


def test_paths_children_and_ancestors() -> None:
    tree = tree_of(("a", None), ("b", "a"), ("c", "b"), ("d", "b"), ("e", None))
    assert tree.path("d") == ["a", "b", "d"]
    assert tree.path(None) == []
    assert tree.children(None) == ["a", "e"]
    assert tree.children("b") == ["c", "d"]
    assert tree.common_ancestor("c", "d") == "b"
    assert tree.common_ancestor("c", "e") is None
    assert tree.leaf_after_load() == "e"
    assert tree.findings == []


def test_children_follow_what_is_added_after_they_were_asked_for() -> None:
    tree = tree_of(("a", None))
    assert tree.children("a") == []
    tree.add(EntryHead("b", "a", "message"))
    assert tree.children("a") == ["b"]


def test_what_hangs_on_a_pointer_hangs_on_its_target() -> None:
    tree = tree_of(("a", None), ("b", "a"), pointer("p", "a", "a"), ("c", "p"))
    assert tree.path("c") == ["a", "c"]
    assert tree.children("a") == ["b", "c"]
    assert tree.parent("c") == "a"


def test_the_last_line_decides_the_leaf() -> None:
    assert Tree().leaf_after_load() is None
    assert tree_of(("a", None), ("b", "a"), pointer("p", "a", "a")).leaf_after_load() == "a"
    assert tree_of(("a", None), pointer("p", None, None)).leaf_after_load() is None
    # An older writer: the pointer's parent is the leaf that was left.
    assert tree_of(("a", None), ("b", "a"), pointer("p", "a", "b")).leaf_after_load() == "a"
    # A target that is not in the file: stay where the pointer hangs.
    assert tree_of(("a", None), ("b", "a"), pointer("p", "gone", "b")).leaf_after_load() == "b"
    assert tree_of(("a", None), pointer("p", "a", "a"), pointer("q", "p", "p")).leaf_after_load() == "a"


def test_an_orphan_is_a_root() -> None:
    tree = tree_of(("a", None), ("b", "gone"), ("c", "b"))
    assert tree.path("c") == ["b", "c"]
    assert tree.children(None) == ["a", "b"]
    assert len(tree.findings) == 1


def test_a_parent_may_come_after_its_child() -> None:
    tree = tree_of(("b", "a"), ("a", None))
    assert tree.path("b") == ["a", "b"]
    assert tree.children(None) == ["a"]
    assert tree.findings == []


def test_circles_are_cut_once_and_every_entry_is_seen_once() -> None:
    """TR-01: a loop of parents, also one of an entry with itself, costs a finding."""
    tree = tree_of(("a", "b"), ("b", "a"), ("c", "b"), ("d", "d"), ("x", "y"), pointer("y", "x", "x"))
    for each in "abcdx":
        assert tree.path(each)[-1] == each
        assert len(set(tree.path(each))) == len(tree.path(each))
    seen = [each for parent in (None, *"abcdx") for each in tree.children(parent)]
    assert sorted(seen) == ["a", "b", "c", "d", "x"]
    assert len(tree.findings) == 1


def test_a_repeated_id_counts_once() -> None:
    """TR-01: the first of two lines with the same id counts, also if the second would make a loop."""
    tree = tree_of(("a", None), ("b", "a"), ("a", "b"))
    assert tree.path("b") == ["a", "b"]
    assert [head.id for head in tree.heads] == ["a", "b"]
    assert tree.leaf_after_load() == "a"
    assert len(tree.findings) == 1


def chain(length: int) -> Iterable[EntryHead]:
    return (EntryHead(f"{n:x}", f"{n - 1:x}" if n else None, "message") for n in range(length))


def test_depth_does_not_matter() -> None:
    tree = tree_of(*chain(50_000))
    assert len(tree.path(tree.leaf_after_load())) == 50_000
