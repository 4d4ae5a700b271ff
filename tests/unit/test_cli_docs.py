"""The pages name every flag that there is, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pi_trio.cli.main import main

ROOT = Path(__file__).parents[2]
PROGRAMS = (
    "",
    "attach",
    "auth",
    "auth login",
    "auth logout",
    "auth check",
    "auth import-pi",
    "batch",
    "chat",
    "doctor",
    "import-pi",
    "models",
    "models list",
    "models search",
    "models refresh",
    "serve",
    "sessions",
    "sessions list",
    "sessions search",
    "sessions show",
    "sessions rename",
    "sessions delete",
    "sessions fork",
    "sessions export",
    "sessions import-pi",
    "sessions check",
)
OTHERS = {"--ctx-size", "--serve", "--theme"}
"""Flags of other programs that the pages speak of, pi-tui among them."""

_FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def help_of(program: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        main([*program.split(), "--help"])
    assert ended.value.code == 0
    return capsys.readouterr().out


def test_every_flag_is_documented_and_every_documented_flag_exists(
    capsys: pytest.CaptureFixture[str],
) -> None:
    there = {flag for program in PROGRAMS for flag in _FLAG.findall(help_of(program, capsys))}
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    told = {
        flag
        for page in pages
        if page.name != "benchmarks.md"  # its flags are those of the benchmarks
        for flag in _FLAG.findall(page.read_text("utf-8"))
    }
    assert there - told == set()
    assert told - there == OTHERS


def test_every_help_begins_with_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    for program in PROGRAMS:
        usage, *rest = help_of(program, capsys).split("\n\n")
        assert usage.startswith(f"usage: pi-trio {program}".rstrip())
        assert re.fullmatch(r"[A-Z].*\.", rest[0], re.S), rest[0]
