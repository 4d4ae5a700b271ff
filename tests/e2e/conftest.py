"""The real program as a subprocess, and a model server on the loopback for it to talk to."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

SCRIPTS = Path(sys.executable).parent
"""Where the console scripts of this environment are."""


class Stub:
    """A chat-completions server. Each request gets the next scripted answer."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.served = threading.Semaphore(0)
        self.silent = threading.Semaphore(0)
        """Released for each request that gets no answer while the server is there."""
        self._closing = threading.Event()
        self._answers: queue.SimpleQueue[tuple[int, list[dict[str, Any]]]] = queue.SimpleQueue()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def says(self, *pieces: str, finish: str = "stop") -> None:
        """Script an answer of text, in these pieces."""
        self._script([{"content": piece} for piece in pieces], finish)

    def calls(self, *calls: tuple[str, Mapping[str, Any]]) -> None:
        """Script an answer that calls tools, all in one message."""
        deltas = [
            {
                "index": index,
                "id": f"call_{index}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
            for index, (name, arguments) in enumerate(calls)
        ]
        self._script([{"tool_calls": [delta]} for delta in deltas], "tool_calls")

    def refuses(self, status: int, message: str) -> None:
        """Script an HTTP error."""
        self._answers.put((status, [{"error": {"message": message}}]))

    def stays_silent(self) -> None:
        """Script that there is no answer."""
        self._answers.put((0, []))

    def forget(self) -> None:
        """Drop what was scripted and not asked for."""
        while not self._answers.empty():
            self._answers.get_nowait()

    def close(self) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _script(self, deltas: list[dict[str, Any]], finish: str) -> None:
        chunks = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
        usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
        chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}], "usage": usage})
        self._answers.put((200, chunks))

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        stub = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                stub.keys.append(self.headers["Authorization"])
                stub.requests.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                try:
                    status, items = stub._answers.get_nowait()
                except queue.Empty:
                    status, items = 500, [{"error": {"message": "nothing is scripted"}}]
                if not status:
                    stub.silent.release()
                    stub._closing.wait()
                    return
                self.send_response(status)
                self.send_header("Content-Type", "text/event-stream" if status == 200 else "application/json")
                self.end_headers()
                form = "data: {}\n\n" if status == 200 else "{}"
                body = "".join(form.format(json.dumps(item)) for item in items)
                self.wfile.write((body + "data: [DONE]\n\n" * (status == 200)).encode())
                stub.served.release()

            def log_message(self, *_: object) -> None:
                """Keep the test's output clean."""

        return Handler


class Program:
    """`pi-trio` in a project folder of its own, with the stub as its only provider."""

    def __init__(self, folder: Path, stub: Stub) -> None:
        self.project = folder / "project"
        self.agent_dir = folder / "agent"
        self.project.mkdir()
        self.agent_dir.mkdir()
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "PI_TRIO_DIR": str(self.agent_dir),
            "PI_OFFLINE": "1",
            "LANG": "C.UTF-8",
        }
        if "PYTHONPATH" in os.environ:  # what is tested is what the tests import
            self.environ["PYTHONPATH"] = os.environ["PYTHONPATH"]
        model = {"id": "m", "contextWindow": 100_000_000}
        provider = {
            "baseUrl": stub.url,
            "apiKey": "none",
            "api": "openai-completions",
            "models": [model],
        }
        self.write("models.json", {"providers": {"stub": provider}})
        self.write(
            "settings.json", {"defaultProvider": "stub", "defaultModel": "m", "retry": {"enabled": False}}
        )

    def write(self, name: str, value: Any) -> None:
        """Put a file into the agent directory."""
        (self.agent_dir / name).write_text(json.dumps(value))

    def start(self, *arguments: str, through: Sequence[str] = (), **options: Any) -> subprocess.Popen[bytes]:
        """Start the program with pipes, its signals at their defaults, `through` another program."""
        chosen = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "cwd": self.project,
            "env": self.environ,
            "preexec_fn": _default_signals,
            **options,
        }
        return subprocess.Popen([*through, SCRIPTS / "pi-trio", *arguments], **chosen)

    def run(
        self, *arguments: str, piped: bytes | None = None, **options: Any
    ) -> subprocess.CompletedProcess[str]:
        """Run the program to its end. `piped` is its standard input."""
        if piped is not None:
            options["stdin"] = subprocess.PIPE
        with self.start(*arguments, **options) as process:
            out, err = process.communicate(piped, timeout=30)
        return subprocess.CompletedProcess(arguments, process.returncode, (out or b"").decode(), err.decode())

    def sessions(self) -> list[list[dict[str, Any]]]:
        """The lines of each session file, oldest first."""
        files = sorted((self.agent_dir / "sessions").rglob("*.jsonl"))
        return [[json.loads(line) for line in file.read_bytes().splitlines()] for file in files]


@pytest.fixture
def stub() -> Iterator[Stub]:
    server = Stub()
    yield server
    server.close()


@pytest.fixture
def program(tmp_path: Path, stub: Stub) -> Program:
    return Program(tmp_path, stub)


def _default_signals() -> None:
    """A test run in the background has SIGINT ignored, and programs inherit that."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
