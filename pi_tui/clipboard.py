"""Copying, by the best way that there is: a tool of the desktop, the terminal, or a file.

A tool knows whether it worked. A terminal that is sent OSC 52 does not answer, so what is said
afterwards names the way that was taken, and where nothing else is left a file is written.
"""

from __future__ import annotations

import asyncio
import base64
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from shutil import which

from attrs import frozen

__all__ = ["Clipboard", "osc52", "tools"]

TOOL_SECONDS = 2.0
"""A tool that takes longer is given up."""

MOST_ENCODED = 74_994
"""Characters of OSC 52 that terminals take, as encoded; of more, some take nothing."""

_MUTE_TERMINALS = frozenset({"Apple_Terminal"})
"""Values of TERM_PROGRAM whose terminals do not know OSC 52."""


def tools(environ: Mapping[str, str], platform: str) -> list[list[str]]:
    """The commands that would copy their input, best first.

    Over SSH a desktop's would copy on the wrong machine. tmux keeps it in a buffer of its own, and
    hands it on to the terminal around it where that is not forbidden. A browser copies by itself.
    """
    if environ.get("TERM_PROGRAM") == "textual":
        return []
    tmux = [["tmux", "load-buffer", "-w", "-"]] if environ.get("TMUX") else []
    if environ.get("SSH_CONNECTION") or environ.get("SSH_TTY"):
        return tmux
    if platform == "darwin":
        return [["pbcopy"], *tmux]
    wayland = [["wl-copy"]] if environ.get("WAYLAND_DISPLAY") else []
    x11 = [["xclip", "-selection", "clipboard"], ["xsel", "--clipboard", "--input"]]
    return wayland + (x11 if environ.get("DISPLAY") else []) + tmux


def osc52(text: str, environ: Mapping[str, str]) -> str:
    """The sequence that has the terminal copy, through tmux too. Empty if it is known not to work."""
    encoded = base64.b64encode(text.encode("utf-8", "replace")).decode()
    terminal = environ.get("TERM", "")
    if len(encoded) > MOST_ENCODED or environ.get("TERM_PROGRAM") in _MUTE_TERMINALS or terminal == "linux":
        return ""
    sequence = f"\x1b]52;c;{encoded}\x07"
    if "TMUX" not in environ:
        return sequence
    # Depending on its settings, tmux takes the first, or hands the second on as it is.
    return sequence + "\x1bPtmux;" + sequence.replace("\x1b", "\x1b\x1b") + "\x1b\\"


@frozen
class Clipboard:
    """`send` writes to the terminal."""

    send: Callable[[str], object]
    environ: Mapping[str, str] = os.environ
    platform: str = sys.platform

    async def copy(self, text: str) -> str:
        """Copy a text, and say how. Raises `OSError` if not even a file could be written."""
        for command in tools(self.environ, self.platform):
            program = which(command[0], path=self.environ.get("PATH"))
            if program and await _fed([program, *command[1:]], text):
                return f"copied with {command[0]}"
        if sequence := osc52(text, self.environ):
            self.send(sequence)
            return "copied through the terminal"
        return f"copied into {_kept(text)}"


async def _fed(command: list[str], text: str) -> bool:
    """Whether a tool took the text. Some go on in the background, and must not hold an output of ours."""
    nowhere = asyncio.subprocess.DEVNULL
    try:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.PIPE, stdout=nowhere, stderr=nowhere
        )
    except OSError:
        return False
    try:
        async with asyncio.timeout(TOOL_SECONDS):
            await process.communicate(text.encode("utf-8", "replace"))
    except TimeoutError:
        process.kill()
        await process.wait()
    return process.returncode == 0


def _kept(text: str) -> str:
    """A new file with the text, for its owner alone."""
    number, path = tempfile.mkstemp(prefix="pi-tui-copy-", suffix=".txt")
    with os.fdopen(number, "w", encoding="utf-8", errors="replace") as file:
        file.write(text)
    return path
