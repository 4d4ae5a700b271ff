"""Where a copy goes."""

from __future__ import annotations

import base64
import stat
from pathlib import Path

import pytest

from pi_tui import clipboard
from pi_tui.clipboard import MOST_SEQUENCE, native_tool, sequence


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("xclip", "xsel", "wl-copy", "pbcopy"):
        path = tmp_path / name
        path.write_text("#!/bin/sh\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return tmp_path


@pytest.mark.parametrize(
    ("environment", "platform", "tool"),
    [
        ({"DISPLAY": ":0"}, "linux", "xclip"),
        ({"DISPLAY": ":0", "WAYLAND_DISPLAY": "w"}, "linux", "wl-copy"),
        ({}, "darwin", "pbcopy"),
        ({}, "linux", None),
        ({"DISPLAY": ":0", "SSH_CONNECTION": "x"}, "linux", None),
    ],
)
def test_a_tool_of_the_users_own_screen_comes_first(tools, environment, platform, tool):
    found = native_tool(environment, platform)
    assert (found[0] if found else None) == tool


def test_the_next_tool_is_taken_where_one_is_missing(tools):
    (tools / "xclip").unlink()
    assert native_tool({"DISPLAY": ":0"}, "linux") == ("xsel", "--clipboard", "--input")


def test_a_terminal_is_told_in_one_sequence_through_tmux_too():
    """Nothing of the text is in it as it stands."""
    plain = sequence("a\x1b[2J\x07", {})
    assert plain is not None
    assert base64.b64decode(plain.removeprefix("\x1b]52;c;").removesuffix("\x07")) == b"a\x1b[2J\x07"
    assert sequence("x", {"TMUX": "1"}) == f"\x1bPtmux;\x1b{sequence('x', {})}\x1b\\"


def test_what_is_too_long_for_a_terminal_goes_into_a_private_file():
    assert sequence("x" * MOST_SEQUENCE, {}) is None
    path = Path(clipboard._file("lone \ud800 surrogate"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text().startswith("lone ")
    path.unlink()
