"""Running a shell command, and stopping all that it started.

A command gets its own session and process group, no standard input, and a token in its
environment that its descendants inherit. Stopping kills the group, then whatever else on
the system carries the token, until nothing does. On Linux that takes what called `setsid`,
was orphaned or ignores signals; a process that has left the group *and* cleared its
environment escapes. Elsewhere, without `/proc`, only the group is stopped.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from math import inf
from pathlib import Path

import trio
from attrs import frozen

from pi_trio.nursery import plain_nursery
from pi_trio.tools.failure import ToolError, explain
from pi_trio.tools.output import Output

__all__ = [
    "HAS_PROC",
    "KILL_DEADLINE",
    "TOKEN_VARIABLE",
    "Outcome",
    "is_group",
    "kill_left_over",
    "run_command",
]

TOKEN_VARIABLE = "PI_TRIO_COOKIE"  # noqa: S105 the name of a variable, no secret

CHUNK = 65_536
IDLE = 0.1
"""Seconds without output after which a shell that has ended is not waited for any more."""

DRAIN = 1.0
"""Seconds that a background child that never stops printing can hold up its finished shell."""

KILL_DEADLINE = 2.0
"""Seconds for stopping. Only a process in an uninterruptible wait takes more than milliseconds."""

HAS_PROC = Path("/proc/self/environ").exists()
"""Whether processes can be told by their environment."""


@frozen
class Outcome:
    """How a command ended: by itself (`exit_code`), by a signal, or because its time was over.

    `still_running`: it left something running in the background, as a rule in its process
    `group`.
    """

    exit_code: int | None = None
    signal: int | None = None
    timed_out: bool = False
    still_running: bool = False
    group: int = 0

    @property
    def status(self) -> int | None:
        """As a shell has it: death by a signal is 128 and its number."""
        return self.exit_code if self.signal is None else 128 + self.signal


async def run_command(
    argv: Sequence[str],
    *,
    cwd: Path,
    environ: Mapping[str, str],
    token: str,
    output: Output,
    timeout: float | None = None,
) -> Outcome:
    """Run `argv` until its first process ends; what it prints goes to `output` meanwhile.

    `token` must be in `environ` under `TOKEN_VARIABLE`. `timeout` is in seconds. Raises
    `ToolError` if it cannot be started. If this is cancelled, or the time is over, nothing
    of the command is left, and `output` has what it had printed.
    """
    process, pipe = await _start(argv, cwd, environ)
    reader = _Reader(pipe, output)
    try:
        with trio.move_on_after(inf if timeout is None else timeout):
            await _follow(process, reader)
        code = process.poll()
        if code is not None:
            still_running = not reader.ended or await _runs_on(process.pid, token)
            ended, by_signal = (code, None) if code >= 0 else (None, -code)
            return Outcome(ended, by_signal, still_running=still_running, group=process.pid)
        await _stop(process, reader, token)
        return Outcome(timed_out=True)
    except BaseException:
        await _stop(process, reader, token)
        raise
    finally:
        await output.aclose()
        reader.let_go()


async def _start(
    argv: Sequence[str], cwd: Path, environ: Mapping[str, str]
) -> tuple[trio.Process, trio.lowlevel.FdStream]:
    """The process, and the pipe that its output comes through."""
    read_end, write_end = os.pipe()
    pipe = trio.lowlevel.FdStream(read_end)
    try:
        process = await trio.lowlevel.open_process(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=write_end,
            stderr=subprocess.STDOUT,
            cwd=cwd,
            env=environ,
            start_new_session=True,
        )
    except BaseException as error:
        pipe.close()
        if isinstance(error, OSError):
            raise _refusal(error, cwd) from error
        raise
    finally:
        os.close(write_end)
    return process, pipe


def _refusal(error: OSError, cwd: Path) -> ToolError:
    if not cwd.is_dir():
        return ToolError(f"The working directory {cwd} is not there any more.")
    return explain(error, "The command cannot be started")


async def _follow(process: trio.Process, reader: _Reader) -> None:
    async with plain_nursery() as nursery:
        nursery.start_soon(reader.read_on)
        await process.wait()
        await reader.wait_quiet()
        nursery.cancel_scope.cancel()


async def _runs_on(group: int, token: str) -> bool:
    """Whether the group of a process that has ended has others, not counting dead ones."""
    if not is_group(group):
        return False
    return not HAS_PROC or bool(await trio.to_thread.run_sync(_carriers, token.encode()))


def is_group(group: int) -> bool:
    """Whether there is a process in the group; where there is no /proc, a living one."""
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):  # macOS refuses where only dead ones are left
        return False
    return True


async def _stop(process: trio.Process, reader: _Reader, token: str) -> None:
    """Kill everything, then take what is still in the pipe. Cannot be cancelled."""
    with trio.CancelScope(shield=True, deadline=trio.current_time() + KILL_DEADLINE):
        if process.poll() is None:  # not reaped, so its number is still its own
            _signal(os.killpg, process.pid)
        await kill_carriers(token)
        await process.wait()
        await reader.take_rest()


# ---------------------------------------------------------------- output


class _Reader:
    """Reads the pipe that the command and its children share."""

    def __init__(self, pipe: trio.lowlevel.FdStream, output: Output) -> None:
        self.ended = False
        self._pipe = pipe
        self._output = output
        self._last = trio.current_time()
        self._end = trio.Event()

    async def read_on(self) -> None:
        """Read until the last holder of the pipe has closed it."""
        while chunk := await self._pipe.receive_some(CHUNK):
            self._last = trio.current_time()
            await self._output.write(chunk)
        self.ended = True
        self._end.set()

    async def wait_quiet(self) -> None:
        """Until the end, or until nothing comes any more; at most `DRAIN` seconds.

        Silence counts from now on: the last output of a process comes together with its end.
        """
        self._last = trio.current_time()
        with trio.move_on_after(DRAIN):
            while not self.ended and trio.current_time() < self._last + IDLE:
                with trio.move_on_at(self._last + IDLE):
                    await self._end.wait()

    async def take_rest(self) -> None:
        """What is in the pipe now that its writers are dead; whoever escaped is not waited for."""
        with trio.move_on_after(IDLE / 10):
            if not self.ended:
                await self.read_on()

    def let_go(self) -> None:
        """Close the pipe, or empty it for as long as a background child writes to it.

        Such a child would be stopped by its next line of output if the pipe were closed.
        """
        if not self.ended:
            descriptor = os.dup(self._pipe.fileno())
            os.set_blocking(descriptor, True)
            threading.Thread(target=_discard, args=(descriptor,), name="pi-trio-drain", daemon=True).start()
        self._pipe.close()


def _discard(descriptor: int) -> None:
    while os.read(descriptor, CHUNK):
        pass
    os.close(descriptor)


# ---------------------------------------------------------------- stopping


async def kill_left_over(token: str, groups: Iterable[int]) -> None:
    """Kill what finished commands left running: all that carries `token`, else their groups.

    A group's number may be another's by now, so groups count only where there is no /proc.
    """
    if not HAS_PROC:
        for group in groups:
            _signal(os.killpg, group)
    await kill_carriers(token)


async def kill_carriers(token: str) -> None:
    """Kill every process that carries `token` in its environment, until a scan finds none."""
    pause = 0.0005
    while await trio.to_thread.run_sync(_kill_carriers_now, token.encode()):
        await trio.sleep(pause)  # a killed process shows up until it is gone
        pause = min(2 * pause, 0.05)


def _kill_carriers_now(token: bytes) -> bool:
    """Whether there were any."""
    carriers = _carriers(token)
    for number in carriers:
        _signal(os.kill, number)
    return bool(carriers)


def _carriers(token: bytes) -> list[int]:
    return [number for number in _other_processes() if token in _environment_of(number)]


def _other_processes() -> list[int]:
    if not HAS_PROC:
        return []
    with os.scandir("/proc") as entries:
        numbers = [int(each.name) for each in entries if each.name.isdecimal()]
    return [number for number in numbers if number != os.getpid()]


def _environment_of(number: int) -> bytes:
    try:
        descriptor = os.open(f"/proc/{number}/environ", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # it is gone, or another user's
        return b""
    try:
        return os.read(descriptor, 1 << 20)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def _signal(kill: Callable[[int, int], None], number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):  # it is gone, or changed its user
        kill(number, signal.SIGKILL)
