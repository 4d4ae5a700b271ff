"""Chips and visible letters: what counts as one in the prompt."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from pi_tui.chips import Chips, unit_starts
from pi_tui.kill_ring import KillRing

LETTERS = ["a", "👨‍👩‍👧", "〽️", "🇨🇳", "é", "e\u0301", "한", "👍🏽", "❤️‍🔥", "ب", " "]


@given(st.lists(st.sampled_from(LETTERS)))
def test_a_visible_letter_is_one_unit(letters):
    """TI-04: joined emoji, flags, and marks on letters, in any order."""
    line = "".join(letters)
    ends = [len("".join(letters[: at + 1])) for at in range(len(letters))]
    assert list(unit_starts(line, ())) == [0, *ends]


@given(st.text(max_size=60))
def test_any_text_has_units(text):
    starts = unit_starts(text, ())
    assert list(starts) == sorted(set(starts))
    assert (starts[0], starts[-1]) == (0, len(text))


def test_half_a_flag_is_a_letter():
    assert unit_starts("x🇨y", ()) == (0, 1, 2, 3)
    assert unit_starts("🇨🇳🇩", ()) == (0, 2, 3)


def test_a_chip_is_one_unit_while_it_is_whole():
    """TI-09: only a whole mark stands for its text, and two are never mixed up."""
    chips = Chips()
    first, second = chips.fold("one\ntwo"), chips.fold("x" * 2000)
    assert (first, second) == ("[paste #1 +2 lines]", "[paste #2 2000 chars]")
    line = f"see {first} and {second[:-1]}"
    assert chips.spans(line) == [(4, 4 + len(first))]
    assert unit_starts(line, tuple(chips.spans(line)))[4:6] == (4, 4 + len(first))
    assert chips.unfold(f"{second}|{first}|{first[1:]}") == f"{'x' * 2000}|one\ntwo|{first[1:]}"


def test_a_paste_that_holds_a_mark_is_not_unfolded_again():
    chips = Chips()
    inner = chips.fold("secret\nplans")
    outer = chips.fold(f"quoted {inner}\nend")
    assert chips.unfold(outer) == f"quoted {inner}\nend"


def test_a_mark_of_an_earlier_run_means_nothing():
    """TI-09: an old draft with the same number does not mean a new paste."""
    chips = Chips()
    chips.fold("new\ntext")
    assert chips.unfold("[paste #1 +214 lines]") == "[paste #1 +214 lines]"


def test_images_are_found_by_their_chips():
    chips = Chips()
    mark = chips.attach(Path("/tmp/a ]b.png"))
    assert mark == "[image #1 a b.png]"
    assert chips.images_in(f"{mark} and [image #2 c.png] and {mark}") == [Path("/tmp/a ]b.png")] * 2
    assert chips.unfold(mark) == mark
    assert chips.spelled(f"see {mark}") == "see /tmp/a ]b.png"


def test_kills_are_joined_where_they_stood():
    ring = KillRing()
    ring.add("world", before=True, joined=False)
    ring.add("hello ", before=True, joined=True)
    ring.add("!", before=False, joined=True)
    assert ring.current == "hello world!"
    ring.add("other", before=False, joined=False)
    ring.add("", before=False, joined=False)
    assert [ring.current, ring.older(), ring.older()] == ["other", "hello world!", "other"]


def test_nothing_killed_is_nothing_yanked():
    ring = KillRing()
    assert (ring.current, ring.older()) == ("", "")
