"""Text as lines: what is laid out, and what is said of the rest."""

from __future__ import annotations

import pytest
from rich.style import Style

from pi_tui.items.paint import beginning, line, one_line, wrapped

PLAIN = Style()


@pytest.mark.parametrize(
    ("text", "shown", "more"),
    [
        ("", 1, 0),
        ("a", 1, 0),
        ("a\nb\nc\nd", 4, 0),
        ("a\nb\nc\nd\ne", 3, 2),
        ("word " * 12, 3, 3),
        ("x" * 10_000, 3, 997),
        ("한" * 20, 4, 0),
    ],
)
def test_the_beginning_of_a_text(text: str, shown: int, more: int):
    strips, unseen = beginning(text, 3, 10, PLAIN)
    assert (len(strips), unseen) == (shown, more)
    assert [strip.text for strip in strips] == [strip.text for strip in wrapped(text, 10, PLAIN)][:shown]


@pytest.mark.parametrize(
    "text", ["short", "just ten c", "one more ch", "a  \n\n b\n", "an é\nand a word that is long"]
)
def test_lines_that_fit_stay_as_they_are(text: str):
    strips = wrapped(text, 10, PLAIN)
    assert all(strip.cell_length == 10 for strip in strips)
    assert "".join("".join(strip.text for strip in strips).split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ""),
        ("\n \n  two words \nmore", "two words"),
        ("a\x0bb", "a"),
        ("\x1b[31m\nb", ""),
        ("a\u2028b", "a"),
    ],
)
def test_one_line_is_the_first_that_says_something(text: str, said: str):
    assert one_line(text) == said


def test_one_line_of_a_huge_text_is_short():
    assert len(one_line(" " + "x" * 1_000_000)) <= 2000


@pytest.mark.parametrize("width", range(1, 26))
def test_a_line_that_is_cut_says_so_at_most_once(width: int):
    parts = (" ‹Stream›", " │ ", " Tree ", " │ ", " Tools ")
    text = line(width, [(part, PLAIN) for part in parts]).text
    assert len(text) == width
    assert text.count("…") <= 1
    assert "".join(parts).startswith(text.rstrip().removesuffix("…"))


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (("12345678", "9"), "1234567…"),
        (("1234567", "8"), "12345678"),
        (("12345678", " ", ""), "12345678"),
        (("1234", "5678", "9"), "1234567…"),
    ],
)
def test_a_line_that_is_cut_between_its_parts_says_so(parts: tuple[str, ...], text: str):
    assert line(8, [(part, PLAIN) for part in parts]).text == text
