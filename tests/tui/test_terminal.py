"""The real program in a real pseudo terminal: first frame, echo, and a terminal left as it was."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from blocking_tool import EXTENSION
from terminal_program import PATIENCE, RESET, Terminal

CONTROL = {"ctrl+z": "\x1a"}
"""What some keys send."""


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    running = Terminal("--demo", cwd=tmp_path)
    yield running
    running.close()


def test_keys_are_echoed_and_a_prompt_is_answered(terminal: Terminal, tmp_path: Path):
    terminal.wait_until_ready()
    terminal.write("run `echo from-$((40+2))`")
    terminal.wait_for("› run `echo from-$((40+2))`")
    terminal.write("\r")
    terminal.wait_for("from-42")
    terminal.wait_for("1 tool")
    terminal.write("\x04")
    assert terminal.status() == 0
    assert b"pi-tui --session " in terminal.bytes
    assert all(reset in terminal.bytes for reset in RESET)
    assert list(tmp_path.rglob("*.jsonl"))


def test_bytes_that_are_no_text_are_marked_and_nothing_ends(terminal: Terminal):
    terminal.wait_until_ready()
    terminal.write(b"caf\xe9 and \xff\xfe more")
    terminal.wait_for("› caf\ufffd and \ufffd\ufffd more")
    terminal.write("\x03\x04")
    assert terminal.status() == 0


def test_a_program_that_breaks_says_so_and_fails(tmp_path: Path):
    """Whatever breaks the thread that reads the keys: a traceback, and a status that tells."""
    breaks = """
from pi_tui import terminal
def feed(self, data):
    raise RuntimeError("no keys today")
