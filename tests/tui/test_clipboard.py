"""Where a copy goes."""

from __future__ import annotations

import base64
import stat
from pathlib import Path

import pytest

from pi_tui.clipboard import MOST_ENCODED, Clipboard, osc52, tools

pytestmark = pytest.mark.asyncio

X = {"DISPLAY": ":0"}


@pytest.mark.parametrize(
    ("environ", "platform", "names"),
    [
        (X, "linux", ["xclip", "xsel"]),
        ({**X, "WAYLAND_DISPLAY": "w"}, "linux", ["wl-copy", "xclip", "xsel"]),
        ({}, "darwin", ["pbcopy"]),
        ({}, "linux", []),
        ({**X, "SSH_CONNECTION": "x"}, "linux", []),
    ],
)
async def test_tools_of_the_users_own_screen_come_first(environ, platform, names):
    assert [command[0] for command in tools(environ, platform)] == names


async def test_the_next_tool_is_taken_where_one_is_missing_or_fails(tmp_path: Path, monkeypatch):
    kept = tmp_path / "kept"
    for name, script in (("wl-copy", "exit 1"), ("xsel", f'/bin/cat > "{kept}"')):
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", str(tmp_path))
    sent: list[str] = []
    environ = {**X, "WAYLAND_DISPLAY": "w", "PATH": str(tmp_path)}
    assert await Clipboard(sent.append, environ, "linux").copy("words") == "copied with xsel"
    assert (kept.read_text(), sent) == ("words", [])


async def test_a_terminal_is_told_in_one_sequence_through_tmux_too():
    """Nothing of the text is in it as it stands."""
    plain = osc52("a\x1b[2J\x07", {})
    assert base64.b64decode(plain.removeprefix("\x1b]52;c;").removesuffix("\x07")) == b"a\x1b[2J\x07"
    wrapped = "\x1bPtmux;" + osc52("x", {}).replace("\x1b", "\x1b\x1b") + "\x1b\\"
    assert osc52("x", {"TMUX": "1"}).endswith(wrapped)
    assert osc52("x", {"TERM": "linux"}) == ""


async def test_what_is_too_long_for_a_terminal_goes_into_a_private_file():
    sent: list[str] = []
    told = await Clipboard(sent.append, {}, "linux").copy("x" * MOST_ENCODED + "\ud800")
    path = Path(told.removeprefix("copied into "))
    assert (stat.S_IMODE(path.stat().st_mode), sent) == (0o600, [])
    assert path.stat().st_size == MOST_ENCODED + 1
    path.unlink()
