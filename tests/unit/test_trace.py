"""The log of requests: what is in it, and that no secret is."""

from __future__ import annotations

import json
import socket
import stat
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import trio

from pi_trio.errors import StorageError, UsageError
from pi_trio.harness.runtime import LocalRuntime, open_runtime
from pi_trio.resources.config import RuntimeConfig
from pi_trio.resources.settings import Retry, Settings
from pi_trio.trace import TraceLog

pytestmark = pytest.mark.usefixtures("demo_in_a_hurry")

KEY = "planted-key-0123456789"
HEADER = "planted-header-abcdef"
PASSWORD = "planted-password"
APIS = ["anthropic-messages", "google-generative-ai", "openai-completions", "openai-responses"]


@pytest.fixture
def host() -> Iterator[str]:
    """A provider that repeats what it was sent, its secrets too, in a refusal."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            said = " ".join(f"{name}: {value}" for name, value in self.headers.items())
            data = json.dumps({"error": {"message": f"refused {said} {self.path}"}}).encode()
            self.send_response(400)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.send_header("x-request-id", "r-1")
            self.send_header("x-ratelimit-remaining", "7")
            self.send_header("set-cookie", f"session={HEADER}")
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Keep the test's output clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def deaf() -> Iterator[int]:
    """A port that is taken by a socket which does not listen."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def config_of(folder: Path, **options: Any) -> RuntimeConfig:
    chosen = {"cwd": folder, "agent_dir": folder / "agent", "log": folder / "log", "no_session": True}
    return RuntimeConfig(**(chosen | options))


async def say(runtime: LocalRuntime, text: str) -> None:
    session_id = (await runtime.new_session()).session.id
    await runtime.prompt(session_id, text)
    await runtime.wait_for_idle(session_id)


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("api", APIS)
async def test_no_secret_is_logged(tmp_path: Path, host: str, api: str) -> None:
    """SE-12: neither key nor header nor password, not even when the provider repeats them."""
    provider = {
        "baseUrl": f"http://user:{PASSWORD}@{host}/base",
        "apiKey": KEY,
        "api": api,
        "headers": {"X-Own-Token": HEADER},
        "models": [{"id": "m"}],
    }
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent" / "models.json").write_text(json.dumps({"providers": {"planted": provider}}))
    async with open_runtime(config_of(tmp_path, model="planted/m")) as runtime:
        await say(runtime, "hello")
    text = (tmp_path / "log").read_text()
    for secret in (KEY, HEADER, PASSWORD):
        assert secret not in text
    lines = {line["event"]: line for line in lines_of(tmp_path / "log")}
    sent = lines["request_sent"]["headers"]
    assert [name for name, value in sent.items() if value == "[redacted]"]
    assert sent["x-own-token"] == "[redacted]"
    assert sent["content-type"] == "application/json"
    assert lines["request_sent"]["url"].startswith(f"http://{host}/base/")
    assert lines["request"]["model"] == "planted/m"
    assert lines["response"]["status"] == 400
    assert lines["response"]["headers"]["x-request-id"] == "r-1"
    assert lines["response"]["headers"]["x-ratelimit-remaining"] == "7"
    assert lines["response"]["headers"]["set-cookie"] == "[redacted]"
    assert lines["request_end"]["outcome"] == "error"
    assert "firstMs" not in lines["request_end"]
    assert "refused" in lines["request_end"]["error"]["message"]


async def test_a_request_is_followed_from_its_beginning_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# Read me\n")
    async with open_runtime(config_of(tmp_path, demo=True)) as runtime:
        await say(runtime, "read README.md")
    lines = lines_of(tmp_path / "log")
    assert [line["event"] for line in lines] == [
        "agent_start",
        "request",
        "request_end",
        "tool_execution_end",
        "request",
        "request_end",
        "agent_settled",
    ]
    assert [line["request"] for line in lines if "request" in line] == [1, 1, 2, 2]
    assert lines[1]["tools"] == 4
    assert (lines[2]["outcome"], lines[5]["outcome"]) == ("toolUse", "stop")
    assert lines[2]["ms"] >= lines[2]["firstMs"] >= 0
    assert lines[5]["usage"]["output"] > 0
    assert (lines[3]["tool"], lines[3]["isError"]) == ("read", False)
    assert len({line["session"] for line in lines}) == 1
    assert stat.S_IMODE((tmp_path / "log").stat().st_mode) == 0o600


async def test_a_retry_is_logged(tmp_path: Path, deaf: int) -> None:
    """Nobody listens, which passes for a network that fails for a moment."""
    provider = {
        "baseUrl": f"http://127.0.0.1:{deaf}",
        "apiKey": "none",
        "api": APIS[2],
        "models": [{"id": "m"}],
    }
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent" / "models.json").write_text(json.dumps({"providers": {"closed": provider}}))
    settings = Settings(retry=Retry(max_retries=1, base_delay_ms=1))
    async with open_runtime(config_of(tmp_path, model="closed/m", settings=settings)) as runtime:
        await say(runtime, "hello")
    events = [line for line in lines_of(tmp_path / "log") if "retry" in line["event"]]
    assert [line["event"] for line in events] == ["auto_retry_start", "auto_retry_end"]
    assert (events[0]["attempt"], events[0]["maxAttempts"]) == (1, 1)
    assert events[1]["success"] is False
    assert [line["event"] for line in lines_of(tmp_path / "log")].count("request_end") == 2


async def test_an_abort_ends_its_request(tmp_path: Path) -> None:
    async with open_runtime(config_of(tmp_path, demo=True)) as runtime:
        session_id = (await runtime.new_session()).session.id
        await runtime.prompt(session_id, "hello")
        await trio.lowlevel.checkpoint()
        while not any(line["event"] == "request" for line in lines_of(tmp_path / "log")):
            await trio.lowlevel.checkpoint()
        await runtime.abort(session_id)
    ends = [line["outcome"] for line in lines_of(tmp_path / "log") if line["event"] == "request_end"]
    assert ends == ["aborted"]


def test_it_grows(tmp_path: Path) -> None:
    for number in range(2):
        log = TraceLog(tmp_path / "log")
        log.write("s", "e", n=number, none=None)
        log.close()
    assert [line["n"] for line in lines_of(tmp_path / "log")] == [0, 1]


def test_one_that_cannot_be_opened_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nowhere/log cannot be opened: No such file"):
        TraceLog(tmp_path / "nowhere" / "log")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
async def test_a_full_disk_stops_the_log_and_not_the_work(tmp_path: Path) -> None:
    answered = []

    async def work() -> None:
        async with open_runtime(config_of(tmp_path, demo=True, log=Path("/dev/full"))) as runtime:
            await say(runtime, "hello")
            answered.append(True)

    with pytest.raises(StorageError, match="the log /dev/full is not whole: No space left"):
        await work()
    assert answered
