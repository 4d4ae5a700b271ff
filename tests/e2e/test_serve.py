"""The real server, and the real programs that attach to it."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "tui"))  # tests are no package; the terminal is shared
from test_terminal import Terminal

from pi_trio.remote.link import PING_SECONDS, SILENCE_SECONDS
from pi_trio.remote.server import connection, server
from pi_trio.remote.server.door import HEAD_BYTES
from pi_trio.remote.server.feed import RING_BYTES, RING_ITEMS
from pi_trio.remote.server.peer import COMMANDS_AT_A_TIME
from pi_trio.remote.server.sessions import IDLE_SECONDS

PAGE = (Path(__file__).parents[2] / "docs" / "server.md").read_text("utf-8")


@contextmanager
def serving(program, *arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A server on a free port, and its address."""
    with program.start("serve", *(() if "--port" in arguments else ("--port", "0")), *arguments) as process:
        try:
            url = process.stdout.readline().decode().strip()
            yield process, url
        finally:
            process.kill()


def refused(program, *arguments: str) -> str:
    done = program.run(*arguments)
    assert done.returncode == 2, done
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1, done.stderr
    return done.stderr


def test_a_broken_models_file_is_told(program) -> None:
    (program.agent_dir / "models.json").write_text("[]")
    with serving(program, "--demo") as (process, _):
        told = process.stderr.readline().decode()
        assert told == f"pi-trio: {program.agent_dir}/models.json:1: the file must be a JSON object\n"


def test_a_script_leaves_and_the_work_goes_on(program, stub) -> None:
    """The server is told to end, and all is saved."""
    with serving(program) as (process, url):
        token = program.agent_dir / "server-token"
        assert oct(token.stat().st_mode & 0o777) == "0o600"
        assert re.fullmatch(r"ws://127\.0\.0\.1:\d+", url)
        stub.calls(("bash", {"command": "read line < gate; echo through"}))
        gate = program.project / "gate"
        subprocess.run(["mkfifo", gate], check=True)
        with program.start("attach", url, stdin=subprocess.PIPE) as client:
            client.stdin.write(b"wait for it\n")
            client.stdin.flush()
            while b"read line" not in client.stdout.readline():
                pass
            client.send_signal(signal.SIGTERM)
            assert client.wait(timeout=20) == 143
        stub.says("It came ", "through.")
        gate.write_text("go\n")
        done = program.run("attach", url, piped=b"/session\n")
        assert done.returncode == 0, done
        assert "prompts: 1 in" in done.stdout
        process.terminate()
        out, err = process.communicate(timeout=20)
        assert (process.returncode, out) == (143, b"")
        assert token.read_text().strip() not in err.decode()
    (lines,) = program.sessions()
    results = [line["message"] for line in lines if line.get("message", {}).get("role") == "toolResult"]
    assert [each["content"][0]["text"] for each in results] == ["through\n"]


