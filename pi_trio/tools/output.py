"""What a command printed: a head and a tail in memory, all of it in a private file.

In memory lines that were written over are in their last state; the file has every byte as it
came. Bytes are decoded only when somebody looks, so that a letter cut by a pipe's chunks is
never damaged.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import trio
from attrs import evolve

from pi_trio.tools.folding import Folding
from pi_trio.tools.truncate import MAX_BYTES, MAX_LINES, Truncation, truncate_tail

__all__ = ["Output", "Scratch"]

KEEP_BYTES = 512 * 1024
"""What is kept of the head, and of the tail, in memory."""

MAX_LOG_BYTES = 1024**3
"""Where the full output stops, so that an endless command does not fill the disk."""

_SCRATCH_PREFIX = "pi-trio-output-"
_SCRATCH_DAYS = 3


class Scratch:
    """A private folder for full outputs, made when it is first needed.

    Unless it is removed it outlives the program, so that a session that goes on can still read
    what it was told of; folders of earlier programs go after three days.
    """

    def __init__(self, parent: Path | None = None) -> None:
        self._parent = parent or Path(tempfile.gettempdir())
        self._folder: Path | None = None

    def new_log(self) -> tuple[Path, int]:
        """A new file (0600) and a descriptor to write it. Raises `OSError`. Blocks."""
        if self._folder is None or not self._folder.is_dir():
            self._sweep()
            self._folder = Path(tempfile.mkdtemp(prefix=_SCRATCH_PREFIX, dir=self._parent))
        path = self._folder / f"bash-{secrets.token_hex(8)}.log"
        return path, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)

    def remove(self) -> None:
        """Delete the folder, and all outputs with it. Blocks."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _sweep(self) -> None:
        oldest = time.time() - _SCRATCH_DAYS * 86_400
        for each in self._parent.glob(f"{_SCRATCH_PREFIX}*"):
            with contextlib.suppress(OSError):  # another program swept it
                status = each.lstat()
                if status.st_uid == os.getuid() and status.st_mtime < oldest and not each.is_symlink():
                    shutil.rmtree(each, ignore_errors=True)


class Output:
    """Grows by `write`; any number of looks in between. `on_chunk` is told of each piece.

    `received` is how many bytes came; all other figures are of the text that is shown.
    """

    def __init__(self, scratch: Scratch) -> None:
        self.on_chunk: Callable[[bytes], None] | None = None
        self.received: int = 0
        self.log_path: Path | None = None
        self.log_error: OSError | None = None
        self._scratch = scratch
        self._log: int | None = None
        self._unlogged = bytearray()
        self._folding = Folding()
        self._head = bytearray()
        self._tail = bytearray()
        self._ended_bytes = 0
        self._line_ends = 0
        self._open_line = 0  # bytes since the last line end
        self._closed_line = 0  # bytes of the line that it closed

    async def write(self, chunk: bytes) -> None:
        """Take in the next bytes. If this is cancelled, they are in memory and in the file."""
        if self.on_chunk is not None:
            self.on_chunk(chunk)
        self.received += len(chunk)
        if lines := self._folding.feed(chunk):
            self._count(lines)
            self._keep(lines)
        if self.log_path is None and self.log_error is None:
            self._unlogged += chunk
            if self.received > MAX_BYTES or self.total_lines > MAX_LINES:
                await self._begin_log()
        else:
            await self._append(chunk)

    async def aclose(self) -> None:
        """Close the file. What was printed can still be looked at."""
        if self._unlogged and self.tail().truncated:  # shown, some bytes are larger than they were
            await self._begin_log()
        if self._log is not None:
            log, self._log = self._log, None
            os.close(log)

    def tail(self, *, final: bool = True) -> Truncation:
        """The end of it, within the limits. Not `final`: a letter that is still coming is left out."""
        margin = 64  # more than the limit, so that the line cut here is never taken for a whole one
        part = truncate_tail(_decoded(self._last(MAX_BYTES + margin), final))
        if not part.truncated:
            return part
        return evolve(part, total_lines=self.total_lines, total_bytes=self.total_bytes)

    def head_and_tail(self) -> str:
        """All of it, or both ends with a mark between if `is_cut`."""
        if not self.is_cut:
            return _decoded(self._head + self._tail + self._folding.open, final=True)
        dropped = self.total_bytes - 2 * KEEP_BYTES
        mark = f"\n[... {dropped} bytes ...]\n"
        return _decoded(self._head, final=False) + mark + _decoded(self._last(KEEP_BYTES), final=True)

    @property
    def total_bytes(self) -> int:
        """The size of all of it."""
        return self._ended_bytes + len(self._folding.open)

    @property
    def is_cut(self) -> bool:
        """Whether memory holds its two ends only."""
        return self.total_bytes > 2 * KEEP_BYTES

    @property
    def total_lines(self) -> int:
        """Lines so far, the one that is still open included."""
        return self._line_ends + (self._open_bytes > 0)

    @property
    def last_line_bytes(self) -> int:
        """The size of the last line, which may be larger than anything kept."""
        return self._open_bytes or self._closed_line

    @property
    def _open_bytes(self) -> int:
        return self._open_line + len(self._folding.open)

    def _count(self, chunk: bytes) -> None:
        self._ended_bytes += len(chunk)
        self._line_ends += chunk.count(b"\n")
        end = chunk.rfind(b"\n")
        if end < 0:
            self._open_line += len(chunk)
            return
        start = chunk.rfind(b"\n", 0, end) + 1
        self._closed_line = end - start + (self._open_line if start == 0 else 0)
        self._open_line = len(chunk) - end - 1

    def _keep(self, chunk: bytes) -> None:
        room = KEEP_BYTES - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        if len(self._tail) > 2 * KEEP_BYTES:
            del self._tail[:-KEEP_BYTES]

    def _last(self, count: int) -> bytearray:
        text = self._tail + self._folding.open
        if len(text) < count:
            text = self._head[-(count - len(text)) :] + text
        return text[-count:]

    async def _begin_log(self) -> None:
        data, self._unlogged = bytes(self._unlogged), bytearray()
        await self._append(data)

    async def _append(self, data: bytes) -> None:
        """Write to the file, in a thread; a disk that refuses costs the file, not the command."""
        if self.log_error is None:
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(self._append_now, data)

    def _append_now(self, data: bytes) -> None:
        try:
            if self.log_path is None:
                self.log_path, self._log = self._scratch.new_log()
            if self._log is not None and self.received <= MAX_LOG_BYTES:
                _write_all(self._log, data)
        except OSError as error:
            self.log_error = error


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _decoded(data: bytes | bytearray, final: bool) -> str:
    """As UTF-8 from the first whole letter on; what is none, and NUL, becomes `�`."""
    start = 0
    while start < min(3, len(data)) and data[start] & 0xC0 == 0x80:
        start += 1
    text = codecs.getincrementaldecoder("utf-8")("replace").decode(data[start:], final)
    return text.replace("\0", "�")
