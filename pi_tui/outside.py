"""The user's own editor, on the prompt: it has the terminal to itself, and the agent goes on meanwhile."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pi_trio.errors import StorageError, UsageError
from pi_trio.text import without_controls

if TYPE_CHECKING:
    from pi_tui.app import PiApp
    from pi_tui.widgets.prompt import Prompt

__all__ = ["edit_outside", "editor_command"]

_USUAL = ("nano", "vim", "vi")


def editor_command(chosen: str | None, environ: Mapping[str, str] = os.environ) -> list[str]:
    """The chosen editor, that of the environment, or a usual one. Raises `UsageError` if there is none."""
    wanted = chosen or environ.get("VISUAL") or environ.get("EDITOR")
    try:
        command = shlex.split(wanted) if wanted else [name for name in _USUAL if shutil.which(name)][:1]
    except ValueError as error:
        raise UsageError(f"the editor {wanted!r} is no command: {error}") from None
    if not command:
        raise UsageError("no editor was found: set externalEditor in settings.json, or $EDITOR")
    return command


async def edit_outside(app: PiApp, prompt: Prompt, chosen: str | None) -> None:
    """Have what is written edited, pastes unfolded. An editor that fails leaves it as it was.

    Raises `UsageError`, and `StorageError` if there is no room for a file. Cancelling ends the editor.
    """
    if app.is_web:
        raise UsageError("an editor needs a terminal, and this is a browser")
    command = editor_command(chosen)
    before = prompt.chips.unfold(prompt.text)
    with _file_of(before) as path:
        status = await _run(app, [*command, str(path)])
        after = path.read_text("utf-8", errors="replace") if path.exists() else before
    if status:
        raise UsageError(f"{command[0]} ended with status {status}: the prompt is as it was")
    after = without_controls(after).removesuffix("\n")
    if after != before:
        prompt.bring(after)


async def _run(app: PiApp, command: list[str]) -> int:
    """Lend the terminal to a command, and give its status."""
    failure: OSError | None = None
    status = 0
    with app.batch_update(), app.lending_terminal():  # an error in there would leave the screen away
        try:
            process = await asyncio.create_subprocess_exec(*command)
        except OSError as error:
            failure = error
        else:
            status = await _ended(process)
    app.refresh(repaint=True, layout=True)
    if failure is not None:
        raise UsageError(f"{command[0]} cannot be started: {failure.strerror}")
    return status


async def _ended(process: asyncio.subprocess.Process) -> int:
    try:
        return await process.wait()
    except asyncio.CancelledError:
        with suppress(ProcessLookupError):
            process.terminate()
        await asyncio.shield(process.wait())
        raise


@contextmanager
def _file_of(text: str) -> Iterator[Path]:
    """A private file with a text in it, for the block."""
    try:
        with tempfile.NamedTemporaryFile(suffix=".md", prefix="pi-prompt-", delete=False) as file:
            path = Path(file.name)
            file.write(text.encode("utf-8", "replace"))
    except OSError as error:
        raise StorageError(f"there is no room for the prompt: {error.strerror}") from error
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)