@contextmanager
def waiting_for_an_answer(program, stub, url: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A client with all of its input behind it, in the middle of a turn."""
    stub.stays_silent()
    with program.start("attach", url, *arguments, stdin=subprocess.PIPE) as client:
        client.stdin.write(b"hello\n")
        client.stdin.close()
        client.stdin = None
        assert stub.silent.acquire(timeout=20)
        yield client


def ended(client: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    out, err = client.communicate(timeout=40)
    return client.returncode, out.decode(), err.decode()


def test_a_script_gives_up_a_server_that_does_not_come_back(program, stub) -> None:
    with (
        serving(program) as (process, url),
        waiting_for_an_answer(program, stub, url, "--patience", "1") as client,
    ):
        process.kill()
        process.wait()
        status, out, err = ended(client)
        assert (status, len(err.splitlines())) == (1, 1), err
        assert err == f"pi-trio: there is no server at {url}; given up after 1 second\n"
        assert "trying again" in out


@pytest.mark.parametrize(
    ("options", "said", "told"),
    [
        ([], "", "[the turn was cut off]"),
        (["--no-session", "--session-dir", "elsewhere"], "the session is not there any more", ""),
    ],
)
def test_a_script_is_told_what_a_server_that_was_started_again_does_not_have(
    program, stub, options: list[str], said: str, told: str
) -> None:
    with serving(program) as (process, url), waiting_for_an_answer(program, stub, url) as client:
        process.kill()
        process.wait()
        with serving(program, "--port", url.rpartition(":")[2], *options):
            status, out, err = ended(client)
        assert status == 1, (out, err)
        assert len(err.splitlines()) == bool(said), err
        assert said in err
        assert told in out


def test_a_person_is_told_of_each_attempt_to_come_back(program) -> None:
    ours, theirs = pty.openpty()
    try:
        with (
            serving(program) as (process, url),
            program.start("attach", url, "--patience", "1000", stdin=theirs) as client,
        ):
            until(client, b"/help lists")
            process.kill()
            process.wait()
            until(client, b"there is no server")
            with serving(program, "--port", url.rpartition(":")[2]):
                until(client, b"connected again")
                os.write(ours, b"\x04")
                assert client.wait(timeout=20) == 0
    finally:
        os.close(ours)
        os.close(theirs)


def until(client: subprocess.Popen[bytes], words: bytes) -> None:
    """Read lines up to one with these words."""
    while words not in (line := client.stdout.readline()):
        assert line, "it has ended"


def test_two_screens_and_a_script_on_one_session(program, stub) -> None:
    with serving(program) as (process, url):
        environ = {**program.environ, "PI_TRIO_DIR": str(program.agent_dir)}
        screens = [Terminal("--attach", url, cwd=program.project, **environ)]
        try:
            screens[0].wait_until_ready()  # before the next one, which would begin a session, too
            screens.append(Terminal("--attach", url, cwd=program.project, **environ))
            screens[1].wait_until_ready()
            stub.says("said to ", "everybody")
            done = program.run("attach", url, piped=b"a question\n")
            assert (done.returncode, done.stdout.strip()) == (0, "said to everybody")
            for screen in screens:
                screen.wait_for("▌ a question")
                screen.wait_for("said to everybody")
            stub.says("and the other ", "way")
            screens[0].write("back\r")
            for screen in screens:
                screen.wait_for("▌ back")
                screen.wait_for("and the other way")
            screens[0].write("\x04")
            assert screens[0].status() == 0
            assert f"pi-tui --attach {url} --session ".encode() in screens[0].bytes
            process.terminate()
            screens[1].wait_for("trying again")
        finally:
            for screen in screens:
                screen.close()


def test_a_screen_has_the_files_of_the_server_and_what_it_sends_waits_for_it(program, stub) -> None:
    (program.project / "some-notes.md").touch()
    environ = {**program.environ, "PI_TRIO_DIR": str(program.agent_dir)}
    with serving(program) as (process, url):
        screen = Terminal("--attach", url, cwd=program.project, **environ)
        try:
            screen.wait_until_ready()
            stub.says("the first ", "answer")
            screen.write("hello\r")
            screen.wait_for("the first answer")
            screen.write("@notes")
            screen.wait_for("some-notes.md")
            screen.write("\x15/login\r")
            screen.wait_for("the server keeps the keys")
            process.kill()
            process.wait()
            screen.wait_for("there is no server")
            stub.says("the second ", "answer")
            screen.write("are you there\r")
            screen.wait_for("1 unsent  are you there")
            screen.write("and more\r")
            screen.wait_for("2 unsent  and more")
            screen.write("\x1b")
            screen.wait_for("› are you there")
            screen.write("\x03are you there\r")
            screen.wait_for("1 unsent  are you there")
            with serving(program, "--port", url.rpartition(":")[2]):
                screen.wait_for("the second answer")
            assert len(stub.requests) == 2
            assert "and more" not in str(stub.requests)
        finally:
            screen.close()


def test_a_question_is_answered_in_a_line(program, stub) -> None:
    """HL-11: of those that are attached a person answers."""
    program.write("settings.json", {**_settings(program), "gate": {"mode": "ask"}})
    with serving(program) as (_, url):
        environ = {**program.environ, "PI_TRIO_DIR": str(program.agent_dir)}
        screen = Terminal("--attach", url, cwd=program.project, **environ)
        try:
            screen.wait_until_ready()
            stub.calls(("bash", {"command": "echo allowed > made"}))
            stub.says("done")
            screen.write("do it\r")
            screen.wait_for("echo allowed")
            screen.press_until("y", "done")
            assert (program.project / "made").read_text() == "allowed\n"
        finally:
            screen.close()


def _settings(program) -> dict:
    return json.loads((program.agent_dir / "settings.json").read_text())


def test_who_may_not_or_cannot_connect_is_told_in_one_line(program, tmp_path: Path) -> None:
    """SE-09."""
    assert "token" in refused(program, "attach", "ws://127.0.0.1:9")
    with serving(program) as (_, url):
        wrong = tmp_path / "wrong"
        wrong.touch(0o600)
        wrong.write_text("a-wrong-token-of-some-length\n")
        assert "the token is missing or wrong" in refused(program, "attach", url, "--token-file", str(wrong))
        wrong.chmod(0o644)
        assert "read by others" in refused(program, "attach", url, "--token-file", str(wrong))
        port = url.rpartition(":")[2]
        assert "another server" in refused(program, "serve", "--port", port)
    assert "there is no server" in refused(program, "attach", url)
    assert "wss://" in refused(program, "attach", "ws://192.0.2.1:7717")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--host", "0.0.0.0"], "--cert and --key"),
        (["--host", "::"], "--cert and --key"),
        (["--host", "example.invalid"], "--cert and --key"),
        (["--cert", "x"], "go together"),
        (["--cert", "x", "--key", "y"], "cannot be used"),
        (["--port", "99999"], "no address"),
        (["hello"], "choose sessions"),
        (["-c"], "choose sessions"),
    ],
)
def test_a_server_that_would_not_be_safe_does_not_start(program, arguments: list[str], reason: str) -> None:
    """SE-09: beyond this machine only encrypted."""
    assert reason in refused(program, "serve", *arguments)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make a certificate with")
def test_an_encrypted_server(program, stub, tmp_path: Path) -> None:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    names = ["-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run([*command, *names, "-keyout", key, "-out", cert], check=True, capture_output=True)
    with serving(program, "--host", "0.0.0.0", "--cert", str(cert), "--key", str(key)) as (_, url):
        assert url.startswith("wss://0.0.0.0:")
        port = url.rpartition(":")[2]
        assert "certificate" in refused(program, "attach", f"wss://localhost:{port}").lower()
        program.environ["SSL_CERT_FILE"] = str(cert)
        stub.says("in secret")
        done = program.run("attach", f"wss://localhost:{port}", piped=b"hello\n")
        assert (done.returncode, done.stdout.strip()) == (0, "in secret"), done.stderr


def test_foreign_requests_are_turned_away_by_the_real_socket(program) -> None:
    """SE-09, SE-10."""
    with serving(program) as (_, url):
        port = int(url.rpartition(":")[2])
        for host, origin in (("evil.invalid", ""), (f"127.0.0.1:{port}", "Origin: https://evil.invalid\r\n")):
            with socket.create_connection(("127.0.0.1", port)) as foreign:
                foreign.sendall(f"GET / HTTP/1.1\r\nHost: {host}\r\n{origin}\r\n".encode())
                assert foreign.makefile("rb").readline().startswith(b"HTTP/1.1 403 ")


@pytest.mark.parametrize("at", [0, 1])
def test_the_programs_of_the_page_run(program, at: int) -> None:
    code = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[at]
    with serving(program, "--demo") as (_, url):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", code],
            cwd=program.project,
            env={**program.environ, "PI_SERVER": url},
            capture_output=True,
            text=True,
            timeout=50,
        )
    assert (done.returncode, done.stderr) == (0, "")
    assert "demo model" in done.stdout


def test_the_page_tells_the_limits() -> None:
    rows = dict(re.findall(r"^\| ([^|]+?) \| ([^|]+?) \|", PAGE, re.MULTILINE))
    mebi, kibi = server.MAX_MESSAGE >> 20, HEAD_BYTES >> 10
    assert rows["attached clients"] == str(server.MAX_CLIENTS)
    pending = f"{server.MAX_PENDING}, for {server.HANDSHAKE_SECONDS:g} seconds"
    assert rows["connections that have not said who they are"] == pending
    assert rows["the head of a request"] == f"{kibi} KiB"
    assert rows["a message to the server"] == f"{mebi} Mi characters"
    assert rows["commands of a client that are not done"] == str(COMMANDS_AT_A_TIME)
    assert rows["responses that a client has not read"] == f"{connection.WAITING_REPLIES:,}"
    assert f"{connection.PATIENCE_SECONDS:g} seconds" in rows["time in which a client reads nothing"]
    ring = f"{RING_ITEMS:,} or {RING_BYTES // 1_000_000} MB"
    assert rows["events kept for clients that come back"].startswith(ring)
    assert f"within {PING_SECONDS + SILENCE_SECONDS:g} seconds" in PAGE
    assert f"closed after {IDLE_SECONDS / 60:g} minutes" in PAGE
