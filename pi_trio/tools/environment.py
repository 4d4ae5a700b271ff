"""Where tools act. No tool touches files or processes but through a `ToolEnvironment`.

`LocalEnvironment` is this machine; another one may be a container or a machine elsewhere.
"""

from __future__ import annotations

import copy
import hashlib
import io
import os
import secrets
import shutil
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Protocol, TypeVar
from weakref import WeakValueDictionary

import trio

from pi_trio.tools import files, paths
from pi_trio.tools.failure import ToolError, check_text, explain
from pi_trio.tools.output import Output, Scratch
from pi_trio.tools.processes import (
    HAS_PROC,
    KILL_DEADLINE,
    TOKEN_VARIABLE,
    Outcome,
    is_group,
    kill_left_over,
    run_command,
)
from pi_trio.tools.ripgrep import run_ripgrep
from pi_trio.tools.secrets import is_secret_variable
from pi_trio.tools.watcher import Watcher

__all__ = ["LocalEnvironment", "ReadableFile", "Search", "ToolEnvironment"]

T = TypeVar("T")


class ReadableFile(Protocol):
    """An open file."""

    @property
    def path(self) -> Path:
        """Where it was found."""

    @property
    def size(self) -> int:
        """In bytes, when it was opened."""

    @property
    def sha256(self) -> str:
        """Of the bytes that were read so far."""

    async def read(self, size: int, /) -> bytes:
        """The next bytes, at most `size`; none at the end. Raises `ToolError`."""


class Search(Protocol):
    """A running ripgrep."""

    async def receive(self) -> bytes:
        """The next bytes of its output; none at the end. Raises `ToolError` with its complaint."""


class ToolEnvironment(Protocol):
    """Files and processes, as tools need them. Whatever is refused is a `ToolError`.

    `find` and `place` turn a path as the model wrote it (relative to `cwd`, or with `~`)
    into one that the other methods take. Some take it as it was written, too, and find it
    themselves: each call may be a trip to another thread or machine.
    """

    @property
    def cwd(self) -> Path: ...

    async def find(self, path: str) -> Path:
        """The file that is meant, also if its name only looks like `path`; it may not exist."""

    async def place(self, path: str) -> Path:
        """Where a file of this name is, or will be made."""

    async def real_names(self, path: str | Path, folders: Collection[Path]) -> list[Path]:
        """The path, where it really leads, and then the hard links to that file in these folders."""

    async def is_folder(self, path: Path) -> bool:
        """Whether it is a folder and not a plain file. Anything else is refused."""

    async def list_folder(self, path: Path) -> list[bytes]:
        """The names in a folder; those of folders, also behind links, end in `/`."""

    def search(self, arguments: Sequence[str], folder: Path) -> AbstractAsyncContextManager[Search]:
        """Run ripgrep in `folder`, without colours and a person's configuration. Leaving ends it."""

    async def unlisted(self, folder: Path, known: Collection[bytes]) -> list[bytes]:
        """What ripgrep's list of files passes over in the `known` folders below `folder`.

        These are links and empty folders; paths are relative to `folder`.
        """

    def open(self, path: str | Path) -> AbstractAsyncContextManager[ReadableFile]:
        """A plain file, for reading. Pipes, devices and folders are refused."""

    def changing(self, path: Path) -> AbstractAsyncContextManager[None]:
        """Alone among the changes of this file, however its path is spelt."""

    async def check_unchanged(self, path: Path) -> None:
        """Refuse if the file was opened here and then changed by somebody else."""

    async def digest(self, path: Path) -> str | None:
        """The SHA-256 of the file's content; None if there is no such file."""

    async def write(self, path: Path, data: bytes) -> str:
        """Make `data` the whole content of the file, at once. Once begun it is not cancelled.

        Returns the SHA-256 of `data`.
        """

    def new_output(self) -> Output:
        """What a command may print into."""

    async def run(self, command: str, output: Output, timeout: float | None = None) -> Outcome:
        """Run a shell command; `timeout` is in seconds. Cancelled, it leaves nothing running."""

    async def aclose(self) -> None:
        """Stop what commands left running in the background."""


_MARKS = {"AI_AGENT": "pi-trio", "PI_CODING_AGENT": "true"}
"""Tells programs that an agent runs them."""

