"""The real program on terminals of many kinds: what they say of their ground, and which colours they get."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # tests are not a package; the terminal is shared

from test_terminal import PATIENCE, Terminal

from pi_tui.theme import bundled_folder

QUESTION = b"\x1b]11;?"
WHITE = b"\x1b]11;rgb:ffff/ffff/ffff\x1b\\"
INK = b"38;2;11;87;176"  # the accent of the light theme
LIGHT_ACCENT = INK
DARK_ACCENT = b"38;2;138;184;255"

TRUE_COLOUR = re.compile(rb"[34]8;2;")
MANY_COLOURS = re.compile(rb"[34]8;5;")


@pytest.fixture
def open_terminal(tmp_path: Path) -> Iterator:
    opened: list[Terminal] = []

    def opening(**environ: str) -> Terminal:
        plain = {"COLORTERM": "truecolor", "COLORFGBG": "", **environ}
        opened.append(Terminal("--demo", cwd=tmp_path, **plain))
        return opened[-1]

    yield opening
    for each in opened:
        each.close()


def until(terminal: Terminal, holds) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, "\n".join(terminal.screen.display)
        terminal.read(0.1)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("cuts", [(), (1,), (2, 9), (24,)])
def test_what_the_terminal_says_of_its_ground_is_used_and_never_typed(open_terminal, late: bool, cuts):
    """TH-02: at once or long after the start, in one piece or several, between what the user types."""
    terminal = open_terminal()
    until(terminal, lambda: QUESTION in terminal.bytes)
    if late:
        terminal.wait_until_ready()
        until(terminal, lambda: DARK_ACCENT in terminal.bytes)
    terminal.write("abc")
    for begin, end in zip((0, *cuts), (*cuts, len(WHITE)), strict=True):
        terminal.write(WHITE[begin:end])
    terminal.write("def")
    terminal.wait_for("› abcdef")
    until(terminal, lambda: LIGHT_ACCENT in terminal.bytes)
    terminal.wait_for("demo/demo")
    assert not any("rgb" in line or "11;" in line for line in terminal.screen.display)
    terminal.write("\x03\x04")
    assert terminal.status() == 0


def test_a_terminal_that_says_nothing_is_not_waited_for(open_terminal):
    """TH-02"""
    terminal = open_terminal()
    terminal.wait_until_ready()
    until(terminal, lambda: DARK_ACCENT in terminal.bytes)
    terminal.write("typed at once")
    terminal.wait_for("› typed at once")


@pytest.mark.parametrize("answer", [b"", WHITE])
def test_the_escape_key_is_still_one_beside_a_reply(open_terminal, answer):
    """TH-02: an Escape before a reply is not swallowed by it."""
    terminal = open_terminal()
    terminal.wait_for("demo/demo")
    terminal.write("run `sleep 300`\r")
    terminal.wait_for("bash   sleep 300")  # before anything came of the prompt, Escape takes it back
    terminal.write(b"\x1b" + answer)
    terminal.wait_for("You stopped turn 1.")


@pytest.mark.parametrize(
    ("environ", "allowed", "shown"),
    [
        ({"TERM": "xterm-256color", "COLORTERM": ""}, MANY_COLOURS, True),
        ({"TERM": "screen", "COLORTERM": ""}, None, True),
        ({"TERM": "vt100", "COLORTERM": ""}, None, False),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, None, False),
        ({"TERM": "xterm-direct"}, TRUE_COLOUR, True),
    ],
)
def test_only_codes_that_the_terminal_knows(open_terminal, environ, allowed, shown):
    """TH-05: true colour, 256, sixteen or none; what is told stays told."""
    terminal = open_terminal(**environ)
    terminal.wait_for("demo/demo")
    terminal.write("run `false`\r")
    terminal.wait_for("exit 1")
    assert any("✗ bash" in line for line in terminal.screen.display)
    for kind in (TRUE_COLOUR, MANY_COLOURS):
        assert bool(kind.search(terminal.bytes)) is (kind is allowed)
    wire = re.sub(rb"[34]8;(?:2;\d+;\d+;\d+|5;\d+)", b"", terminal.bytes)
    basic = re.search(rb"\x1b\[(?:\d+;)*(?:3[0-7]|9[0-7])(?:;\d*)*m", wire)
    assert bool(basic) is (shown and allowed is None)


def test_the_mouse_can_be_given_back(open_terminal):
    terminal = open_terminal()
    terminal.wait_for("demo/demo")
    before = terminal.bytes.count(b"\x1b[?1000l")
    terminal.write("/mouse off\r")
    terminal.wait_for("/mouse on takes it back")
    assert terminal.bytes.count(b"\x1b[?1000l") == before + 1
    taken = terminal.bytes.count(b"\x1b[?1000h")
    terminal.write("/mouse on\r")
    until(terminal, lambda: terminal.bytes.count(b"\x1b[?1000h") == taken + 1)


@pytest.mark.parametrize("trusted", [True, False])
def test_a_folders_theme_is_used_only_if_it_is_trusted(open_terminal, tmp_path: Path, trusted: bool):
    data = json.loads((bundled_folder() / "nord.json").read_text())
    data["base"]["background"] = "#010203"
    (tmp_path / ".pi" / "themes").mkdir(parents=True)
    (tmp_path / ".pi" / "themes" / "mine.json").write_text(json.dumps(data))
    (tmp_path / ".pi" / "settings.json").write_text('{"theme": "mine"}')
    terminal = open_terminal()
    terminal.wait_for("run commands on this machine")
    assert b"48;2;1;2;3" not in terminal.bytes
    if trusted:
        terminal.write("\x1b[A\x1b[A")
        terminal.wait_for("› Trust this folder, this time only")
    terminal.press_until("\r", "? help")
    terminal.wait_for("demo/demo")
    if trusted:
        until(terminal, lambda: b"48;2;1;2;3" in terminal.bytes)
    assert (b"48;2;1;2;3" in terminal.bytes) is trusted
    assert (tmp_path / ".pi" / "settings.json").read_text() == '{"theme": "mine"}'


def test_a_broken_theme_is_told_and_the_usual_one_is_used(open_terminal, tmp_path: Path):
    (tmp_path / "agent" / "themes").mkdir(parents=True)
    (tmp_path / "agent" / "themes" / "mine.json").write_text('{"name": "mine"}')
    (tmp_path / "agent" / "settings.json").write_text('{"theme": "mine"}')
    terminal = open_terminal()
    terminal.wait_for("the theme is not used")
    until(
        terminal, lambda: "`colors.accent` is missing" in " ".join("".join(terminal.screen.display).split())
    )
