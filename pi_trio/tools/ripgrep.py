"""Running ripgrep, which comes as a package with its binary."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from shutil import which
from typing import cast

import trio
from trio.abc import ReceiveStream

from pi_trio.nursery import plain_nursery
from pi_trio.tools.failure import ToolError, explain

__all__ = ["ripgrep_binary", "run_ripgrep"]

_CHUNK = 65_536
_COMPLAINT_BYTES = 4096
_NOTHING_FOUND = 1


class _Search:
    """A running ripgrep."""

    def __init__(self, process: trio.Process) -> None:
        self._process = process
        self._output = cast("ReceiveStream", process.stdout)  # both were asked for
        self._errors = cast("ReceiveStream", process.stderr)
        self._complaint = bytearray()
        self._heard = trio.Event()

    async def receive(self) -> bytes:
        if chunk := await self._output.receive_some(_CHUNK):
            return bytes(chunk)
        await self._heard.wait()
        if await self._process.wait() > _NOTHING_FOUND and self._complaint:
            raise ToolError(self._complaint.decode("utf-8", "replace").strip())
        return b""

    async def listen(self) -> None:
        """Keep the beginning of what it complains about; the rest must not stop it either."""
        async for chunk in self._errors:
            self._complaint += chunk[: _COMPLAINT_BYTES - len(self._complaint)]
        self._heard.set()

    async def aclose(self) -> None:
        """End it, if it has not ended. Cannot be cancelled."""
        with trio.CancelScope(shield=True):
            self._process.kill()
            await self._process.wait()
            await self._output.aclose()
            await self._errors.aclose()


@asynccontextmanager
async def run_ripgrep(
    arguments: Sequence[str], folder: Path, environ: Mapping[str, str]
) -> AsyncIterator[_Search]:
    """Run `rg` in `folder` with a person's own configuration left out. Leaving early ends it."""
    command = [ripgrep_binary(), "--no-config", "--no-messages", "--color=never", *arguments]
    try:
        process = await trio.lowlevel.open_process(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            env=environ,
        )
    except OSError as error:
        raise explain(error, "The search cannot be started") from error
    search = _Search(process)
    try:
        async with plain_nursery() as nursery:
            nursery.start_soon(search.listen)
            yield search
            nursery.cancel_scope.cancel()
    finally:
        await search.aclose()


@cache
def ripgrep_binary() -> str:
    """The one installed with this program, else one on the path."""
    import sysconfig  # reads the environment, which importing us must not

    ours = Path(sysconfig.get_path("scripts")) / "rg"
    found = str(ours) if ours.exists() else which("rg")
    if found is None:
        raise ToolError("ripgrep is not installed: `pip install 'ripgrep>=14,<15'` brings it.")
    return found
