"""Copying: which way is taken, and that what is said about it is true."""

from __future__ import annotations

import base64
import stat
from pathlib import Path

import pytest
from fake_runtime import conversation

from pi_tui.clipboard import MOST_ENCODED, Clipboard, osc52, tools

pytestmark = pytest.mark.asyncio

XCLIP = ["xclip", "-selection", "clipboard"]
XSEL = ["xsel", "--clipboard", "--input"]
TMUX = ["tmux", "load-buffer", "-w", "-"]


@pytest.mark.parametrize(
    ("environ", "platform", "commands"),
    [
        ({}, "linux", []),
        ({"DISPLAY": ":0"}, "linux", [XCLIP, XSEL]),
        ({"DISPLAY": ":0", "WAYLAND_DISPLAY": "w"}, "linux", [["wl-copy"], XCLIP, XSEL]),
        ({"DISPLAY": ":0", "SSH_TTY": "/dev/pts/1"}, "linux", []),
        ({"SSH_CONNECTION": "x", "TMUX": "t"}, "darwin", [TMUX]),
        ({}, "darwin", [["pbcopy"]]),
        ({"TERM_PROGRAM": "textual", "DISPLAY": ":0", "TMUX": "t"}, "linux", []),  # a browser
    ],
)
async def test_the_tools_by_where_one_sits(environ, platform, commands):
    assert tools(environ, platform) == commands


async def test_the_terminal_is_asked_plainly_and_through_tmux():
    encoded = base64.b64encode("é\n".encode()).decode()
    assert osc52("é\n", {"TERM": "xterm"}) == f"\x1b]52;c;{encoded}\x07"
    wrapped = osc52("é\n", {"TERM": "screen", "TMUX": "x"})
    assert wrapped.endswith(f"\x1bPtmux;\x1b\x1b]52;c;{encoded}\x07\x1b\\")
    assert osc52("x" * MOST_ENCODED, {}) == ""
    assert osc52("x", {"TERM": "linux"}) == ""
    assert osc52("x", {"TERM_PROGRAM": "Apple_Terminal"}) == ""


def tool(folder: Path, name: str, script: str) -> None:
    """A program of this name."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


async def test_a_tool_that_works_is_named_and_one_that_fails_is_passed_over(tmp_path: Path):
    sent: list[str] = []
    environ = {"DISPLAY": ":0", "PATH": str(tmp_path)}
    clipboard = Clipboard(sent.append, environ, "linux")
    tool(tmp_path, "xclip", "exit 1")
    tool(tmp_path, "xsel", f"/bin/cat > {tmp_path}/kept")
    assert await clipboard.copy("two\nlines") == "copied with xsel"
    assert (tmp_path / "kept").read_text() == "two\nlines"
    assert sent == []
    (tmp_path / "xsel").unlink()
    assert await clipboard.copy("text") == "copied through the terminal"
    assert sent == [osc52("text", environ)]


async def test_where_nothing_else_is_left_a_private_file_is_written(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    said = await Clipboard(lambda text: None, {"TERM": "linux", "PATH": ""}, "linux").copy("all of it\ud800")
    path = Path(said.removeprefix("copied into "))
    assert path.read_text() == "all of it?"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.parent == tmp_path


async def test_y_says_how_it_was_copied(open_screen, monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "TMUX", "SSH_TTY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    async with open_screen(entries=conversation(1)) as screen:
        written: list[str] = []
        monkeypatch.setattr(screen.main.clipping, "_write", written.append)
        await screen.press("alt+up", "y")
        await screen.until(lambda: "1 line copied through the terminal" in screen.status)
        assert written == [osc52("answer 0", {})]
