"""Keys in the forms of newer protocols, through the parser that reads the terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_tui.terminal import KeyParser


def _keys(data: str) -> list[tuple[str, str | None]]:
    return [
        (event.key, event.character) for event in KeyParser(input_comes=lambda _seconds: False).feed(data)
    ]


@pytest.mark.parametrize(
    ("data", "typed"),
    [
        *((f"\x1b[{ord(sign)}u", sign) for sign in "/*$`@? a1é"),
        *((f"\x1b[27;1;{ord(sign)}~", sign) for sign in "/*$`@?"),
        ("\x1b[27;2;63~", "?"),
        ("\x1b[47:63;2u", "?"),
        ("\x1b[97;2u", "A"),
        ("\x1b[97;65u", "a"),  # with caps lock the text comes with it
        ("\x1b[97;65;65u", "A"),
        ("\x1b[32;2u", " "),
        *((f"\x1b[{57399 + digit};129u", str(digit)) for digit in range(10)),
        *((f"\x1b[{code}u", sign) for code, sign in zip(range(57409, 57414), "./*-+", strict=True)),
        ("\x1b[57400;1;49u", "1"),
        ("\x1b[97;3;229u", "å"),  # Option and a
    ],
)
def test_keys_that_type_something(data, typed):
    """TI-08: every key types its sign, however the terminal reports it."""
    assert [character for _, character in _keys(data)] == [typed]


@pytest.mark.parametrize(
    ("data", "key"),
    [
        ("\x1b[1089;5u", "ctrl+c"),
        ("\x1b[1089::99;5u", "ctrl+c"),
        ("\x1b[27;5;1089~", "ctrl+c"),
        ("\x1b[27;5;99~", "ctrl+c"),
        ("\x1b[99;133u", "ctrl+c"),
        ("\x1b[27;2;13~", "shift+enter"),
        ("\x1b[27;3;13~", "alt+enter"),
        ("\x1b[9;2u", "shift+tab"),
        ("\x1b[27u", "escape"),
        ("\x1b[57414u", "enter"),
        ("\x1bd", "alt+d"),
        ("\x1by", "alt+y"),
        ("\x1b_", "alt+underscore"),
    ],
)
def test_keys_that_do_something(data, key):
    """TI-08: shortcuts work with another alphabet too, and Alt with a letter is no Escape."""
    assert [name for name, _ in _keys(data)] == [key]


@pytest.mark.parametrize("data", ["\x1b[97;1:3u", "\x1b[99999999u", "\x1b[99999999;5u"])
def test_released_keys_and_no_keys_do_nothing(data):
    assert _keys(data) == []


@given(st.tuples(*[st.integers(0, 70000)] * 3), st.integers(1, 255))
def test_no_report_ends_the_program(codes, modifiers):
    """A parser that raises would end the thread that reads the keys, and with it the program."""
    code, shifted, base = codes
    for data in (f"\x1b[{code}:{shifted}:{base};{modifiers}u", f"\x1b[27;{modifiers};{code}~"):
        _keys(data)
