"""How the programs begin."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys

import pytest

from pi_trio.cli.start import command_line, run_program


@pytest.mark.parametrize("already", [False, True])
def test_an_interrupt_and_one_more_end_it_without_a_word(
    monkeypatch: pytest.MonkeyPatch, already: bool
) -> None:
    chosen = []

    def choose(number: int, handler: object) -> None:
        chosen.append((number, handler))
        if already and len(chosen) == 1:
            raise KeyboardInterrupt

    def work() -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(signal, "signal", choose)
    assert run_program(work) == 130
    assert chosen[-1] == (signal.SIGINT, signal.SIG_IGN)


def test_what_is_printed_is_utf_8_in_every_locale(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    assert run_program(lambda: print("grüße \ud800", flush=True) or 0) == 0
    assert written.getvalue() == b"gr\xc3\xbc\xc3\x9fe ?\n"


_ASCII = {"LC_ALL": "POSIX", "PYTHONUTF8": "0"}


@pytest.mark.parametrize("module", ["pi_trio", "pi_tui"])
def test_arguments_are_utf_8_in_every_locale(module: str) -> None:
    command = [sys.executable, "-m", module, "--näh", b"--\xe4\xf6"]
    done = subprocess.run(command, env=os.environ | _ASCII, capture_output=True, timeout=50)
    assert done.returncode == 2
    assert "unrecognized arguments: --näh --" in done.stderr.decode()


@pytest.mark.parametrize(
    ("encoding", "argument", "anew"),
    [
        ("utf-8", b"\xc3\xa4", False),
        ("ascii", b"\xe4", True),
        ("latin-1", b"\xc3\xa4", True),
        ("latin-1", b"\xe4", False),
    ],
)
def test_it_starts_anew_where_python_misreads_arguments(
    encoding: str, argument: bytes, anew: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was typed in a Latin-1 terminal is read well there."""
    started = []
    monkeypatch.setattr(sys, "getfilesystemencoding", lambda: encoding)
    monkeypatch.setattr(os, "fsencode", lambda text: text.encode(encoding, "surrogateescape"))
    monkeypatch.setattr(os, "execv", lambda program, arguments: started.append(arguments))
    monkeypatch.setattr(sys, "argv", ["pi-trio", argument.decode(encoding, "surrogateescape")])
    monkeypatch.setattr(sys, "orig_argv", ["python", "pi-trio", "x"])
    assert command_line(None) == sys.argv[1:]
    assert started == ([[sys.executable, "-X", "utf8", "pi-trio", "x"]] if anew else [])
    assert command_line(["given"]) == ["given"]
    assert len(started) == anew


@pytest.mark.parametrize("closed", ["<&-", "2>&-", "<&- 2>&-"])
def test_no_file_becomes_a_stream_that_was_closed(closed: str) -> None:
    opened = "import os; from pi_trio.cli.start import run_program; "
    opened += "run_program(lambda: os._exit(os.open('/dev/null', os.O_RDONLY)))"
    shell = ["sh", "-c", f'exec "$@" {closed}', "sh"]
    done = subprocess.run([*shell, sys.executable, "-c", opened], check=False, timeout=50)
    assert done.returncode > 2
