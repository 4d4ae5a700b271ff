"""`pi-trio chat` as its users have it: through a pipe, and on a terminal."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import Program, Stub


class Terminal:
    """The program on a pseudo terminal."""

    def __init__(self, program: Program, *arguments: str) -> None:
        self._master, slave = pty.openpty()
        self.seen = ""
        self.process = program.start(
            "chat", *arguments, stdin=slave, stdout=slave, stderr=slave, preexec_fn=_own_terminal
        )
        os.close(slave)

    def expect(self, text: str, *, seconds: float = 20) -> str:
        """Read until `text` was printed; what came up to its end."""
        deadline = time.monotonic() + seconds
        while text not in self.seen:
            ready, _, _ = select.select([self._master], [], [], max(deadline - time.monotonic(), 0))
            assert ready, f"no {text!r} in {self.seen!r}"
            try:
                data = os.read(self._master, 1 << 16)
            except OSError:  # Linux: the other side is closed
                data = b""
            assert data, f"no {text!r} in {self.seen!r}"
            self.seen += data.decode("utf-8", "replace").replace("\r\n", "\n")
        before, found, self.seen = self.seen.partition(text)
        return before + found

    def type(self, line: str) -> None:
        os.write(self._master, line.encode() + b"\n")

    def interrupt(self) -> None:
        os.write(self._master, b"\x03")

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(10)
        os.close(self._master)


def _own_terminal() -> None:
    """Make the terminal the one that Ctrl+C comes from."""
    import fcntl
    import termios

    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@pytest.fixture
def terminal(program: Program) -> Iterator[Terminal]:
    opened = Terminal(program)
    yield opened
    opened.close()


# ------------------------------------------------------------------ a pipe


def test_lines_from_a_pipe_are_answered_in_order(program: Program, stub: Stub) -> None:
    stub.says("First", " answer.")
    stub.says("Second answer.\n")
    done = program.run("chat", piped=b"one\n\n/name talk\ntwo\\\nand more")
    assert done.stdout == "First answer.\nThe session is called talk.\nSecond answer.\n"
    assert done.returncode == 0
    assert [request["messages"][-1]["content"] for request in stub.requests] == ["one", "two\nand more"]


def test_an_unknown_command_is_not_sent(program: Program, stub: Stub) -> None:
    done = program.run("chat", piped=b"/nosuch thing\n")
    assert done.stdout == "there is no command /nosuch: /help lists them\n"
    assert (done.returncode, stub.requests) == (1, [])


def test_tools_and_their_output_are_printed_as_lines(program: Program, stub: Stub) -> None:
    stub.calls(("bash", {"command": "printf 'a\\n\\033[2Jb\\n'"}), ("read", {"path": "none.txt"}))
    stub.says("Done.")
    done = program.run("chat", piped=b"go\n")
    assert "[bash] printf 'a\\n\\033[2Jb\\n'" in done.stdout
    assert "  a\n  ␛b\n" in done.stdout
    assert "[read] none.txt" in done.stdout
    assert "[read failed]\n" in done.stdout
    assert done.stdout.endswith("Done.\n")
    assert "\x1b" not in done.stdout


def test_an_error_is_told_and_the_next_line_goes_on(program: Program, stub: Stub) -> None:
    stub.refuses(400, "no such thing")
    stub.says("Fine.")
    done = program.run("chat", piped=b"one\n/fork 9\ntwo\n")
    assert "[error]" in done.stdout
    assert "no such thing" in done.stdout
    assert "Say which prompt by its number" in done.stdout
    assert done.stdout.endswith("Fine.\n")
    assert done.returncode == 0
    stub.refuses(400, "again")
    assert program.run("chat", piped=b"one\n").returncode == 1


def test_messages_of_the_command_line_come_first(program: Program, stub: Stub) -> None:
    stub.says("One.")
    stub.says("Two.")
    done = program.run("chat", "first", piped=b"second\n/quit\nnever\n")
    assert done.stdout == "One.\nTwo.\n"


def test_a_project_is_not_trusted_without_a_person(program: Program, stub: Stub) -> None:
    """SE-14, headless: ignored with a note, and with --approve used."""
    extension = program.project / ".pi" / "extensions" / "evil.py"
    extension.parent.mkdir(parents=True)
    extension.write_text("open('ran', 'w').close()\ndef extend(api): pass\n")
    stub.says("One.")
    done = program.run("chat", piped=b"hello\n")
    assert "not used, because this folder is not trusted yet" in done.stderr
    assert not (program.project / "ran").exists()
    stub.says("Two.")
    assert program.run("chat", "--approve", piped=b"hello\n").stderr == ""
    assert (program.project / "ran").exists()


def test_print_mode_uses_skills_and_templates(program: Program, stub: Stub) -> None:
    skill = program.agent_dir / "skills" / "pdf" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\ndescription: reads PDF\n---\nBe careful.\n")
    stub.says("Yes.")
    program.run("-p", "/skill:pdf page 3")
    messages = stub.requests[0]["messages"]
    assert "<name>pdf</name>" in str(messages[0])
    assert str(messages[-1]["content"]).endswith("Be careful.\n</skill>\n\npage 3")


# ------------------------------------------------------------------ a terminal


def test_ctrl_c_stops_the_turn_and_twice_ends_the_program(terminal: Terminal, stub: Stub) -> None:
    stub.calls(("bash", {"command": "sleep 60"}))
    terminal.expect("> ")
    terminal.type("go")
    terminal.expect("[bash] sleep 60")
    terminal.interrupt()
    terminal.expect("Stopped by the user")
    terminal.expect("> ")
    stub.says("Still here.")
    terminal.type("hello")
    terminal.expect("Still here.")
    terminal.expect("> ")
    terminal.interrupt()
    terminal.expect("Ctrl+C once more ends the program.")
    terminal.interrupt()
    assert terminal.process.wait(10) == 0


def test_ctrl_c_stops_a_compaction(program: Program, stub: Stub) -> None:
    program.write(
        "settings.json",
        {"defaultProvider": "stub", "defaultModel": "m", "compaction": {"keepRecentTokens": 1}},
    )
    terminal = Terminal(program)
    terminal.expect("> ")
    for text in ("One.", "Two."):
        stub.says(text)
        terminal.type("word " * 100)
        terminal.expect(text)
        terminal.expect("> ")
    stub.stays_silent()
    terminal.type("/compact")
    stub.silent.acquire(timeout=20)
    terminal.interrupt()
    terminal.expect("Stopped. Nothing has changed.")
    terminal.expect("> ")
    terminal.type("/quit")
    assert terminal.process.wait(10) == 0
    terminal.close()


def test_a_line_in_a_run_is_said_before_the_next_step(
    terminal: Terminal, stub: Stub, program: Program
) -> None:
    gate = program.project / "gate"
    stub.calls(("bash", {"command": "until [ -e gate ]; do sleep 0.01; done"}))
    stub.says("As you wish.")
    terminal.expect("> ")
    terminal.type("go")
    terminal.expect("[bash] until")
    terminal.type("and be brief")
    terminal.type("/session")
    terminal.expect("spent:")
    gate.touch()
    terminal.expect("As you wish.")
    said = [message["content"] for message in stub.requests[1]["messages"] if message["role"] == "user"]
    assert said == ["go", "and be brief"]


def test_a_person_is_asked_for_trust_and_only_once(program: Program, stub: Stub) -> None:
    """SE-14, wish 19: nothing before the yes; a change asks again."""
    template = program.project / ".pi" / "prompts" / "say.md"
    template.parent.mkdir(parents=True)
    template.write_text("Say $1")
    for answer, asked in (("5", True), ("1", True), (None, False), ("4", True), (None, False)):
        terminal = Terminal(program)
        if asked:
            terminal.expect(
                "brings things of its own" if answer != "4" else "has changed since you trusted it"
            )
            terminal.expect("Number (1-5): ")
            terminal.type("?")
            terminal.expect("Number (1-5): ")
            terminal.type(str(answer))
        terminal.expect("/help lists the commands.")
        terminal.expect("> ")
        terminal.type("/help")
        used = "/say: " in terminal.expect("/quit: end the program") + terminal.expect("> ")
        assert used == (answer == "1" or (answer is None and template.read_text() == "Say $1"))
        terminal.type("/quit")
        assert terminal.process.wait(10) == 0
        terminal.close()
        if answer is None:
            template.write_text("Say it: $1")


def test_the_end_of_input_ends_the_program(terminal: Terminal) -> None:
    terminal.expect("> ")
    os.write(terminal._master, b"\x04")
    assert terminal.process.wait(10) == 0


def test_a_reader_that_leaves_ends_it_quietly(program: Program, stub: Stub, tmp_path: Path) -> None:
    stub.says("x" * 200_000)
    with program.start("chat", stdin=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        process.stdout.close()
        process.stdin.write(b"hello\n")
        process.stdin.close()
        assert process.wait(20) == 141
        assert process.stderr is not None
        assert process.stderr.read() == b""


def test_a_call_is_asked_about_on_a_terminal(program: Program, stub: Stub) -> None:
    """HL-11: a person is asked, and what is no answer is no yes."""
    settings = json.loads((program.agent_dir / "settings.json").read_text())
    program.write("settings.json", {**settings, "gate": {"mode": "ask"}})
    stub.calls(("bash", {"command": "echo made > file"}))
    stub.says("done")
    terminal = Terminal(program)
    try:
        terminal.expect("> ")
        terminal.type("do it")
        terminal.expect("echo made > file")
        terminal.expect("May it run?")
        terminal.type("perhaps")
        terminal.expect("May it run?")
        assert not (program.project / "file").exists()
        terminal.type("y")
        terminal.expect("done")
        assert (program.project / "file").read_text() == "made\n"
    finally:
        terminal.close()
