"""How the programs begin."""

from __future__ import annotations

import io
import signal
import subprocess
import sys

import pytest

from pi_trio.cli.start import run_program


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


@pytest.mark.parametrize("closed", ["<&-", "2>&-", "<&- 2>&-"])
def test_no_file_becomes_a_stream_that_was_closed(closed: str) -> None:
    opened = "import os; from pi_trio.cli.start import run_program; "
    opened += "run_program(lambda: os._exit(os.open('/dev/null', os.O_RDONLY)))"
    shell = ["sh", "-c", f'exec "$@" {closed}', "sh"]
    done = subprocess.run([*shell, sys.executable, "-c", opened], check=False, timeout=50)
    assert done.returncode > 2