_NO_KEYBOARD = {
    "EDITOR": "false",
    "VISUAL": "false",
    "GIT_EDITOR": "true",  # takes the message that git proposes; without one, git refuses
    "GIT_TERMINAL_PROMPT": "0",
    "SSH_ASKPASS_REQUIRE": "never",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
}
"""Makes programs that would wait for somebody fail, or go on, at once."""


class LocalEnvironment:
    """The machine this runs on, with `cwd` as working directory.

    `shell` is run with `-c`; by default bash, else sh. `command_prefix` is put before each
    command, on a line of its own. Commands do not see variables that look like the keys of
    model providers (names that end in `_API_KEY`, `_AUTH_TOKEN`, `_OAUTH_TOKEN` or
    `_BEARER_TOKEN…`), except those named in `pass_variables`. The files with full outputs
    stay when it is closed, for a session that goes on; without `keep_logs` they go.
    """

    def __init__(
        self,
        cwd: Path,
        *,
        shell: str | None = None,
        command_prefix: str = "",
        pass_variables: Collection[str] = (),
        keep_logs: bool = True,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self.cwd = cwd
        self._shell = shell or _default_shell()
        self._command_prefix = command_prefix
        self._environ = environ
        self._pass_variables = frozenset(pass_variables)
        self._scratch = Scratch()
        self._keep_logs = keep_logs
        self._token = secrets.token_hex(16)
        self._watcher = Watcher(f"{self._token}.")
        self._numbers = count(1)
        self._locks: WeakValueDictionary[str, trio.Lock] = WeakValueDictionary()
        self._groups: set[int] = set()
        self._seen: dict[str, files.Stamp] = {}
        self._check: files.Check | None = None
        self._unread: Callable[[Path], Sequence[str]] = lambda folder: ()

    def checked(self, check: files.Check, unread: Callable[[Path], Sequence[str]]) -> LocalEnvironment:
        """The same environment, where nothing is read, listed or written that `check` refuses.

        It is told the path and where what has been opened by it really is. A search of a folder
        passes over what the globs of `unread` stand for.
        """
        other = copy.copy(self)
        other._check, other._unread = check, unread
        return other

    # ---- files

    async def find(self, path: str) -> Path:
        """See `ToolEnvironment`."""
        return await _in_thread(path, lambda: self._found(path))

    async def place(self, path: str) -> Path:
        """See `ToolEnvironment`."""
        return await _in_thread(path, lambda: paths.new_path(path, self.cwd))

    async def real_names(self, path: str | Path, folders: Collection[Path]) -> list[Path]:
        """See `ToolEnvironment`."""
        return await _in_thread(path, lambda: files.real_names(self._found(path), folders))

    async def is_folder(self, path: Path) -> bool:
        """See `ToolEnvironment`."""
        return await _in_thread(path, lambda: files.is_folder(path))

    async def list_folder(self, path: Path) -> list[bytes]:
        """See `ToolEnvironment`."""
        return await _in_thread(path, lambda: files.list_folder(path, self._check))

    @asynccontextmanager
    async def search(self, arguments: Sequence[str], folder: Path) -> AsyncIterator[Search]:
        """See `ToolEnvironment`."""
        descriptor = await _in_thread(folder, lambda: files.open_folder(folder, self._check))
        if "--" not in arguments:  # after all other globs, because the last that fits decides
            arguments = [*arguments, *(f"--iglob=!{each}" for each in self._unread(folder))]
        try:
            place = Path(f"/proc/self/fd/{descriptor}") if HAS_PROC else folder
            async with run_ripgrep(arguments, place, self._child_environ(f"{self._token}.0.")) as search:
                yield search
        finally:
            os.close(descriptor)

    async def unlisted(self, folder: Path, known: Collection[bytes]) -> list[bytes]:
        """See `ToolEnvironment`."""
        return await _in_thread(folder, lambda: files.unlisted(folder, known))

    @asynccontextmanager
    async def open(self, path: str | Path) -> AsyncIterator[ReadableFile]:
        """See `ToolEnvironment`."""
        file = await _in_thread(path, lambda: self._open(path))
        try:
            yield file
        finally:
            file.close()

    @asynccontextmanager
    async def changing(self, path: Path) -> AsyncIterator[None]:
        """See `ToolEnvironment`."""
        key = await _in_thread(path, lambda: os.path.realpath(path))
        lock = self._locks.setdefault(key, trio.Lock())
        async with lock:
            yield

    async def check_unchanged(self, path: Path) -> None:
        """See `ToolEnvironment`."""
        if await _in_thread(path, lambda: self._differs(path)):
            raise ToolError(f"{path} was changed by somebody else after it was read. Read it again first.")

    async def digest(self, path: Path) -> str | None:
        """See `ToolEnvironment`."""
        return await _in_thread(path, lambda: files.digest(path, self._check))

    async def write(self, path: Path, data: bytes) -> str:
        """See `ToolEnvironment`."""
        return await _in_thread(path, lambda: self._write(path, data))

    def _found(self, path: str | Path) -> Path:
        return paths.existing_path(path, self.cwd) if isinstance(path, str) else path

    def _open(self, path: str | Path) -> _LocalFile:
        found = self._found(path)
        try:
            descriptor = files.open_plain(found, self._check)
        except OSError as error:  # about what was looked for, which is not always what was written
            raise explain(error, str(found)) from error
        self._seen[os.path.realpath(found)] = files.stamp_of(os.fstat(descriptor))
        return _LocalFile(found, descriptor)

    def _write(self, path: Path, data: bytes) -> str:
        self._seen[os.path.realpath(path)] = files.replace(path, data, self._check)
        return hashlib.sha256(data).hexdigest()

    def _differs(self, path: Path) -> bool:
        seen = self._seen.get(os.path.realpath(path))
        return seen is not None and path.exists() and files.stamp_of(path.stat()) != seen

    # ---- processes

    def new_output(self) -> Output:
        """See `ToolEnvironment`."""
        return Output(self._scratch)

    async def run(self, command: str, output: Output, timeout: float | None = None) -> Outcome:
        """See `ToolEnvironment`."""
        check_text(command, "command")
        if HAS_PROC and not self._watcher.started:
            await self._watcher.start(self._watcher_environ())
        token = f"{self._token}.{next(self._numbers)}."
        script = f"{self._command_prefix}\n{command}" if self._command_prefix else command
        outcome = await run_command(
            [self._shell, "-c", script],
            cwd=self.cwd,
            environ=self._child_environ(token),
            token=token,
            output=output,
            timeout=timeout,
        )
        self._groups.difference_update([group for group in self._groups if not is_group(group)])
        if outcome.still_running:
            self._groups.add(outcome.group)
        return outcome

    async def aclose(self) -> None:
        """See `ToolEnvironment`. Cannot be cancelled, and takes 2 s at most."""
        with trio.CancelScope(shield=True, deadline=trio.current_time() + KILL_DEADLINE):
            await kill_left_over(f"{self._token}.", self._groups)
            self._watcher.dismiss()
            if not self._keep_logs:
                await trio.to_thread.run_sync(self._scratch.remove)

    def _watcher_environ(self) -> dict[str, str]:
        """An agent around this one stops the watcher with everything else."""
        names = ("PATH", TOKEN_VARIABLE)
        return {name: self._environ[name] for name in names if name in self._environ}

    def _child_environ(self, token: str) -> dict[str, str]:
        """Ours without keys. Tokens add up, so that an agent inside an agent is stopped with it."""
        passed = {
            name: value
            for name, value in self._environ.items()
            if name in self._pass_variables or not is_secret_variable(name)
        }
        tokens = f"{self._environ.get(TOKEN_VARIABLE, '')} {token}".strip()
        return {**passed, **_MARKS, **_NO_KEYBOARD, TOKEN_VARIABLE: tokens}


class _LocalFile:
    """A plain file, read in threads."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.size = os.fstat(descriptor).st_size
        self.path = path
        self._file = io.FileIO(descriptor)
        self._hash = hashlib.sha256()

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    async def read(self, size: int, /) -> bytes:
        return await _in_thread(self.path, lambda: self._read(size))

    def _read(self, size: int) -> bytes:
        data = self._file.read(size) or b""
        self._hash.update(data)
        return data

    def close(self) -> None:
        self._file.close()


def _default_shell() -> str:
    return "/bin/bash" if Path("/bin/bash").exists() else shutil.which("bash") or "/bin/sh"


async def _in_thread(subject: Path | str, work: Callable[[], T]) -> T:
    """`work` done in a thread, its `OSError` as a sentence about `subject`."""
    try:
        return await trio.to_thread.run_sync(work)
    except OSError as error:
        raise explain(error, str(subject)) from error
