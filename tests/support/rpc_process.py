"""A client of RPC mode for tests: the real program at the other end of two pipes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from typing import Any


class RpcProcess:
    """`seen` is everything that the program has said, in order."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.seen: list[dict[str, Any]] = []
        self._ids = 0

    def write(self, line: bytes) -> None:
        """Send a line as it is."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def send(self, name: str, /, **fields: Any) -> str:
        """Send a command. Gives its id."""
        self._ids += 1
        request_id = f"r{self._ids}"
        self.write(json.dumps({"id": request_id, "type": name, **fields}).encode())
        return request_id

    def read(self) -> dict[str, Any]:
        """The next thing that the program says."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.endswith(b"\n"), f"the program ended after {self.seen[-3:]}"
        self.seen.append(json.loads(line))
        return self.seen[-1]

    def until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The next thing that is wanted; what comes before it is passed over."""
        while not wanted(said := self.read()):
            pass
        return said

    def event(self, kind: str) -> dict[str, Any]:
        """The next event of a type."""
        return self.until(lambda said: said["type"] == kind)

    def response(self, request_id: Any) -> dict[str, Any]:
        """The response to a command."""
        return self.until(lambda said: said["type"] == "response" and said.get("id") == request_id)

    def ask(self, name: str, /, **fields: Any) -> dict[str, Any]:
        """Send a command and wait for its response."""
        return self.response(self.send(name, **fields))

    def data(self, name: str, /, **fields: Any) -> Any:
        """The data of a command that must work; None if it has none."""
        response = self.ask(name, **fields)
        assert response["success"], response
        return response.get("data")

    def error(self, name: str, /, **fields: Any) -> str:
        """What is said about a command that must fail."""
        response = self.ask(name, **fields)
        assert not response["success"], response
        return str(response["error"])

    def say(self, text: str) -> None:
        """Send a prompt, and wait until the agent is ready again."""
        assert self.data("prompt", message=text) == {"disposition": "started"}
        self.event("agent_settled")

    def end(self) -> tuple[int, list[dict[str, Any]], str]:
        """End the input. Gives the exit status, what was still said, and standard error."""
        out, err = self.process.communicate(timeout=20)
        rest = [json.loads(line) for line in out.split(b"\n")[:-1]]
        self.seen += rest
        return self.process.returncode, rest, err.decode()
