"""Which mode the program chooses."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from types import SimpleNamespace

import pytest

from pi_trio.cli import main as module
from pi_trio.cli.main import main

_TERMINAL = SimpleNamespace(isatty=lambda: True)


@pytest.fixture
def on_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        module, "sys", SimpleNamespace(**{**vars(sys), "stdin": _TERMINAL, "stdout": _TERMINAL})
    )


@pytest.mark.usefixtures("on_terminal")
def test_on_a_terminal_the_screen_gets_the_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    given = []

    def screen(arguments: list[str]) -> int:
        given.append(arguments)
        return 7

    program = SimpleNamespace(load=lambda: screen)
    monkeypatch.setattr(metadata, "entry_points", lambda **_: [program])
    assert main(["--demo", "hello"]) == 7
    assert given == [["--demo", "hello"]]


@pytest.mark.usefixtures("on_terminal")
def test_without_a_screen_it_says_how_to_get_one(
    monkeypatch: pytest.MonkeyPatch, mistake: Callable[..., str]
) -> None:
    monkeypatch.setattr(metadata, "entry_points", lambda **_: [])
    assert "the full screen (pi-tui) is not installed" in mistake()


@pytest.mark.parametrize(
    ("word", "meant"), [("sesions", "sessions"), ("model", "models"), ("docter", "doctor")]
)
def test_a_misspelt_command_is_no_prompt(word: str, meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([word, "list"])
    assert ended.value.code == 2
    assert f"there is no command '{word}'; did you mean {meant}?" in capsys.readouterr().err


@pytest.mark.usefixtures("on_terminal")
@pytest.mark.parametrize(
    "arguments", [["that"], ["patch"], ["sesions are odd"], ["--", "sesions"], ["hello"]]
)
def test_other_words_are_prompts(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "entry_points", lambda **_: [SimpleNamespace(load=lambda: len)])
    assert main(arguments) == len(arguments)


@pytest.mark.parametrize(("module", "name"), [("pi_trio", "pi-trio"), ("pi_tui", "pi-tui")])
def test_a_package_is_its_program(module: str, name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", module, "--version"], capture_output=True, text=True, timeout=50
    )
    assert (done.returncode, done.stdout) == (0, f"{name} {metadata.version('pi-trio')}\n")


def test_on_windows_it_names_wsl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(SystemExit, match="WSL"):
        main([])
