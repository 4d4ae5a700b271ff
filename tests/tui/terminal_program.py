"""A program in a real pseudo terminal, and a model of what its user sees."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from pathlib import Path

import pyte

COLUMNS, ROWS = 100, 30
PATIENCE = 20.0
"""Seconds until something that must happen is given up."""

RESET = (b"\x1b[?1049l", b"\x1b[?1000l", b"\x1b[?1003l", b"\x1b[?1006l", b"\x1b[?2004l", b"\x1b[?25h")
"""What undoes the modes that were set: alternate screen, mouse, paste, cursor."""


class Terminal:
    """A program in a pseudo terminal, and a model of its screen."""

    def __init__(self, *arguments: str, cwd: Path, before: str = "", **environ: str) -> None:
        self.bytes = b""
        self.screen = pyte.Screen(COLUMNS, ROWS)
        self._stream = pyte.ByteStream(self.screen)
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.environ.update({"TERM": "xterm-256color", "PI_TRIO_DIR": str(cwd / "agent"), **environ})
            code = f"import sys; from pi_tui.main import main\n{before}\nsys.exit(main())"
            os.execv(sys.executable, [sys.executable, "-c", code, *arguments])
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))

    def read(self, seconds: float) -> bool:
        """Take in what comes within some time. False if nothing did, or nobody is there."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            return False
        self.bytes += data
        self._stream.feed(data)
        return bool(data)

    def wait_for(self, text: str) -> None:
        end = time.monotonic() + PATIENCE
        while not any(text in line for line in self.screen.display):
            assert time.monotonic() < end, "\n".join(self.screen.display)
            self.read(0.1)

    def wait_until_ready(self) -> None:
        """Until the session is there, and keys do what the hints say."""
        end = time.monotonic() + PATIENCE
        while "? help" not in (seen := "\n".join(self.screen.display)) or "starting" in seen:
            assert time.monotonic() < end, seen
            self.read(0.1)

    def press_until(self, key: str, text: str) -> None:
        """Press a key again and again: a dialog is deaf at first."""
        end = time.monotonic() + PATIENCE
        while not any(text in line for line in self.screen.display):
            assert time.monotonic() < end, "\n".join(self.screen.display)
            self.write(key)
            self.read(0.1)

    def wait_for_number(self, label: str) -> int:
        end = time.monotonic() + PATIENCE
        while not (found := re.search(label + r"(\d+)=", "".join(self.screen.display))):
            assert time.monotonic() < end, "\n".join(self.screen.display)
            self.read(0.1)
        return int(found[1])

    def write(self, text: str | bytes) -> None:
        os.write(self.fd, text.encode() if isinstance(text, str) else text)

    def status(self) -> int:
        """Wait for the end; the exit status."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            self.read(0.02)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.pid = 0
                while self.read(0.05):
                    pass
                return os.waitstatus_to_exitcode(status)
        raise AssertionError("it does not end:\n" + "\n".join(self.screen.display))

    def close(self) -> None:
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)