terminal.KeyParser.feed = feed"""
    terminal = Terminal("--demo", cwd=tmp_path, before=breaks)
    terminal.wait_until_ready()
    terminal.write("x")
    assert terminal.status() == 1
    assert b"no keys today" in terminal.bytes
    assert all(reset in terminal.bytes for reset in RESET)
    terminal.close()


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)]
)
def test_a_signal_restores_the_terminal_and_stops_the_children(terminal: Terminal, number, status):
    """TV-05: each signal ends the program properly, and its tools with it."""
    terminal.wait_for("demo/demo")
    terminal.write("run `echo pid=$$=; exec sleep 300`\r")
    child = terminal.wait_for_number("pid=")
    os.kill(terminal.pid, number)
    assert terminal.status() == status
    assert all(reset in terminal.bytes for reset in RESET)
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_the_first_of_several_signals_is_told(terminal: Terminal):
    """TV-05: closing a terminal sends more than one, and none breaks into the end."""
    terminal.wait_for("demo/demo")
    os.kill(terminal.pid, signal.SIGTERM)
    while RESET[0] not in terminal.bytes:
        assert terminal.read(PATIENCE)
    while os.waitid(os.P_PID, terminal.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        os.kill(terminal.pid, signal.SIGINT)
        terminal.read(0.001)
    assert terminal.status() == 143
    assert all(reset in terminal.bytes for reset in RESET)


def test_a_tool_that_blocks_in_a_thread_holds_neither_the_screen_nor_its_end(tmp_path: Path):
    """AB-03: Escape leaves it behind, what is sent next is taken, and the program ends."""
    (tmp_path / "blocking.py").write_text(EXTENSION)
    terminal = Terminal("--demo", "-e", "blocking.py", cwd=tmp_path)
    terminal.wait_until_ready()
    terminal.write("run `sleep 300`\r")
    terminal.wait_for("blocked from now on")
    terminal.write("\x1b")
    terminal.wait_for("You stopped turn 1.")
    terminal.write("tell me more\r")
    terminal.wait_for("I am the demo model")
    os.kill(terminal.pid, signal.SIGTERM)
    assert terminal.status() == 143
    assert b"did not stop: bash" in terminal.bytes
    terminal.close()


def test_a_terminal_that_goes_away_ends_the_program(terminal: Terminal):
    """TV-05: nothing is left running when the window is closed in the middle of a turn."""
    terminal.wait_for("demo/demo")
    terminal.write("run `sleep 300`\r")
    terminal.wait_for("⠋")
    os.close(terminal.fd)
    _, status = os.waitpid(terminal.pid, 0)
    terminal.pid = 0
    terminal.fd = os.open(os.devnull, os.O_RDONLY)
    assert os.waitstatus_to_exitcode(status) == 129


def test_a_call_waits_for_a_yes(tmp_path: Path):
    """The gate asks on the screen, and what was allowed runs."""
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent" / "settings.json").write_text('{"gate": {"mode": "ask"}}')
    running = Terminal("--demo", cwd=tmp_path)
    try:
        running.wait_for("are asked about first")
        running.write("run `echo from-$((40+2))`\r")
        running.wait_for("may bash run?")
        assert not any("from-42" in line for line in running.screen.display)
        running.press_until("y", "from-42")
    finally:
        running.close()


def test_escape_stops_a_call_and_an_empty_enter_goes_on(terminal: Terminal):
    terminal.wait_until_ready()
    terminal.write("run `echo pid=$$=; exec sleep 300`\r")
    child = terminal.wait_for_number("pid=")
    terminal.write("\x1b")
    terminal.wait_for("You stopped turn 1.")
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
    terminal.wait_for("empty enter goes on")
    terminal.write("\r")
    terminal.wait_for("The tools have answered.")


def test_commands_and_the_shell_on_the_real_runtime(terminal: Terminal):
    terminal.wait_until_ready()
    terminal.write("!echo shell-$((40+2))\r")
    terminal.wait_for("shell-42")
    terminal.write("/session\r")
    terminal.wait_for("model: demo/demo")
    terminal.write("/quit\r")
    assert terminal.status() == 0


def test_a_folder_that_brings_something_along_is_asked_about(tmp_path: Path):
    skill = tmp_path / ".pi" / "skills" / "greet"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: greet\ndescription: says hello\n---\nhello\n")
    running = Terminal("--demo", cwd=tmp_path)
    try:
        running.wait_for("run commands on this machine")
        running.write("test that\x1b[A\x1b[A")  # letters choose nothing
        running.wait_for("› Trust this folder, this time only")
        running.press_until("\r", "? help")
        running.write("/greet")
        running.wait_for("says hello")
        assert not (tmp_path / "agent" / "trust.json").exists()
    finally:
        running.close()


def test_without_colour(tmp_path: Path):
    """TH-01: NO_COLOR is respected, and nothing is told by colour alone."""
    running = Terminal("--demo", cwd=tmp_path, NO_COLOR="1")
    try:
        running.wait_for("demo/demo")
        running.write("run `false`\r")
        running.wait_for("exit 1")
        assert b"\x1b[38;2;" not in running.bytes
        assert any("✗ bash" in line for line in running.screen.display)
    finally:
        running.close()


def test_a_session_that_is_not_there_is_one_clear_line(tmp_path: Path):
    running = Terminal("--demo", "--session", "nowhere", cwd=tmp_path)
    try:
        assert running.status() == 2
        assert b"pi-tui: " in running.bytes
        assert b"Traceback" not in running.bytes
        assert RESET[0] in running.bytes
    finally:
        running.close()


@pytest.mark.key("app.suspend")
def test_ctrl_z_gives_the_terminal_back_until_the_program_goes_on(terminal: Terminal):
    terminal.wait_for("demo/demo")
    resets = terminal.bytes.count(RESET[0])
    terminal.write(CONTROL["ctrl+z"])
    end = time.monotonic() + PATIENCE
    stopped = 0
    while not stopped:
        assert time.monotonic() < end
        terminal.read(0.05)
        stopped, status = os.waitpid(terminal.pid, os.WNOHANG | os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    while terminal.read(0.05):
        pass
    assert terminal.bytes.count(RESET[0]) == resets + 1
    os.kill(terminal.pid, signal.SIGCONT)
    terminal.write("again")
    terminal.wait_for("› again")


def test_what_tools_print_never_reaches_the_terminal_as_it_is(terminal: Terminal):
    """SE-01: the bytes on the wire hold none of the sequences that a tool printed."""
    terminal.wait_for("demo/demo")
    terminal.write(r"run `printf '\033]52;c;ZXZpbA==\a\033[2Jx\302\2332J ")
    terminal.write("[red]shown[/] [@click=app.quit]q[/]\\n'; false`\r")
    terminal.wait_for("exit 1")
    terminal.wait_for("[red]shown[/] [@click=app.quit]q[/]")
    wire = re.sub(
        "\x1b\\]22;[a-z]+\x07", "", terminal.bytes.decode("utf-8", "replace")
    )  # Textual's pointer shapes
    for sequence in ("\x1b]52", "\x1b[2J", "\x9b", "\x07"):
        assert sequence not in wire


def test_without_a_terminal_the_other_ways_are_named():
    code = "import sys; from pi_tui.main import main; sys.exit(main(['--demo']))"
    done = subprocess.run(
        [sys.executable, "-c", code], stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"pi-trio chat" in done.stderr


def test_a_terminal_that_can_do_nothing_gets_one_line(tmp_path: Path):
    running = Terminal("--demo", cwd=tmp_path, TERM="dumb")
    assert running.status() == 2
    assert b"pi-trio chat" in running.bytes
    assert b"\x1b" not in running.bytes
    running.close()


def test_an_awkward_folder_does_not_hold_up_the_start(tmp_path: Path):
    """PF-05: many files, links in circles, a huge file, and context files that never end."""
    for number in range(2000):
        (tmp_path / f"file-{number}.txt").touch()
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "into").symlink_to(".")
    with (tmp_path / "huge.bin").open("wb") as file:
        file.truncate(20_000_000_000)
    os.mkfifo(tmp_path / "AGENTS.md")
    running = Terminal("--demo", cwd=tmp_path)
    try:
        running.wait_until_ready()
        running.write("usable")
        running.wait_for("› usable")
    finally:
        running.close()
