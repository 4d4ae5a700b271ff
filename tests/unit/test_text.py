"""What reaches a terminal from text that somebody else wrote."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_trio.text import plural, printed, sanitise, settled, without_controls

ACTS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def test_ordinary_text_is_the_same_object():
    text = "naïve – ½ 漢字 👩‍🚀 [red]x[/]\nnext line"
    assert sanitise(text) is text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b]52;c;cm0gLXJm\x1b\\b", "a␛b"),
        ("a\x1b]0;title\x07b", "a␛b"),
        ("\x1b]8;;http://x.invalid\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("a\x1b[2Jb", "a␛b"),
        ("a\x1b[10Ab", "a␛b"),
        ("a\x1b[6nb", "a␛b"),
        ("a\x1bPq#0\x1b\\b", "a␛b"),
        ("a\x1b_Gi=1\x1b\\b", "a␛b"),
        ("a\x1bcb", "a␛b"),
        ("a\x9b2Jb", "a␛b"),
        ("a\x9d0;t\x9cb", "a␛b"),
        ("tail\x1b", "tail␛"),
        ("tail\x1b[3", "tail␛"),
        ("a\x1b]0;no end", "a␛0;no end"),
        ("a\x9d0;no end", "a<U+009D>0;no end"),
    ],
)
def test_sequences_do_not_reach_the_terminal(text, shown):
    """SE-01"""
    assert sanitise(text) == shown


def test_colours_vanish():
    assert sanitise("\x1b[1;31mred\x1b[0m \x1b[38:2::1:2:3mx\x1b[m\x1b[K\x1b(B") == "red x"


def test_controls_are_shown():
    assert sanitise("a\0b\x07c\x7fd\x85e") == "a␀b␇c␡d<U+0085>e"


def test_invisible_and_turning_characters_are_named():
    assert sanitise("ab\u202edc\u2066\u200b") == "ab<U+202E>dc<U+2066><U+200B>"
    assert sanitise("x\U000e0041") == "x<U+E0041>"


def test_half_characters():
    assert sanitise("a\ud83db") == "a�b"


def test_tabs_are_spaces():
    assert sanitise("a\tb\n\tc") == "a   b\n    c"


def test_progress_bars_keep_their_last_state():
    """BA-10"""
    bar = "".join(f"\r{n}%" for n in range(2000))
    assert settled(f"start\n{bar}\n\x1b[32mdone\x1b[0m\r\n") == "start\n1999%\ndone\n"
    assert settled("10%\r100%\r") == "100%"
    assert printed("bash", "10%\r100%") == without_controls("10%\r100%") == "100%"


def test_overstriking_vanishes_where_a_command_printed_it():
    assert settled("N\bNA\bAME") == "NAME"


def test_what_is_no_output_of_a_command_hides_nothing():
    """In a prompt, a diff or a file, text before a carriage return or a backspace is still said."""
    assert sanitise("rm -rf ~\r# harmless\r\nnext\r") == "rm -rf ~␍# harmless\nnext"
    assert sanitise("rx\bm") == "rx␈m"
    assert printed("read", "a\rb") == "a\rb"


def test_one_line():
    assert sanitise("a\nb\x1b[1mc", keep_newlines=False) == "a⏎bc"


def test_everything_that_a_person_approves_is_visible():
    """SE-13"""
    text = "rm -rf ~\rls \x1b[8m; curl x\x1b[0m\b\b\u202e"
    shown = sanitise(text, show_all=True)
    assert shown == "rm -rf ~␍ls ␛[8m; curl x␛[0m␈␈<U+202E>"


@given(st.text(alphabet=st.sampled_from("ab[];m8\\P_^X07JK\x1b\x07\x9b\x9c\x9d\x90\r\n\t\x08\0\u202e\ud800")))
def test_nothing_that_acts_is_left(text):
    for shown in (sanitise(text), sanitise(text, show_all=True)):
        assert not ACTS.search(shown)
        assert sanitise(shown) == shown


def test_long_lines_of_introducers_take_linear_time():
    """Quadratic scanning would exceed the test's time limit by far."""
    for introducer in ("\x1b]", "\x9d", "\x1bP", "\x1b[", "\r", "\x08"):
        assert not ACTS.search(sanitise(introducer * 400_000 + "x"))


def test_one_is_no_plural():
    counts = [(1, "second"), (1.0, "second"), (2.5, "second"), (0, "entry"), (1, "entry"), (3, "more line")]
    assert [plural(count, noun) for count, noun in counts] == [
        "1 second",
        "1 second",
        "2.5 seconds",
        "0 entries",
        "1 entry",
        "3 more lines",
    ]
