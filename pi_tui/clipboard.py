"""Putting text on the clipboard: by a tool of the system, or through the terminal, or into a file.

A terminal takes it in an OSC 52 sequence, through tmux when that stands between; whether it did
is not told. Only a key of the user leads here, never a text.
"""

from __future__ import annotations

import asyncio
import base64
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from textual.app import App

__all__ = ["copy", "native_tool", "sequence"]

MOST_SEQUENCE = 74_000
"""Bytes of base64 that terminals take in one sequence."""

PATIENCE = 2.0
"""Seconds that a tool may take."""


async def copy(text: str, app: App[Any]) -> str:
    """Copy, and give a sentence that says how it went."""
    size = f"{len(text):,} characters"
    tool = native_tool(os.environ, sys.platform)
    if tool is not None and await _feed(tool, text):
        return f"copied {size} with {tool[0]}"
    written = sequence(text, os.environ)
    if written is not None and app._driver is not None:
        app._driver.write(written)
        return f"copied {size} through the terminal"
    return f"too long for the terminal: {size} are in {await asyncio.to_thread(_file, text)}"


def native_tool(environment: Mapping[str, str], platform: str) -> Sequence[str] | None:
    """The command that takes what is to be copied, if there is one; over SSH its screen is another's."""
    if environment.get("SSH_CONNECTION") or environment.get("SSH_TTY"):
        return None
    tools: list[tuple[str, ...]] = [("pbcopy",)] if platform == "darwin" else []
    if environment.get("WAYLAND_DISPLAY"):
        tools.append(("wl-copy",))
    if environment.get("DISPLAY"):
        tools += [("xclip", "-selection", "clipboard"), ("xsel", "--clipboard", "--input")]
    return next((tool for tool in tools if shutil.which(tool[0])), None)


def sequence(text: str, environment: Mapping[str, str]) -> str | None:
    """What a terminal takes for a copy; None if it is too long for one."""
    data = base64.b64encode(text.encode("utf-8", "replace")).decode()
    if len(data) > MOST_SEQUENCE:
        return None
    plain = f"\x1b]52;c;{data}\x07"
    return f"\x1bPtmux;\x1b{plain}\x1b\\" if environment.get("TMUX") else plain


async def _feed(tool: Sequence[str], text: str) -> bool:
    """Whether the tool took it."""
    try:
        process = await asyncio.create_subprocess_exec(
            *tool,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError:
        return False
    try:
        async with asyncio.timeout(PATIENCE):
            await process.communicate(text.encode("utf-8", "replace"))
    except TimeoutError:
        process.kill()
        await process.wait()
        return False
    return process.returncode == 0


def _file(text: str) -> str:
    descriptor, path = tempfile.mkstemp(prefix="pi-trio-copy-", suffix=".txt")  # readable by its owner alone
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
        file.write(text)
    return path
